"""vLLM in this process: requests enter the running engine one by one, so no reply ever waits for a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import Any

from hippogpu.config import LlmConfig
from hippogpu.errors import ConfigError, ExtractionError, UsageError
from hippogpu.llm.background import BackgroundLoop
from hippogpu.llm.engine import Keep, NextRequest
from hippogpu.llm.values import Failure, Finish, Reply, Request
from hippogpu.llm.vllm_guard import EngineGuard
from hippogpu.llm.vllm_library import VllmLibrary
from hippogpu.llm.words import without_stop
from hippogpu.types import NO_TOKENS, Usage

# A reply with less room than this could not hold one triple.
LEAST_REPLY = 64
_CLOSING_S = 60.0
_Outcome = Reply | BaseException
_Asking = Callable[[], Coroutine[Any, Any, Reply]]
_FINISHES: dict[str | None, Finish] = {"stop": "stop", "length": "length"}


class VllmEngine:
    """A model that vLLM runs on this machine's GPUs (or, with its build for CPUs, on the processor).

    Replies are greedy or sampled with the request's seed; a schema is enforced while the model writes, with no free
    white space. The prompts' common start is computed once (prefix caching). A prompt that leaves fewer than
    LEAST_REPLY of the tokens asked for is refused; one that leaves fewer than max_tokens gets what is left.
    window is how many tokens prompt and reply may have together.

    vLLM starts processes that import the main module again: a script needs its `if __name__ == "__main__":`. They end
    with this process, however it ends.
    MissingExtraError without vLLM; ConfigError when it cannot load the model.
    """

    endpoint = "vllm"

    def __init__(self, config: LlmConfig) -> None:
        if not config.model:
            raise ConfigError(
                "The 'model' of LlmConfig is empty. Give vllm a model's name, or its folder, with --model."
            )
        self._library = VllmLibrary()
        self.model = config.model
        self.in_flight = config.in_flight
        self._guard = EngineGuard()
        try:
            self._engine = self._library.start(config)
        except BaseException:
            self._guard.close()
            raise
        self._guard.ready()
        self.window = int(self._engine.model_config.max_model_len)
        self._numbers = count()
        self._loop = BackgroundLoop("hippogpu vllm")
        self._closed = False

    def stream(self, next_request: NextRequest) -> Iterator[Reply]:
        """One Reply a request, as each is finished; see Engine.stream. One request follows each reply that is taken.

        ExtractionError when vLLM's engine has died: what had finished was given before, the rest has no Reply at all,
        so nothing counts as the fault of a request. UsageError when this engine is closed, before or meanwhile.
        """
        return self.stream_keeping(next_request, lambda reply: None)

    def stream_keeping(self, next_request: NextRequest, keep: Keep) -> Iterator[Reply]:
        """As stream; each reply is handed to keep in the engine's thread. See KeepingEngine."""
        finished: SimpleQueue[_Outcome] = SimpleQueue()
        tasks: set[asyncio.Task[Reply]] = set()
        under_way = 0
        try:
            while True:
                while under_way < self.in_flight and (request := next_request()) is not None:
                    self._begin(partial(self._kept, request, keep), tasks, finished)
                    under_way += 1
                if not under_way:
                    return
                outcome = finished.get()
                under_way -= 1
                yield self._reply_of(outcome)
        finally:
            if not self._closed:
                self._loop.soon(_cancel, tasks)

    def close(self) -> None:
        """Gives up what is in flight and lets the model's memory go; a second close does nothing."""
        if self._closed:
            return
        self._closed = True
        self._loop.run(_cancel_others())
        # Processes that are killed leave shared memory behind.
        self._engine.shutdown(timeout=_CLOSING_S)
        del self._engine
        self._guard.close()
        self._loop.run(_cancel_others())
        self._loop.close()

    async def _kept(self, request: Request, keep: Keep) -> Reply:
        reply = await self._reply_to(request)
        keep(reply)
        return reply

    def _begin(self, asking: _Asking, tasks: set[asyncio.Task[Reply]], finished: SimpleQueue[_Outcome]) -> None:
        """Starts a request in the loop's thread; its outcome will come out of `finished`."""
        if self._closed:
            raise UsageError(f"The vLLM engine of '{self.model}' is closed. Make a new one.")

        def end(task: asyncio.Task[Reply]) -> None:
            tasks.discard(task)
            finished.put(asyncio.CancelledError() if task.cancelled() else task.exception() or task.result())

        def start() -> None:
            task = asyncio.get_running_loop().create_task(asking())
            tasks.add(task)
            task.add_done_callback(end)

        self._loop.soon(start)

    def _reply_of(self, outcome: _Outcome) -> Reply:
        if isinstance(outcome, Reply):
            return outcome
        if isinstance(outcome, asyncio.CancelledError):
            raise UsageError(f"The vLLM engine of '{self.model}' was closed before all replies were there.")
        if isinstance(outcome, self._library.EngineDead):
            why = without_stop(str(outcome))
            raise ExtractionError(
                f"The vLLM engine of '{self.model}' stopped: {why}. What it had finished is kept. "
                "See its own message above; with too little memory lower [llm] gpu_memory or window, then run again."
            ) from outcome
        raise outcome

    async def _reply_to(self, request: Request) -> Reply:
        try:
            prompt = await self._rendered(request)
            room = self.window - len(prompt["prompt_token_ids"])
            if room < min(request.max_tokens, LEAST_REPLY):
                return _failed(request, _too_long(self.window - room, self.window))
            params = self._library.sampling(request, max_tokens=min(request.max_tokens, room))
            output = await self._generated(prompt, params)
        except (ValueError, self._library.RequestRefused) as error:
            return _failed(request, f"vLLM refused the request: {error}")
        except self._library.RequestBroken as error:
            return _failed(request, f"vLLM failed at the request: {error.__cause__ or error}", unreachable=True)
        return _reply(request, output)

    async def _rendered(self, request: Request) -> Any:
        """The prompt in the model's chat template, as tokens, however long."""
        renderer = self._engine.renderer
        # With a limit the error would not say how many tokens the prompt has.
        tokens = replace(renderer.default_chat_tok_params, max_total_tokens=None)
        chat = [message._asdict() for message in request.messages]
        _, prompts = await renderer.render_chat_async([chat], self._library.template, tokens)
        return prompts[0]

    async def _generated(self, prompt: Any, params: Any) -> Any:
        outputs = self._engine.generate(prompt, params, f"hippogpu-{next(self._numbers)}")
        last = None
        async for output in outputs:
            last = output
        return last


def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    _cancel(others)
    await asyncio.gather(*others, return_exceptions=True)


def _reply(request: Request, output: Any) -> Reply:
    written = output.outputs[0]
    usage = Usage(len(output.prompt_token_ids), output.num_cached_tokens or 0, len(written.token_ids))
    finish = _FINISHES.get(written.finish_reason)
    if finish is None:
        return _failed(request, f"vLLM ended the request with '{written.finish_reason}'", unreachable=True, usage=usage)
    return Reply(request, written.text, finish, usage)


def _failed(request: Request, reason: str, *, unreachable: bool = False, usage: Usage = NO_TOKENS) -> Reply:
    return Reply(request, "", "failed", usage, Failure(without_stop(reason), unreachable))


def _too_long(tokens: int, window: int) -> str:
    return f"the prompt has {tokens} tokens and the model reads {window}: split the passages with --chunk"
