"""Every array of an index and of serving it: rows, columns, bytes of a number. The one place for formulas of size."""

from __future__ import annotations

from typing import NamedTuple

from hippogpu.capacity.counts import Counts, text_table_bytes
from hippogpu.config import IndexConfig, SearchConfig, VectorType

NUMBER_BYTES: dict[VectorType, int] = {"float32": 4, "float16": 2, "int8": 1}
NPY_HEADER, ARROW_FRAME = 128, 1000
"""What a file has beside its numbers: the header of an array; schema, footer and padding of a table."""


WORDED = ("hippo", "bm25", "fusion")
"""Methods that read the words of the passages."""


class Array(NamedTuple):
    """rows × columns numbers of so many bytes, or, of texts, `more` bytes in all beside.

    place : "file" for what lies on disk and is mapped, "memory" for what is made of it to serve
    """

    name: str
    rows: int
    columns: int
    item_bytes: int
    more: int = 0
    place: str = "file"

    @property
    def bytes(self) -> int:
        return self.rows * self.columns * self.item_bytes + self.more


def index_files(counts: Counts, width: int, config: IndexConfig, *, diffused: bool = True) -> list[Array]:
    """The files of a generation by role, one array or table each."""
    nodes, number = counts.nodes, counts.id_bytes
    return [
        _table("ids", counts.ids_bytes, counts.ids, columns=3, numbers=1),
        _table("passages", counts.passages_bytes, counts.passages, columns=2, numbers=0),
        _table("phrases", counts.phrases_bytes, counts.phrases, columns=1, numbers=0),
        _table("facts", counts.facts_bytes, counts.facts, columns=2, numbers=2),
        _file("mentions_indptr", counts.passages + 1, 1, 8),
        _file("mentions", counts.mentions, 1, number),
        _file("statements_indptr", counts.passages + 1, 1, 8),
        _file("statements", counts.statements, 1, number),
        *_vectors("passage", counts.passages, width, config.passage_vectors),
        *_vectors("phrase", counts.phrases, width, config.phrase_vectors),
        *_vectors("fact", counts.facts, width, config.fact_vectors),
        *(fact_cells(counts.facts, width) if config.fact_search == "ivfpq" else ()),
        *word_files(counts),
        *(_file(f"synonym_{name}", counts.found, 1, size) for name, size in _edge(number)),
        _file("graph_indptr", nodes + 1, 1, 8),
        _file("graph_indices", counts.nonzeros, 1, number),
        _file("graph_weights", counts.nonzeros, 1, 4),
        *(_diffused(counts, width) if diffused else ()),
    ]


def served(counts: Counts, width: int, config: IndexConfig, search: SearchConfig, *, diffused: bool) -> list[Array]:
    """What questions read of the files, and what is made of them in memory at first use.

    Texts of the hits are read too, a page of the file each. On a GPU all of it is on the card but the words.
    """
    reads = {"passage_vectors", "passage_scales"}
    graph = search.method not in ("dense", "bm25")
    if graph:
        reads |= {"fact_vectors", "fact_scales", "graph_indptr", "graph_indices", "graph_weights"}
        reads |= {"mentions_indptr", "mentions"}
    if search.method in WORDED:
        reads |= {array.name for array in word_files(counts)}
    if graph and config.fact_search == "ivfpq":
        reads |= {array.name for array in fact_cells(counts.facts, width)}
    if graph and diffused:
        reads |= {"diffused_vectors", "diffused_ones"}
    if search.method in ("hippo1", "ensemble") or search.link != "fact":
        reads |= {"phrase_vectors", "phrase_scales"}
    files = [array for array in index_files(counts, width, config, diffused=diffused) if array.name in reads]
    return [*files, *_made(counts, search, graph=graph)]


def _made(counts: Counts, search: SearchConfig, *, graph: bool) -> list[Array]:
    """Arrays that serving makes of the files."""
    made = [_memory("first ids of passages", counts.passages, 8)]
    if graph:
        made += [_memory("degrees", counts.nodes, 4), _memory("mention counts", counts.phrases, 4)]
    if search.method in WORDED:
        made.append(_memory("lengths in words", counts.passages, 8))
    if search.method == "hippo":
        made.append(_memory("word weights", counts.vocabulary, 8))
    return made


def step_bytes(counts: Counts, columns: int) -> int:
    """Bytes that one step of a walk moves, by the upper count of docs/ppr.md: each neighbour's row is read anew."""
    return counts.nonzeros * (counts.id_bytes + 4 + 4 * columns) + 8 * columns * counts.nodes


def fact_cells(facts: int, width: int) -> list[Array]:
    """The files of the facts in cells: centroids, where each cell begins, facts by cell, their bytes, codebooks."""
    # Numba is loaded when cells are planned, not before.
    from hippogpu.nearest.quantising import cells_for, pieces_for
    from hippogpu.store.fact_cells import CODE_VALUES, FACT_CELLS

    cells, (pieces, size) = cells_for(facts, width), pieces_for(width)
    shapes = ((cells, width, 4), (cells + 1, 1, 8), (facts, 1, 4), (facts, pieces, 1), (pieces * CODE_VALUES, size, 4))
    return [_file(role, *shape) for role, shape in zip(FACT_CELLS, shapes, strict=True)]


def word_files(counts: Counts) -> list[Array]:
    """The files of the words: which passages have each, how often, and which stand in titles."""
    return [
        _table("words", counts.word_bytes, counts.vocabulary, columns=1, numbers=0),
        _file("word_indptr", counts.vocabulary + 1, 1, 8),
        _file("word_passages", counts.words, 1, 4),
        _file("word_counts", counts.words, 1, 1),
        _file("word_lengths", counts.passages, 1, 4),
        _file("title_words_indptr", counts.passages + 1, 1, 8),
        _file("title_words", counts.title_words, 1, 4),
    ]


def _vectors(kind: str, rows: int, width: int, type_: VectorType) -> list[Array]:
    vectors = _file(f"{kind}_vectors", rows, width, NUMBER_BYTES[type_])
    return [vectors, _file(f"{kind}_scales", rows, 1, 4)] if type_ == "int8" else [vectors]


def _diffused(counts: Counts, width: int) -> list[Array]:
    return [_file("diffused_vectors", counts.passages, width, 4), _file("diffused_ones", counts.passages, 1, 4)]


def _edge(number: int) -> list[tuple[str, int]]:
    return [("source", number), ("target", number), ("weight", 4)]


def _file(name: str, rows: int, columns: int, item_bytes: int) -> Array:
    return Array(name, rows, columns, item_bytes, NPY_HEADER)


def _table(name: str, texts_bytes: int, rows: int, *, columns: int, numbers: int) -> Array:
    beside = text_table_bytes(texts_bytes, rows, columns=columns, numbers=numbers) - 8 * columns * rows
    return Array(name, rows, columns, 8, beside + ARROW_FRAME)


def _memory(name: str, rows: int, item_bytes: int) -> Array:
    return Array(name, rows, 1, item_bytes, 0, "memory")
