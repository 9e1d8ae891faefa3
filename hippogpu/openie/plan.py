"""What an extraction will take, from a tokenised sample, before anything is spent."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from hippogpu.config import ExtractConfig
from hippogpu.openie.prompts import ENTITIES, JOINT, TRIPLES, VERIFY, Prompt, passage_text
from hippogpu.text import content_key, identity
from hippogpu.types import Passage, Usage

CountTokens = Callable[[Sequence[str]], list[int]]

# Reply tokens of a passage of p tokens: GPT-3.5's entities and triples for 1,890 passages of MuSiQue, written as the
# prompts ask for them and counted with all-MiniLM-L6-v2's tokenizer; least squares. The sum at the mean passage, 252,
# is close to what HippoRAG 2 reports a passage (3.0 million for 11,656 passages: 257).
_ENTITY_FIT, _TRIPLE_FIT = (33.1, 0.261), (90.3, 0.988)
# A triple of those records takes 21 tokens, its number in a verification's reply 2.
_TOKENS_A_TRIPLE, _TOKENS_A_NUMBER = 21, 2
# What a chat template puts around each message, and before the reply.
_AROUND_MESSAGE, _BEFORE_REPLY = 4, 3
_TWO_SIDED_95 = 1.96


class ExtractionPlan(NamedTuple):
    """An estimate for a corpus.

    passages     in the corpus, and sampled of those with a text of their own
    requests     for the whole corpus, none asked twice
    tokens       of prompts and replies; cached is the share of the prompts that is the same for every passage
    off_by       half the width of the 95 % interval of all tokens that comes of sampling, as a fraction of them
    longest      tokens of the longest prompt in the sample with the largest reply
    repeated     passages whose title and text another one has, which is read for both
    """

    passages: int
    sampled: int
    requests: int
    tokens: Usage
    off_by: float
    longest: int
    repeated: int = 0


def plan_extraction(
    passages: Iterable[Passage], config: ExtractConfig, count: CountTokens, *, sample: int = 1000, seed: int = 0
) -> ExtractionPlan:
    """Requests and tokens that a language model takes to read the passages, each text once.

    count tokenises a list of texts. Lengths of replies are estimated from the passage's (see the fits above).
    """
    texts = _Texts(passages)
    chosen, whole = _sampled(texts, sample, random.Random(seed))
    counts = count([passage_text(passage) for passage in chosen])
    stems = _Stems(config, count)
    each = [stems.usage(tokens) for tokens in counts]
    scale = whole / len(each) if each else 0.0
    total = Usage(*(round(scale * sum(column)) for column in zip(*each, strict=True))) if each else Usage()
    longest = max(map(stems.longest, counts), default=stems.longest(0)) + config.largest_tokens
    requests, off_by = whole * stems.requests, _off_by(each, whole)
    return ExtractionPlan(whole + texts.repeated, len(each), requests, total, off_by, longest, texts.repeated)


class _Texts:
    """The passages whose text came for the first time; repeated counts the others. 16 bytes a text are held."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = passages
        self.repeated = 0

    def __iter__(self) -> Iterator[Passage]:
        seen: set[bytes] = set()
        for passage in self._passages:
            key = bytes.fromhex(content_key(identity(passage.title, passage.text)))
            if key in seen:
                self.repeated += 1
            else:
                seen.add(key)
                yield passage


class _Stems:
    """The fixed part of each request that a passage takes, in tokens."""

    def __init__(self, config: ExtractConfig, count: CountTokens) -> None:
        self._joint, self._verify = config.prompting == "joint", config.verify
        prompts = [JOINT] if self._joint else [ENTITIES, TRIPLES]
        self._fixed = [_stem(prompt, count) for prompt in [*prompts, *([VERIFY] if self._verify else [])]]
        self.requests = len(self._fixed)

    def longest(self, tokens: int) -> int:
        """The longest prompt about a passage of so many tokens: each with what the replies before it gave."""
        given = [0] if self._joint else [0, _fitted(_ENTITY_FIT, tokens)]
        given.append(_fitted(_TRIPLE_FIT, tokens))
        return tokens + max(map(sum, zip(self._fixed, given, strict=False)))

    def usage(self, tokens: int) -> Usage:
        """What a passage of so many tokens takes."""
        entities, triples = _fitted(_ENTITY_FIT, tokens), _fitted(_TRIPLE_FIT, tokens)
        prompt = sum(self._fixed) + len(self._fixed) * tokens + (0 if self._joint else entities)
        completion = entities + triples
        if self._verify:
            prompt += triples
            completion += triples * _TOKENS_A_NUMBER // _TOKENS_A_TRIPLE
        return Usage(prompt, sum(self._fixed), completion)


def _stem(prompt: Prompt, count: CountTokens) -> int:
    messages = prompt.messages("")
    texts = [message.content for message in messages if message.content]
    return sum(count(texts)) + _AROUND_MESSAGE * len(messages) + _BEFORE_REPLY


def _fitted(fit: tuple[float, float], tokens: int) -> int:
    return round(fit[0] + fit[1] * tokens)


def _sampled(passages: Iterable[Passage], size: int, chance: random.Random) -> tuple[list[Passage], int]:
    """A uniform sample of what comes in one pass (reservoir), and how many there are."""
    kept: list[Passage] = []
    whole = 0
    for passage in passages:
        whole += 1
        if len(kept) < size:
            kept.append(passage)
        else:
            place = chance.randrange(whole)
            if place < size:
                kept[place] = passage
    return kept, whole


def _off_by(each: Sequence[Usage], whole: int) -> float:
    """Half the width of the 95 % interval of the mean, as a fraction of it; 0 where every passage was counted."""
    sizes = [usage.prompt + usage.completion for usage in each]
    if len(sizes) < 2 or len(sizes) == whole:
        return 0.0
    mean = sum(sizes) / len(sizes)
    variance = sum((size - mean) ** 2 for size in sizes) / (len(sizes) - 1)
    return _TWO_SIDED_95 * math.sqrt(variance / len(sizes) * (1 - len(sizes) / whole)) / mean
