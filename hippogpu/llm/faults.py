"""Which faults concern every request and not the one that met them, and what to check then."""

from __future__ import annotations

import re
from typing import Literal

from hippogpu.llm.chat import Problem

Concern = Literal["key", "credit", "address", "model", "proxy"]

_BY_STATUS: dict[int, Concern] = {401: "key", 402: "credit", 403: "key", 404: "model", 407: "proxy"}
# The server is another, or has moved, or knows no such verb, path, form or version.
_NOT_THE_ADDRESS = frozenset({405, 406, 410, 411, 415, 421, 426, 501, 505})
# Routers and servers that are chosen by the model's name refuse an unknown one as a bad request.
_NO_MODEL = re.compile(
    r"""
    \bmodel (?:[\s:]+ [^\s]+)?? \s+ (?:(?:does|do|is|was|could|can)\s*)? (?:not|n't) \s+ (?:be\s+)?
        (?:exist|found|available|known|served|loaded|deployed)\b
    | \b(?:invalid|unknown|unsupported|no\ such) \s+ model (?:\s+(?:id|name|identifier))? \s* (?=[:.,;'"`(]|$)
    | \bnot\ a\ valid\ model\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NO_MODEL_CODES = ("model_not_found", "modelnotfound", "invalid_model", "deploymentnotfound")
_NO_CREDIT_CODES = ("insufficient_quota", "insufficient balance", "insufficient_balance")
_FIRST_WORDS = 400


def concern(problem: Problem) -> Concern | None:
    """What is to be checked when every request would meet this fault; None when it may be the one request's own."""
    if 300 <= problem.status < 400 or problem.status in _NOT_THE_ADDRESS:
        return "address"
    if problem.status in {400, 422} and _names_no_model(problem):
        return "model"
    if problem.status == 429 and any(code in problem.detail.lower() for code in _NO_CREDIT_CODES):
        return "credit"
    return _BY_STATUS.get(problem.status)


def advice(about: Concern, *, endpoint: str, model: str, key_variable: str) -> str:
    """What to check, as a sentence without its full stop."""
    if about == "key":
        return f"Check the key in {key_variable} and its right to '{model}'"
    if about == "credit":
        return f"Check the credit of the account whose key is in {key_variable}"
    if about == "proxy":
        return "Check the name and password of the proxy in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY"
    if about == "model":
        return f"Check the address '{endpoint}' and the model '{model}'"
    return f"Check the address '{endpoint}' (https or http, and its path; redirects are not followed)"


def _names_no_model(problem: Problem) -> bool:
    # Further on a server may repeat the passage, which can say anything.
    found = _NO_MODEL.search(problem.words[:_FIRST_WORDS])
    return found is not None or any(code in problem.detail.lower() for code in _NO_MODEL_CODES)
