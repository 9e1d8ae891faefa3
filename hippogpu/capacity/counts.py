"""How many passages, phrases, facts and edges an index has, counted or foreseen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from hippogpu.errors import UsageError
from hippogpu.store import Manifest
from hippogpu.store.files import Entry

MOST_PASSAGES = 10**12
WORDS_POWER = 0.75
"""Different words grow as this power of the passages: 17,746 in 1,890 and 25,950 in 3,141 passages of MuSiQue."""


@dataclass(frozen=True, slots=True)
class Proportions:
    """What there is of each thing, a passage.

    ids         names of passages; more than 1 where texts are repeated
    phrases     distinct phrases (E ÷ P)
    facts       distinct facts (F ÷ P)
    fact_pairs  pairs of phrases that a fact joins
    statements  kept triples, repeats counted
    mentions    distinct phrases of a passage
    synonyms    pairs of phrases that are synonyms
    found       the same as directed edges: who found whom; twice the pairs where no list was full
    edges       undirected edges of the graph: pairs of all kinds, each once
    words       different words of a passage
    title_words words of its title
    vocabulary  different words of all passages ÷ P^0.75, by which they grow
    word_bytes  of a word, all different words alike
    log_bytes   of a passage's line in the extraction log
    ids_bytes, passages_bytes, phrases_bytes, facts_bytes : UTF-8 bytes of all texts of that table, a passage
    """

    ids: float = 1.0
    phrases: float = 7.317
    facts: float = 12.2
    fact_pairs: float = 12.08
    statements: float = 12.6
    mentions: float = 11.375
    synonyms: float = 96.6
    found: float = 193.2
    edges: float = 120.0
    words: float = 55.0
    title_words: float = 2.9
    vocabulary: float = 63.0
    word_bytes: float = 8.0
    log_bytes: float = 1200.0
    ids_bytes: float = 28.0
    passages_bytes: float = 525.0
    phrases_bytes: float = 120.0
    facts_bytes: float = 600.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise UsageError(f"'{item.name}' of the proportions must be a number of 0 or more. Got {value!r}.")


PUBLISHED = Proportions()
"""Edges and phrases of the papers' graph of MuSiQue (11,656 passages: 85,288 phrases, 140,830 fact, 132,586 mention and
1,125,951 synonym edges); an edge that is both a fact and a synonym is counted once (1.4 of 108.7 a passage in
synthetic graphs of that shape are). Bytes of texts, words, and facts for each pair of phrases are those of the 5,031
passages of MuSiQue's two small sets."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The same for a whole index, in whole numbers; vocabulary and word_bytes are of all different words.

    nodes = passages + phrases; nonzeros = 2 · edges.
    """

    passages: int
    ids: int
    phrases: int
    facts: int
    fact_pairs: int
    statements: int
    mentions: int
    synonyms: int
    found: int
    edges: int
    words: int
    title_words: int
    vocabulary: int
    word_bytes: int
    log_bytes: int
    ids_bytes: int
    passages_bytes: int
    phrases_bytes: int
    facts_bytes: int

    @property
    def nodes(self) -> int:
        return self.passages + self.phrases

    @property
    def nonzeros(self) -> int:
        return 2 * self.edges

    @property
    def id_bytes(self) -> int:
        """Bytes of a node's number: 4 up to 2³¹ nodes, else 8."""
        return 4 if self.nodes < 2**31 else 8


def foreseen(passages: int, proportions: Proportions = PUBLISHED) -> Counts:
    """The counts of that many passages, each in proportion; UsageError for fewer than 1 passage or beyond 10¹²."""
    if not 1 <= passages <= MOST_PASSAGES:
        raise UsageError(f"An index is planned for 1 to {MOST_PASSAGES:,} passages. Got {passages:,}.")
    counts = {item.name: round(passages * getattr(proportions, item.name)) for item in fields(proportions)}
    counts["vocabulary"] = round(proportions.vocabulary * passages**WORDS_POWER)
    counts["word_bytes"] = round(proportions.word_bytes * counts["vocabulary"])
    return Counts(passages, **counts)


def counted(manifest: Manifest) -> Counts:
    """The counts of an index, from its manifest alone; texts by the size of their files.

    The log is no file of a generation: it is taken from PUBLISHED, and so are words in an index without them.
    """
    files, counts = manifest.files, manifest.counts
    worded = "words" in files
    ids, passages, phrases, facts = (counts[name] for name in ("ids", "passages", "phrases", "facts"))
    vocabulary = files["words"].shape[0] if worded else round(PUBLISHED.vocabulary * passages**WORDS_POWER)
    return Counts(
        passages=passages,
        ids=ids,
        phrases=phrases,
        facts=facts,
        fact_pairs=counts["fact_pairs"],
        statements=_rows(files, "statements"),
        mentions=counts["mentions"],
        synonyms=counts["synonyms"],
        found=_rows(files, "synonym_source"),
        edges=counts["edges"],
        words=_rows(files, "word_passages") if worded else round(passages * PUBLISHED.words),
        title_words=_rows(files, "title_words") if worded else round(passages * PUBLISHED.title_words),
        vocabulary=vocabulary,
        word_bytes=_texts(files, "words", vocabulary, columns=1, numbers=0)
        if worded
        else round(PUBLISHED.word_bytes * vocabulary),
        log_bytes=round(passages * PUBLISHED.log_bytes),
        ids_bytes=_texts(files, "ids", ids, columns=3, numbers=1),
        passages_bytes=_texts(files, "passages", passages, columns=2, numbers=0),
        phrases_bytes=_texts(files, "phrases", phrases, columns=1, numbers=0),
        facts_bytes=_texts(files, "facts", facts, columns=2, numbers=2),
    )


def proportions_of(counts: Counts) -> Proportions:
    """What each count is, a passage; UsageError where there is no passage."""
    if not counts.passages:
        raise UsageError("The index holds no passage, so it has no proportions. Name another for --like.")
    found = {item.name: getattr(counts, item.name) / counts.passages for item in fields(PUBLISHED)}
    found["vocabulary"] = counts.vocabulary / counts.passages**WORDS_POWER
    found["word_bytes"] = counts.word_bytes / max(counts.vocabulary, 1)
    return replace(PUBLISHED, **found)


def text_table_bytes(texts_bytes: int, rows: int, *, columns: int, numbers: int) -> int:
    """Bytes of an Arrow table: the texts, 8 bytes to each for where it begins, 4 for each number."""
    return texts_bytes + 8 * columns * (rows + 1) + 4 * numbers * rows


def _texts(files: Mapping[str, Entry], role: str, rows: int, *, columns: int, numbers: int) -> int:
    return max(0, files[role].bytes - text_table_bytes(0, rows, columns=columns, numbers=numbers))


def _rows(files: Mapping[str, Entry], role: str) -> int:
    return files[role].shape[0]
