"""Long passages to chunks that an encoder reads whole."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from hippogpu.corpus.headings import Outline
from hippogpu.corpus.sentences import sentence_ends, word_ends
from hippogpu.errors import CorpusError, UsageError
from hippogpu.text import identity
from hippogpu.types import Passage

TokenCounts = Callable[[Sequence[str]], list[int]]

_CHUNK_NUMBER = re.compile(r"#[0-9]+\Z")


def chunk(passage: Passage, *, window_tokens: int, overlap_tokens: int, token_counts: TokenCounts) -> list[Passage]:
    """The passage itself when it fits the window, else its chunks in order: ids "id#0", "id#1", …

    Each chunk has the passage's title, with the Markdown headings that its beginning stands under ("Title › Heading")
    unless those take half the window, and at most window_tokens with it, as token_counts counts. It ends behind a
    sentence where one ends inside the window, else behind a word, else behind a character, and begins with the last
    sentences of the chunk before (or words, when no sentence is so short) that overlap_tokens hold. Every character
    but space at an end is in some chunk. meta gains chunk_of, chunk_start and chunk_end: the passage's id, and
    offsets into its text. CorpusError when the title leaves no room for text.
    """
    if window_tokens < 1 or not 0 <= overlap_tokens < window_tokens:
        raise UsageError(
            f"A chunk needs window_tokens ≥ 1 and overlap_tokens in [0, window_tokens). "
            f"Got {window_tokens} and {overlap_tokens}."
        )
    if token_counts([identity(passage.title, passage.text)])[0] <= window_tokens:
        return [passage]
    room = window_tokens // 2
    outline = Outline(passage.title, passage.text, lambda title: token_counts([title])[0] <= room)
    ruler = _Ruler(passage, outline, window_tokens, overlap_tokens, token_counts)
    return [_part(passage, outline, number, span) for number, span in enumerate(_spans(ruler))]


def parent_id(chunk_id: str) -> str:
    """The id without its "#k"; an id without one is its own parent.

    An unchunked passage whose own id ends so reads the same: where meta is at hand, prefer its chunk_of.
    """
    return _CHUNK_NUMBER.sub("", chunk_id)


def _part(passage: Passage, outline: Outline, number: int, span: tuple[int, int]) -> Passage:
    start, end = span
    meta = {**passage.meta, "chunk_of": passage.id, "chunk_start": start, "chunk_end": end}
    return Passage(f"{passage.id}#{number}", outline.title_at(start), passage.text[start:end], meta)


class _Ruler(NamedTuple):
    passage: Passage
    outline: Outline
    window: int
    overlap: int
    token_counts: TokenCounts

    def tokens(self, start: int, end: int) -> int:
        """What the chunk over these characters really costs, title included."""
        start, end = _trimmed(self.passage.text, start, end)
        return self.token_counts([identity(self.outline.title_at(start), self.passage.text[start:end])])[0]

    def estimates(self, cuts: Sequence[int]) -> list[int]:
        """Tokens of each piece between two cuts, counted alone without special tokens."""
        text = self.passage.text
        special, *counts = self.token_counts(["", *(text[start:end] for start, end in pairwise(cuts))])
        return [max(count - special, 0) for count in counts]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    bare = text[start:end]
    return start + len(bare) - len(bare.lstrip()), start + len(bare.rstrip())


def _spans(ruler: _Ruler) -> Iterator[tuple[int, int]]:
    """Character spans of the chunks. cuts are the places where a chunk may begin or end, costs the tokens before."""
    text = ruler.passage.text
    sentences = [0, *sentence_ends(text)]
    cuts = sorted({0, *sentences, *word_ends(text)})
    costs = list(accumulate(ruler.estimates(cuts), initial=0))
    start, covered = 0, 0
    while covered < len(text):
        end = _longest(ruler, cuts, costs, (start, covered), sentences)
        if end is None and start < covered:
            start = cuts[bisect_right(cuts, start)]  # one word less of overlap makes room for a new one
        elif end is None:
            cuts, costs = _cut_word(ruler, cuts, costs, covered)
        else:
            low, high = _trimmed(text, start, end)
            if low < high:
                yield low, high
            start, covered = _overlap_start(ruler, cuts, costs, (start, end), sentences), end


def _longest(
    ruler: _Ruler, cuts: Sequence[int], costs: Sequence[int], span: tuple[int, int], sentences: Sequence[int]
) -> int | None:
    """Where the chunk from start ends: behind the last sentence, or else word, that the window holds.

    None when it cannot hold one word behind what is already covered.
    """
    start, covered = span
    first = bisect_right(cuts, covered)
    base = ruler.tokens(start, start)
    limit = bisect_right(costs, costs[bisect_left(cuts, start)] + ruler.window - base) - 1
    limit = max(limit, first)
    while True:
        end = _preferred(cuts[limit], sentences, covered)
        tokens = ruler.tokens(start, end)
        if tokens <= ruler.window:
            return end
        if limit == first:
            return None
        reached = bisect_left(cuts, end)
        over = (reached - bisect_left(cuts, start)) * (tokens - ruler.window) // tokens
        limit = max(first, min(reached - 1, reached - over))


def _preferred(limit: int, sentences: Sequence[int], covered: int) -> int:
    """The last sentence end in (covered, limit], else limit."""
    end = sentences[bisect_right(sentences, limit) - 1]
    return end if end > covered else limit


def _overlap_start(
    ruler: _Ruler, cuts: Sequence[int], costs: Sequence[int], span: tuple[int, int], sentences: Sequence[int]
) -> int:
    """Where the next chunk begins: the first sentence of this one whose rest the overlap holds, else such a word."""
    start, end = span
    if not ruler.overlap:
        return end
    budget = costs[bisect_left(cuts, end)] - ruler.overlap
    earliest = max(cuts[bisect_left(costs, budget)], cuts[bisect_right(cuts, start)])
    sentence = sentences[bisect_left(sentences, earliest)]
    return sentence if sentence < end else min(earliest, end)


def _cut_word(ruler: _Ruler, cuts: Sequence[int], costs: Sequence[int], start: int) -> tuple[list[int], list[int]]:
    """Cuts and costs with one cut more, in the middle of the word from start, never before a combining mark."""
    text, at = ruler.passage.text, bisect_right(cuts, start)
    end = cuts[at]
    middle = (start + end) // 2
    while middle > start + 1 and unicodedata.category(text[middle])[0] == "M":
        middle -= 1
    if not start < middle < end:
        raise CorpusError(
            f"The title of passage '{ruler.passage.id}' takes {ruler.tokens(start, start)} of the window's "
            f"{ruler.window} tokens, which leaves no room for text. Shorten it or widen the window."
        )
    left, right = ruler.estimates((start, middle, end))
    before, whole = costs[at - 1], costs[at]
    later = [cost + before + left + right - whole for cost in costs[at:]]
    return [*cuts[:at], middle, *cuts[at:]], [*costs[:at], before + left, *later]
