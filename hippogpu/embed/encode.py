"""Encoding many texts once each: distinct, unknown, in even blocks that are handed on as they finish, and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hippogpu.errors import EncoderError, UsageError
from hippogpu.types import AnyInts, Floats, Longs

if TYPE_CHECKING:
    from hippogpu.embed import Embedder, VectorCache

# A vector may be this far from length 1: float16 storage and other libraries' rounding stay well within.
UNIT_TOLERANCE = 1e-3
# No block holds more characters than this (unless it is one text), so that little is lost when a long run is cut.
BLOCK_CHARACTERS = 200_000
BATCH_TEXTS = 2048
_WORDS_TO_TOKENS = 1.3
_TEXT_WORK, _CHARACTERS_A_TOKEN = 8, 5


def encode_all(
    texts: Sequence[str],
    embedder: Embedder,
    *,
    instruction: str = "",
    known: VectorCache | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_batch: Callable[[list[str], Floats], None] | None = None,
    batch_texts: int = BATCH_TEXTS,
) -> Floats:
    """Unit vectors of the texts, (len(texts), w) float32, rows in the order given.

    Each distinct text that `known` lacks is encoded once, shortest first, in blocks of at most batch_texts texts and
    about 200,000 characters. on_batch gets the texts and rows of each block as soon as it is checked; on_progress
    the work done and the whole work, in characters that the encoder reads (not texts: long ones take longer).
    EncoderError, naming encoder and text, when a row is not finite, not of length 1 within 1e-3 or of another width.
    """
    _check_batch(batch_texts)
    numbers: dict[str, int] = {}
    places = np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64, len(texts))
    distinct = list(numbers)
    rows = np.empty((len(distinct), embedder.width), np.float32)
    missing = _take_known(distinct, known, rows, embedder)
    if not len(missing):
        return rows if len(distinct) == len(texts) else rows[places]
    unknown = [distinct[i] for i in missing]
    done, whole = 0, int(reading_work(_lengths(unknown), embedder).sum())
    if on_progress:
        on_progress(0, whole)
    for block, fresh, block_work in encoded_blocks(unknown, embedder, instruction=instruction, batch_texts=batch_texts):
        rows[missing[block]] = fresh
        if on_batch:
            on_batch([unknown[i] for i in block], fresh)
        done += block_work
        if on_progress:
            on_progress(done, whole)
    return rows if len(distinct) == len(texts) else rows[places]


def encoded_blocks(
    texts: Sequence[str], embedder: Embedder, *, instruction: str = "", batch_texts: int = BATCH_TEXTS
) -> Iterator[tuple[Longs, Floats, int]]:
    """Which texts, their checked rows and their work: blocks as encode_all has them, shortest texts first."""
    _check_batch(batch_texts)
    lengths = _lengths(texts)
    for block, work in _blocks(lengths, reading_work(lengths, embedder), batch_texts):
        wanted = [texts[i] for i in block]
        yield block, checked(embedder.encode(wanted, instruction=instruction), wanted, embedder), work


def reading_work(lengths: AnyInts, embedder: Embedder) -> Longs:
    """What texts of so many characters cost: those up to the window, and a little for being a text at all."""
    work = lengths.astype(np.int64)
    # Where there is nothing to read no encoder is loaded to ask for its window.
    if len(work) and embedder.window is not None:
        work = np.minimum(work, embedder.window * _CHARACTERS_A_TOKEN)
    return work + _TEXT_WORK


def count_truncated(texts: Sequence[str], embedder: Embedder) -> int:
    """How many of the texts have more tokens than the encoder reads; 0 when it does not say how many it reads."""
    if embedder.window is None:
        return 0
    return sum(count > embedder.window for count in embedder.token_counts(texts))


def checked(rows: Floats, texts: Sequence[str], embedder: Embedder) -> Floats:
    """The same rows, or EncoderError naming the encoder and the first text whose row is no unit vector."""
    if rows.shape != (len(texts), embedder.width):
        first = f", the first being {shortened(texts[0])}" if texts else ""
        raise EncoderError(
            f"The encoder '{embedder.name}' gave vectors of shape {rows.shape} for {len(texts)} texts{first}; "
            f"({len(texts)}, {embedder.width}) was expected. Check which model it serves."
        )
    lengths = np.linalg.norm(rows, axis=1)
    bad = np.flatnonzero(~(np.abs(lengths - 1) <= UNIT_TOLERANCE))
    if len(bad):
        i = int(bad[0])
        what = f"of length {lengths[i]:.6g}" if np.isfinite(lengths[i]) else "that is not finite"
        raise EncoderError(
            f"The encoder '{embedder.name}' gave a vector {what} for {shortened(texts[i])} "
            f"({len(bad)} of {len(texts)} texts are affected); unit vectors are needed. Check the model."
        )
    return rows


def shortened(text: str, limit: int = 60) -> str:
    """The text in quotes on one line, cut to its first characters, lone surrogates spelled out: for a message."""
    quoted = repr(text if len(text) <= limit else text[:limit] + "…")
    return quoted.encode("utf-8", "backslashreplace").decode("utf-8")


def estimated_token_counts(texts: Sequence[str]) -> list[int]:
    """Words × 1.3, rounded up: for encoders whose tokenizer is not at hand. Far too low for text without spaces."""
    return [int(np.ceil(len(text.split()) * _WORDS_TO_TOKENS)) for text in texts]


def _take_known(distinct: list[str], known: VectorCache | None, rows: Floats, embedder: Embedder) -> Longs:
    """The numbers of the texts the cache lacks; the rows of the others are filled in."""
    if known is None or not distinct:
        return np.arange(len(distinct), dtype=np.int64)
    found, vectors = known.get(distinct)
    rows[found] = checked(vectors, [text for text, has in zip(distinct, found, strict=True) if has], embedder)
    return np.flatnonzero(~found)


def _check_batch(batch_texts: int) -> None:
    if batch_texts < 1:
        raise UsageError(f"'batch_texts' must be at least 1. Got {batch_texts}.")


def _lengths(texts: Sequence[str]) -> Longs:
    return np.fromiter((len(text) for text in texts), np.int64, len(texts))


def _blocks(lengths: Longs, work: Longs, batch_texts: int) -> Iterator[tuple[Longs, int]]:
    order = np.argsort(lengths, kind="stable")
    begin = 0
    while begin < len(order):
        ahead = order[begin : begin + batch_texts]
        fitting = int(np.searchsorted(np.cumsum(work[ahead]), BLOCK_CHARACTERS, side="right"))
        chosen = ahead[: max(fitting, 1)]
        yield chosen, int(work[chosen].sum())
        begin += len(chosen)
