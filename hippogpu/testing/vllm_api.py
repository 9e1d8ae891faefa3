"""A fake of the part of vLLM that hippogpu uses: there is no model, replies are made up, every call is written down."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from multiprocessing import resource_tracker
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

# Turns that a chat waits for another one.
MOST_TURNS = 100_000


class VLLMError(Exception):
    """Stands for vLLM's error of that name."""


class VLLMClientError(VLLMError):
    """Stands for vLLM's error of that name: a request that it will not take."""


class EngineGenerateError(VLLMError):
    """Stands for vLLM's error of that name: one request failed."""


class EngineDeadError(VLLMError):
    """Stands for vLLM's error of that name: the engine is gone."""


class RequestOutputKind(Enum):
    """Stands for vLLM's choice of what a request yields."""

    CUMULATIVE = 0
    FINAL_ONLY = 2


@dataclass(frozen=True)
class Settings:
    """Stands for AsyncEngineArgs, SamplingParams, StructuredOutputsParams and ChatParams: what was given, by name."""

    values: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.values[name]


@dataclass(frozen=True)
class TokenizeParams:
    """Stands for vLLM's: the most tokens of a prompt that is not refused."""

    max_total_tokens: int | None


class FakeAnswer(NamedTuple):
    """What becomes of a request: after so many turns of the engine it gives the text, or raises the error.

    steps None : it never finishes
    after      : the turns are counted from when that other chat has entered the engine, or given up for
    """

    text: str = "{}"
    steps: int | None = 1
    after: str = ""
    finish: str | None = "stop"
    error: Exception | None = None


@dataclass
class FakeVllm:
    """A fake vLLM whose engine answers by `answer`, given the last message of a chat; a word is a token.

    calls      ("add", chat), ("finish", chat), ("abort", chat) and ("shutdown", ""), in order, by the last message
    running    requests in the engine after each "add"
    arguments  what the engine was made with
    sampling   the sampling parameters of each chat
    blocked    signals that were blocked while the engine started
    start      raised instead of starting, when set
    """

    answer: Callable[[str], FakeAnswer]
    window: int = 1000
    start: Exception | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)
    sampling: dict[str, Any] = field(default_factory=dict)
    blocked: set[signal.Signals] = field(default_factory=set)

    def modules(self) -> dict[str, ModuleType]:
        """Stand-ins for vLLM's modules by name, to be put into sys.modules."""

        def made(**values: Any) -> Settings:
            return Settings(values)

        contents: dict[str, dict[str, Any]] = {
            "vllm": {"SamplingParams": made},
            "vllm.engine.arg_utils": {"AsyncEngineArgs": made},
            "vllm.v1.engine.async_llm": {"AsyncLLM": SimpleNamespace(from_engine_args=self._engine)},
            "vllm.v1.engine.exceptions": {
                "EngineDeadError": EngineDeadError,
                "EngineGenerateError": EngineGenerateError,
            },
            "vllm.exceptions": {"VLLMError": VLLMError, "VLLMClientError": VLLMClientError},
            "vllm.sampling_params": {"StructuredOutputsParams": made, "RequestOutputKind": RequestOutputKind},
            "vllm.platforms": {"current_platform": SimpleNamespace(is_cpu=lambda: True)},
            "vllm.renderers.params": {"ChatParams": made},
        }
        return {name: stand_in(name, content) for name, content in contents.items()}

    async def turns(self, answer: FakeAnswer) -> None:
        """Passes when the answer is due."""
        if answer.steps is None:
            await asyncio.Event().wait()
        for _ in range(MOST_TURNS):
            if not answer.after or ("add", answer.after) in self.calls:
                break
            await asyncio.sleep(0)
        for _ in range(answer.steps or 0):
            await asyncio.sleep(0)

    def _engine(self, arguments: Settings) -> FakeEngine:
        # As the start of the first process does.
        resource_tracker.ensure_running()
        self.blocked = {signal.Signals(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}
        self.arguments = arguments.values
        if self.start is not None:
            raise self.start
        return FakeEngine(self)


class FakeEngine:
    """Stands for vLLM's AsyncLLM."""

    def __init__(self, fake: FakeVllm) -> None:
        self._fake = fake
        self._inside = 0
        self.model_config = SimpleNamespace(max_model_len=fake.window)
        self.renderer = FakeRenderer(fake.window)

    async def generate(self, prompt: dict[str, Any], sampling_params: Any, request_id: str) -> AsyncIterator[Any]:
        """One output when the request is finished; cancelling it is written down as an abort."""
        fake, chat = self._fake, prompt["chat"]
        self._inside += 1
        fake.calls.append(("add", chat))
        fake.running.append(self._inside)
        fake.sampling[chat] = sampling_params
        answer = fake.answer(chat)
        try:
            await fake.turns(answer)
            fake.calls.append(("finish", chat))
        except asyncio.CancelledError:
            fake.calls.append(("abort", chat))
            raise
        finally:
            self._inside -= 1
        if answer.error is not None:
            raise answer.error
        yield _output(prompt["prompt_token_ids"], answer)

    def shutdown(self, timeout: float | None = None) -> None:
        """Written down."""
        self._fake.calls.append(("shutdown", ""))


class FakeRenderer:
    """Stands for the renderer of an engine: a prompt has as many tokens as its messages have words."""

    def __init__(self, window: int) -> None:
        self.default_chat_tok_params = TokenizeParams(window)

    async def render_chat_async(
        self, chats: Sequence[list[dict[str, str]]], template: Settings, tokens: TokenizeParams
    ) -> tuple[None, list[dict[str, Any]]]:
        """The prompt of each chat; a longer one than `tokens` allows is refused as vLLM does."""
        prompts = [
            {
                "prompt_token_ids": [1] * sum(len(message["content"].split()) for message in chat),
                "chat": chat[-1]["content"],
            }
            for chat in chats
        ]
        most = tokens.max_total_tokens
        if most is not None and any(len(prompt["prompt_token_ids"]) > most for prompt in prompts):
            raise VLLMClientError(f"This model's maximum context length is {most} tokens.")
        return None, prompts


def _output(prompt: list[int], answer: FakeAnswer) -> SimpleNamespace:
    """Stands for a RequestOutput whose prompt's first half came from the prefix cache."""
    written = SimpleNamespace(text=answer.text, token_ids=answer.text.split(), finish_reason=answer.finish)
    return SimpleNamespace(prompt_token_ids=prompt, num_cached_tokens=len(prompt) // 2, outputs=[written])


def stand_in(name: str, content: dict[str, Any]) -> ModuleType:
    """A module of that name that holds nothing but the content."""
    module = ModuleType(name)
    vars(module).update(content)
    return module
