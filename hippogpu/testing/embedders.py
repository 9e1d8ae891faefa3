"""What every Embedder must do, as functions to call on yours; and a small embedder and cache for other tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hippogpu.embed import Embedder
from hippogpu.types import Bools, Floats

# One float32 sum in another order moves a unit vector's entries by about 1e-7.
ROW_TOLERANCE = 1e-6
UNIT_TOLERANCE = 1e-5

_TEXTS = ("", "Oliver Badman", "is a politician", "巴黎", "🙂🚀", "Oliver Badman", "a\tb\nc", "word " * 400, "\ud800")


def check_embedder(embedder: Embedder) -> None:
    """Nothing, or AssertionError naming the first promise of Embedder that is broken."""
    check_properties(embedder)
    rows = embedder.encode(_TEXTS)
    check_rows(rows, len(_TEXTS), embedder.width)
    check_no_texts(embedder)
    check_equal_texts(rows)
    check_neighbours_do_not_matter(embedder, rows)
    check_instruction(embedder)
    check_token_counts(embedder)


def check_properties(embedder: Embedder) -> None:
    """The name is printable and not empty, the width positive, the window positive or None, instructions text."""
    assert embedder.name, "the name is empty"
    assert embedder.name.isprintable(), f"the name {embedder.name!r} cannot be printed"
    assert embedder.width >= 1, f"the width is {embedder.width}"
    assert embedder.window is None or embedder.window >= 1, f"the window is {embedder.window}"
    assert isinstance(embedder.query_to_fact, str), "query_to_fact is no text"
    assert isinstance(embedder.query_to_passage, str), "query_to_passage is no text"


def check_rows(rows: Floats, texts: int, width: int) -> None:
    """The rows are (texts, width) float32, C-contiguous, finite and of length 1 within 1e-5."""
    assert rows.shape == (texts, width), f"the shape is {rows.shape}, not {(texts, width)}"
    assert rows.dtype == np.float32, f"the type is {rows.dtype}, not float32"
    assert rows.flags.c_contiguous, "the rows are not C-contiguous"
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    assert np.all(np.abs(lengths - 1) <= UNIT_TOLERANCE), f"lengths run from {lengths.min()} to {lengths.max()}"


def check_no_texts(embedder: Embedder) -> None:
    """No texts give no rows, of the right width, and no counts."""
    none = embedder.encode([])
    assert none.shape == (0, embedder.width), f"no texts gave shape {none.shape}"
    assert embedder.token_counts([]) == [], "no texts gave token counts"


def check_equal_texts(rows: Floats) -> None:
    """Equal texts of one call have equal rows; the rows are those of check_embedder's texts."""
    assert np.abs(rows[1] - rows[5]).max() <= ROW_TOLERANCE, "one text twice in a call gave two vectors"


def check_neighbours_do_not_matter(embedder: Embedder, rows: Floats) -> None:
    """A text alone, and in a call in reverse order, has the row it has among others, within 1e-6."""
    alone = np.concatenate([embedder.encode([text]) for text in _TEXTS])
    reverse = embedder.encode(_TEXTS[::-1])[::-1]
    for other, how in ((alone, "alone"), (reverse, "in reverse order")):
        worst = float(np.abs(other - rows).max())
        assert worst <= ROW_TOLERANCE, f"a row differs by {worst:.2g} when its text is encoded {how}"


def check_instruction(embedder: Embedder) -> None:
    """An instruction is read, and one of '' changes nothing."""
    plain = embedder.encode(["Oliver Badman"])
    same = embedder.encode(["Oliver Badman"], instruction="")
    told = embedder.encode(["Oliver Badman"], instruction="Find the politician: ")
    assert np.abs(plain - same).max() <= ROW_TOLERANCE, "an empty instruction changed the vector"
    assert np.abs(plain - told).max() > ROW_TOLERANCE, "an instruction did not change the vector"


def check_token_counts(embedder: Embedder) -> None:
    """One whole number a text, more for a text of more words, and nothing cut at the window."""
    few, many = embedder.token_counts(["one two", "one two " * 2000])
    assert 0 <= few < many, f"two words count {few}, four thousand {many}"
    assert many >= 4000, f"four thousand words count {many} tokens: the count is cut"


class TableEmbedder:
    """An embedder that knows the given texts only: its vectors are scaled to length 1, other texts are a KeyError.

    calls holds the texts of each call to encode, in order.
    """

    window = None
    query_to_fact = ""
    query_to_passage = ""

    def __init__(self, table: Mapping[str, Sequence[float]], *, name: str = "table") -> None:
        self.name = name
        self.width = len(next(iter(table.values())))
        self.calls: list[list[str]] = []
        self._table = {
            text: np.asarray(row, np.float32) / np.float32(np.linalg.norm(row)) for text, row in table.items()
        }

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """The table's rows of instruction + text, (len(texts), w) float32."""
        self.calls.append(list(texts))
        rows = np.empty((len(texts), self.width), np.float32)
        for i, text in enumerate(texts):
            rows[i] = self._table[instruction + text]
        return rows

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many words each text has."""
        return [len(text.split()) for text in texts]


class DictCache:
    """A VectorCache in a dictionary."""

    def __init__(self, rows: Mapping[str, Floats], *, width: int) -> None:
        self.rows = dict(rows)
        self._width = width

    def get(self, texts: Sequence[str]) -> tuple[Bools, Floats]:
        """Which of the texts are in the dictionary, and the rows of those."""
        found = np.array([text in self.rows for text in texts], dtype=np.bool_)
        rows = [self.rows[text] for text in texts if text in self.rows]
        return found, np.stack(rows) if rows else np.empty((0, self._width), np.float32)
