"""An extractor that asks a language model: one passage in two steps or in one, with no barrier between passages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from hippogpu.config import ExtractConfig, LlmConfig
from hippogpu.errors import ExtractionError
from hippogpu.llm import Failure, Llm, Reply, Request, open_llm
from hippogpu.openie.prompts import (
    ENTITIES,
    JOINT,
    MOST_VERIFIED,
    TRIPLES,
    VERIFY,
    VERSION,
    Prompt,
    compact,
    passage_text,
    with_entities,
    with_numbered,
)
from hippogpu.openie.replies import ReadReply, read_numbers, read_reply
from hippogpu.types import NO_TOKENS, Drop, Passage, Record, Triple

# No name of a model can be taken for that of another extractor.
PREFIX = "llm-"
# So many passages in a row that found no server, or were refused alike, end the run: it would only fail the others.
GIVE_UP_AFTER = 100
# A greedy model that wrote something unusable writes it again.
RETRY_TEMPERATURE = 0.3
# How much of a reply that cannot be used a failure shows.
REPLY_CHARACTERS = 60
NOT_STATED = "not stated by the passage, says the verification"
UNVERIFIED = "no verification could be had; the triples were kept"
NO_ENTITIES = "no entities could be had; the triples were asked for without"
CUT = "the reply was cut; its complete items were kept"


class LlmExtractor:
    """Reads passages with a language model, as many at once as its engine holds.

    prompting "two-step" asks for the entities, then for the triples given those; "joint" for both at once. With verify
    a further request drops the triples that the passage does not state. A reply that cannot be used is asked for again
    (`tries`), at a temperature; one that was cut keeps its complete triples and is asked for with twice the tokens, up
    to `largest_tokens`. Entities that cannot be had are done without, and the record says so.

    name changes with the model, the prompting and the words of the prompts: other results are not mixed with these.
    A request that finds no server leaves its passage to the next run (Record.outage). ExtractionError when 100 passages
    in a row found none or were refused with the same words, or when a run found no server at all.
    """

    def __init__(self, llm: Llm, config: ExtractConfig = ExtractConfig(), *, temperature: float = 0.0) -> None:  # noqa: B008
        self.llm = llm
        self.config = config
        self.temperature = temperature
        verified = "-verified" if config.verify else ""
        self.name = f"{PREFIX}{llm.model}-{config.prompting}{verified}-{VERSION}"

    def close(self) -> None:
        """Lets the model, or the connections to it, go; a second close does nothing."""
        self.llm.close()

    def forget(self) -> None:
        """Lets the remembered replies go, those to other tasks too."""
        self.llm.forget()

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        """One Record a passage as each is finished; passages are taken when the engine has room."""
        run = _Run(iter(passages), self)
        for reply in self.llm.stream(run.next_request):
            yield from run.take(reply)
        yield from run.end()


def open_extractor(
    model: LlmConfig,
    config: ExtractConfig = ExtractConfig(),  # noqa: B008  (frozen)
    *,
    replies: Path | None = None,
) -> LlmExtractor:
    """An extractor that asks the configured model; close it when done. replies : a file that keeps its replies."""
    return LlmExtractor(open_llm(model, replies=replies), config, temperature=model.temperature)


class _Run:
    """The passages under way: those with a request to send, and failures since the last real reply."""

    def __init__(self, passages: Iterator[Passage], extractor: LlmExtractor) -> None:
        self._passages, self._extractor = passages, extractor
        self._ready: deque[_Case] = deque()
        self._held: list[Record] = []
        self._reached = False

    def next_request(self) -> Request | None:
        if self._ready:
            return self._ready.popleft().request()
        passage = next(self._passages, None)
        return None if passage is None else _Case(passage, self._extractor).request()

    def take(self, reply: Reply) -> Iterator[Record]:
        """The records that a reply finishes, those that were held back among them."""
        case: _Case = reply.request.tag
        record = case.take(reply)
        if reply.failure is None and not reply.remembered:
            self._reached = True
            yield from self._let_go()
        if record is None:
            self._ready.append(case)
        elif record.error is not None and reply.failure is not None:
            yield from self._hold(record)
        else:
            yield record

    def end(self) -> Iterator[Record]:
        """The failures that are held back still, when there was a server at all."""
        if self._held and not self._reached and all(record.outage for record in self._held):
            raise self._given_up()
        yield from self._let_go()

    def _let_go(self) -> list[Record]:
        held, self._held = self._held, []
        return held

    def _hold(self, record: Record) -> list[Record]:
        """Keeps a failure back until a real reply shows that not every request meets it."""
        self._held.append(record)
        if len(self._held) < GIVE_UP_AFTER:
            return []
        if all(record.outage for record in self._held) or len({record.error for record in self._held}) == 1:
            raise self._given_up()
        return self._let_go()

    def _given_up(self) -> ExtractionError:
        count = f"{len(self._held)} passages in a row" if len(self._held) > 1 else "The passage"
        return ExtractionError(
            f"{count} had no reply from {self._extractor.llm.endpoint}; the last failure: {self._held[-1].error}. "
            "Check the server, its address and the model, then run again: finished passages are kept, and these do not "
            "count as failed."
        )


class _Case:
    """One passage on its way to a record: what is asked of it now, and what is known of it so far."""

    def __init__(self, passage: Passage, extractor: LlmExtractor) -> None:
        self.passage, self.extractor, self.config = passage, extractor, extractor.config
        self.entities: tuple[str, ...] = ()
        self.triples: tuple[Triple, ...] = ()
        self.drops: list[Drop] = []
        self.usage = NO_TOKENS
        self._begin(JOINT if self.config.prompting == "joint" else ENTITIES, passage_text(passage))

    def _begin(self, prompt: Prompt, question: str) -> None:
        self.prompt, self.question = prompt, question
        self.budget = self.config.max_tokens
        self.unusable = 0
        self.partial: ReadReply | None = None

    def request(self) -> Request:
        temperature = self.extractor.temperature
        if self.unusable:
            temperature = max(temperature, RETRY_TEMPERATURE)
        messages = self.prompt.messages(self.question)
        return Request(self, messages, self.budget, self.prompt.schema, temperature, seed=self.unusable)

    def take(self, reply: Reply) -> Record | None:
        """The finished record, or None when there is more to ask."""
        if not reply.remembered:
            self.usage = self.usage.plus(reply.usage)
        if reply.failure is not None:
            return self._failed(reply.failure)
        read = self._read(reply.text)
        if reply.finish == "length" or read.truncated:
            return self._cut(read)
        if read.fault is None:
            return self._accept(read)
        self.extractor.llm.reject(reply)
        excerpt = " ".join(reply.text[:REPLY_CHARACTERS].split())
        return self._unusable(f"{read.fault} ('{excerpt}')" if excerpt else read.fault, refused=False)

    def _failed(self, failure: Failure) -> Record | None:
        """A request without a reply. One that found no server leaves the whole passage to the next run."""
        if failure.unreachable:
            return self._failure(failure.reason, outage=True)
        return self._unusable(failure.reason, refused=True)

    def _unusable(self, reason: str, *, refused: bool) -> Record | None:
        """Asks again, or settles for what there is when that has been tried often enough."""
        self.unusable += 1
        if self.unusable < self.config.tries:
            return None
        return self._settle(f"{reason} ({self.unusable} tries)", refused=refused)

    def _read(self, text: str) -> ReadReply:
        """What the reply says, in terms of what was asked; of a verification, the triples it leaves."""
        if self.prompt is not VERIFY:
            return read_reply(text, wants=self._wants())
        asked, rest = self.triples[:MOST_VERIFIED], self.triples[MOST_VERIFIED:]
        stated = read_numbers(text, most=len(asked))
        if stated is None:
            return ReadReply((), (), (), "no list of numbers in the reply", False)
        kept = [triple for number, triple in enumerate(asked, start=1) if number in stated]
        drops = [Drop(NOT_STATED, compact(t[:3])) for number, t in enumerate(asked, start=1) if number not in stated]
        if rest:
            drops.append(Drop(UNVERIFIED, f"{len(rest)} triples beyond the first {MOST_VERIFIED}"))
        return ReadReply((), (*kept, *rest), tuple(drops), None, False)

    def _wants(self) -> Literal["entities", "triples", "both"]:
        if self.prompt is JOINT:
            return "both"
        return "entities" if self.prompt is ENTITIES else "triples"

    def _cut(self, read: ReadReply) -> Record | None:
        """A reply that met its limit: its complete items are kept, and it is asked for again with twice the room."""
        if self.prompt is not VERIFY:
            best = self.partial or read
            self.partial = max(best, read, key=lambda one: len(one.triples) + len(one.entities))
        if self.budget < self.config.largest_tokens:
            self.budget = min(2 * self.budget, self.config.largest_tokens)
            return None
        return self._settle(f"the reply does not come to its end in {self.budget} tokens", refused=False)

    def _settle(self, reason: str, *, refused: bool) -> Record | None:
        """What comes of the question when its whole reply cannot be had: what there is of it, else a failure.

        refused : the question was not answered at all; then the longer one that would follow is not asked either
        """
        if self.partial is not None and (self.partial.triples or self.partial.entities):
            self.drops.append(Drop(CUT, reason))
            return self._accept(self.partial)
        if self.prompt is VERIFY:
            self.drops.append(Drop(UNVERIFIED, reason))
            return self._record()
        if self.prompt is ENTITIES and not refused:
            self.drops.append(Drop(NO_ENTITIES, reason))
            return self._accept(ReadReply((), (), (), None, False))
        return self._failure(reason)

    def _failure(self, reason: str, *, outage: bool = False) -> Record:
        return Record(self.passage.id, (), self.entities, tuple(self.drops), reason, self.usage, outage)

    def _accept(self, read: ReadReply) -> Record | None:
        """Takes what was read and goes on to the next question, if there is one."""
        self.drops.extend(read.drops)
        if self.prompt is ENTITIES:
            self.entities = read.entities
            self._begin(TRIPLES, with_entities(self.passage, read.entities))
            return None
        if self.prompt is JOINT:
            self.entities = read.entities
        self.triples = read.triples
        if self.config.verify and self.triples and self.prompt is not VERIFY:
            self._begin(VERIFY, with_numbered(self.passage, self.triples[:MOST_VERIFIED]))
            return None
        return self._record()

    def _record(self) -> Record:
        return Record(self.passage.id, self.triples, self.entities, tuple(self.drops), None, self.usage)
