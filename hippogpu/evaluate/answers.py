"""Answers against the known ones: exact match and token F1 after the normalisation of SQuAD and MuSiQue."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from hippogpu.errors import UsageError
from hippogpu.evaluate.measures import Evaluation

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalise_answer(answer: str) -> str:
    """Lower case, no punctuation, no English articles, single spaces: in that order, as SQuAD's script does.

    Punctuation is every character of a Unicode category P, and the other ASCII signs that SQuAD counts as such. It is
    removed, not spaced: "U.S." is "us". Text is composed (NFC) and case-folded, so that "Straße" is "strasse".
    """
    folded = unicodedata.normalize("NFC", answer).casefold()
    bare = "".join(c for c in folded if not (unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~"))
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(answer: str, golds: Iterable[str]) -> float:
    """1 when the answer is one of the known ones (the answer and its aliases) after normalisation, else 0."""
    given = normalise_answer(answer)
    return float(any(given == normalise_answer(gold) for gold in golds))


def token_f1(answer: str, golds: Iterable[str]) -> float:
    """The best harmonic mean of token precision and recall over the known answers, in [0, 1]; 0 where none is known.

    Tokens are words of the normalised text, repeats counted. Where either side has no token (as "the" has none), it is
    1 when both have none, else 0.
    """
    given = normalise_answer(answer).split()
    return max((_f1(given, normalise_answer(gold).split()) for gold in golds), default=0.0)


def evaluate_answers(answers: Mapping[str, str], golds: Mapping[str, Sequence[str]]) -> Evaluation:
    """Means of exact match ("em") and token F1 ("f1") over the questions whose answer is known, for intervals too.

    golds : the known answers of each question, aliases among them; a question without any is left out and named
    UsageError when no answer of any question is known.
    """
    judged = [query for query in answers if golds.get(query)]
    if not judged:
        raise UsageError("No answer of these questions is known. Check that both use the same ids.")
    by_query = {
        query: {"em": exact_match(answers[query], golds[query]), "f1": token_f1(answers[query], golds[query])}
        for query in judged
    }
    values = {name: sum(row[name] for row in by_query.values()) / len(judged) for name in ("em", "f1")}
    return Evaluation(len(judged), values, by_query, tuple(query for query in answers if query not in by_query), ())


def _f1(given: list[str], gold: list[str]) -> float:
    if not given or not gold:
        return float(given == gold)
    common = (Counter(given) & Counter(gold)).total()
    return 2 * common / (len(given) + len(gold))
