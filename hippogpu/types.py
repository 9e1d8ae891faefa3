"""The values that pass between rooms. All are frozen; arrays are C-contiguous and never written to.

Axes: B queries, P passages, E phrases, F facts, n = P + E nodes, w vector width, k hits.
Ids are int32, row pointers int64, weights and scores float32, vectors float32 with unit rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.errors import IndexDamagedError, UsageError

Ints = NDArray[np.int32]
AnyInts = NDArray[np.integer[Any]]
Bools = NDArray[np.bool_]
Longs = NDArray[np.int64]
Floats = NDArray[np.float32]
AnyFloats = NDArray[np.floating[Any]]


class Passage(NamedTuple):
    """One piece of text to retrieve. Its identity is title + newline + text."""

    id: str
    title: str
    text: str
    meta: Mapping[str, Any] = {}


class Triple(NamedTuple):
    """Subject, predicate and object as the extractor wrote them.

    text is what is encoded for the fact, when the extractor gives one; else the three fields are.
    """

    subject: str
    predicate: str
    object: str
    text: str | None = None


class Drop(NamedTuple):
    """Something an extractor's reply held that could not be kept, and why."""

    reason: str
    value: str


class Usage(NamedTuple):
    """Tokens of prompts, how many of those came from a model's prefix cache, tokens of replies."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0

    def plus(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.cached + other.cached, self.completion + other.completion)


NO_TOKENS = Usage()


@dataclass(frozen=True, slots=True)
class Record:
    """What an extractor said of one passage: the kept triples, the entities, and what was dropped.

    error is None for a success; otherwise the passage has no facts and is tried again on the next run.
    usage is what a language model was asked and wrote for it, over all its requests. outage says of a failure that
    the extractor could not be reached: it is no fault of the passage and counts as no attempt.
    """

    passage_id: str
    triples: tuple[Triple, ...]
    entities: tuple[str, ...] = ()
    drops: tuple[Drop, ...] = ()
    error: str | None = None
    usage: Usage = NO_TOKENS
    outage: bool = False


@dataclass(frozen=True, slots=True)
class UserEdge:
    """An undirected edge of one's own between two ends: passages by id, phrases by their text, two in all.

    kind says what joins them (tag, heading, link, …); two edges between the same ends differ by it
    where is the place it was read from, "" for an edge made in Python; it makes no difference between edges
    """

    passages: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    kind: str = "link"
    weight: float = 1.0
    where: str = field(default="", compare=False)


class Refusal(NamedTuple):
    """An input item that was not taken, where it stood, and why."""

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of int32 values of different lengths: row i is values[indptr[i]:indptr[i+1]]."""

    indptr: Longs
    values: Ints

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def row(self, i: int) -> Ints:
        return self.values[self.indptr[i] : self.indptr[i + 1]]

    def check(self, name: str, *, below: int) -> Ragged:
        """Self, or IndexDamagedError when pointers decrease or a value is outside [0, below)."""
        indptr = self.indptr
        ordered = len(indptr) > 0 and indptr[0] == 0 and bool(np.all(np.diff(indptr) >= 0))
        if not ordered or int(indptr[-1]) != len(self.values):
            raise IndexDamagedError(f"The row pointers of '{name}' are not ascending. Rebuild the index.")
        if len(self.values) and (self.values.min() < 0 or self.values.max() >= below):
            raise IndexDamagedError(f"'{name}' points outside [0, {below}). Rebuild the index.")
        return self


@dataclass(frozen=True, slots=True)
class Facts:
    """F distinct normalised triples, sorted: subject and object are phrase numbers, predicate is text."""

    subject: Ints
    object: Ints
    predicate: Sequence[str]
    text: Sequence[str]

    def __len__(self) -> int:
        return len(self.subject)


class Edges(NamedTuple):
    """Pairs (source, target) with a weight each: int32, int32, float32. Of phrases, or of nodes where it is said."""

    source: Ints
    target: Ints
    weight: Floats

    def check(self, name: str, *, below: int) -> Edges:
        """Self, or IndexDamagedError when a pair does not ascend inside [0, below) or a weight is not above 0."""
        ends = np.concatenate([self.source, self.target])
        if len(ends) and (ends.min() < 0 or ends.max() >= below):
            raise IndexDamagedError(f"'{name}' points outside [0, {below}). Rebuild the index.")
        if np.any(self.source >= self.target):
            raise IndexDamagedError(f"A pair of '{name}' does not ascend. Rebuild the index.")
        if not np.all(np.isfinite(self.weight)) or np.any(self.weight <= 0):
            raise IndexDamagedError(f"A weight of '{name}' is no number above 0. Rebuild the index.")
        return self


NO_EDGES = Edges(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))


@dataclass(frozen=True, slots=True)
class Tables:
    """Phrases, facts and who states them: everything the graph is built from.

    phrases        E distinct normalised texts, sorted by code point
    facts          F distinct normalised triples
    mentions       (P rows) distinct phrases of the passage's facts and of its user edges, ascending
    statements     (P rows) one fact a kept triple, in the extractor's order, repeats kept
    user_edges     pairs of nodes source < target (passages 0…P−1, then phrases), ascending; a pair again for each edge
    """

    phrases: Sequence[str]
    facts: Facts
    mentions: Ragged
    statements: Ragged
    user_edges: Edges = NO_EDGES

    def check(self) -> Tables:
        """Self, or IndexDamagedError naming the first array that points outside its table."""
        phrases, facts = len(self.phrases), len(self.facts)
        self.mentions.check("mentions", below=phrases)
        self.statements.check("statements", below=facts)
        ends = np.concatenate([self.facts.subject, self.facts.object])
        if len(ends) and (ends.min() < 0 or ends.max() >= phrases):
            raise IndexDamagedError("A fact names a phrase outside the table. Rebuild the index.")
        self.user_edges.check("user_edges", below=len(self.mentions) + phrases)
        return self


COUNT_TYPES = (np.uint8, np.uint16, np.int32)
"""How often a passage has a word is stored in the first of these that holds the greatest number of all."""


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Which passages have a word, how often, and which words their titles have.

    words    V distinct words, sorted by code point
    passages (V rows) the passages of each word, ascending
    counts   (entries,) how often; of one of COUNT_TYPES
    lengths  (P,) int32, how many words a passage has, each as often as it stands there
    titles   (P rows) the distinct words of the title under the first of a passage's ids, ascending
    """

    words: Sequence[str]
    passages: Ragged
    counts: AnyInts
    lengths: Ints
    titles: Ragged

    def check(self) -> WordCounts:
        """Self, or IndexDamagedError where something points outside its table; reads every entry."""
        self.passages.check("word_passages", below=len(self.lengths))
        return self.check_heads()

    def check_heads(self) -> WordCounts:
        """As check, but for the passages of words: whoever reads those of a word looks at them."""
        indptr = self.passages.indptr
        if indptr[0] != 0 or indptr[-1] != len(self.passages.values) or np.any(indptr[1:] < indptr[:-1]):
            raise IndexDamagedError("The row pointers of 'word_passages' are not ascending. Rebuild the index.")
        if len(self.lengths) and self.lengths.min() < 0:
            raise IndexDamagedError("A length of 'word_lengths' is below 0. Rebuild the index.")
        self.titles.check("title_words", below=len(self.words))
        return self


@dataclass(frozen=True, slots=True)
class Csr:
    """A symmetric weighted adjacency in compressed rows.

    indptr (n+1) int64, indices int32 ascending in each row, weights float32 > 0; no duplicates, no self-loops.
    """

    indptr: Longs
    indices: Ints
    weights: Floats

    @property
    def nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def nonzeros(self) -> int:
        return len(self.indices)

    def check(self) -> Csr:
        """Self, or UsageError saying which of the promises above is broken."""
        Ragged(self.indptr, self.indices).check("graph", below=max(self.nodes, 1))
        if len(self.weights) != len(self.indices):
            raise UsageError(
                f"The graph has {len(self.indices)} columns and {len(self.weights)} weights. Pass one weight an edge."
            )
        if not np.all(np.isfinite(self.weights)) or np.any(self.weights <= 0):
            raise UsageError("Every edge weight must be finite and above 0. Drop the edges that are not.")
        rows = np.repeat(np.arange(self.nodes, dtype=np.int64), np.diff(self.indptr))
        keys = rows * max(self.nodes, 1) + self.indices
        if np.any(np.diff(keys) <= 0):
            raise UsageError("Columns must ascend within each row, without repeats. Sort and sum the edges first.")
        if np.any(rows == self.indices):
            raise UsageError("The graph holds self-loops. Leave out edges from a node to itself.")
        mirrored = self.indices.astype(np.int64) * max(self.nodes, 1) + rows
        order = np.argsort(mirrored, kind="stable")
        if not np.array_equal(mirrored[order], keys) or not np.array_equal(self.weights[order], self.weights):
            raise UsageError("The graph is not symmetric. Store each edge in both directions with one weight.")
        return self


class Diffused(NamedTuple):
    """Passage vectors V and ones diffused over the graph: G·V and G·1 on passages, G = (1 − d)·(I − d·P)⁻¹.

    vectors (P, w) float32 · ones (P,) float32 · damping d
    error: for a unit query, vectors·query and ones are off by at most error · degree
    """

    vectors: Floats
    ones: Floats
    damping: float
    error: float

    def check(self) -> Diffused:
        """Self, or IndexDamagedError when something in it is no number; reads every vector."""
        # A sum is finite only when all its parts are; opposite infinities would make it a warning.
        with np.errstate(invalid="ignore"):
            if np.isfinite(self.ones.sum()) and np.isfinite(self.vectors.sum()):
                return self
        raise IndexDamagedError("The diffused vectors hold what is no number. Make them again: hippogpu diffuse DIR")


class Hit(NamedTuple):
    """A ranked passage. score is PPR mass, or the method's own score on a fallback ranking."""

    passage: Passage
    score: float


class KeptFact(NamedTuple):
    """A fact that passed the filter, with its min-max score in [0, 1]."""

    subject: str
    predicate: str
    object: str
    score: float


class Seed(NamedTuple):
    """A phrase that the walk restarts from, with its weight before normalisation."""

    phrase: str
    weight: float


class LinkedEntity(NamedTuple):
    """An entity of a question as it was read, the phrase it was linked to, and the cosine between the two."""

    name: str
    phrase: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answer to one query: passages in descending score, and why.

    certified is None where the solver has no certificate; fallback is None unless the method fell back;
    filter_failure is None unless the filter could not judge the facts (SearchConfig.filter_fails says what was kept).
    fact_search says what found the facts near to the question: "exact" looked at all of them, "ivfpq" at those of near
    cells, so that some may be missing (certified is about the walk from what was found); None where none was sought.
    ms holds the milliseconds of each stage, a batch's time divided by its queries. generation is the number of the
    snapshot that answered, 0 where no index did.
    """

    query: str
    hits: tuple[Hit, ...]
    method: str
    solver: str | None = None
    facts: tuple[KeptFact, ...] = ()
    seeds: tuple[Seed, ...] = ()
    certified: bool | None = None
    fallback: str | None = None
    ms: Mapping[str, float] = field(default_factory=dict)
    generation: int = 0
    filter_failure: str | None = None
    entities: tuple[LinkedEntity, ...] = ()
    fact_search: str | None = None


class PathNode(NamedTuple):
    """A place on a path through the graph: kind "phrase" with its text as name, or "passage" with its id and title."""

    kind: str
    name: str
    title: str = ""


class StatedFact(NamedTuple):
    """A normalised triple, and the ids of the passages that state it, in passage order."""

    subject: str
    predicate: str
    object: str
    passages: tuple[str, ...] = ()


class PathStep(NamedTuple):
    """An edge between two nodes of a path, and what it comes of.

    kind is "fact" (facts has every triple of the pair), "mention", "synonym" (cosine is that of the two phrases),
    "name" (two names of one thing, IndexConfig.resolve) or "own" (an edge of the user's). A pair that is joined by a
    fact and as synonyms is a "fact" that has a cosine too.
    """

    kind: str
    weight: float
    facts: tuple[StatedFact, ...] = ()
    cosine: float | None = None


class MassPath(NamedTuple):
    """A way that mass took from a seed to a passage: nodes from the seed on, a step between each two of them.

    mass is the part of the passage's score that came this way and by no detour, in the unit of the score.
    """

    nodes: tuple[PathNode, ...]
    steps: tuple[PathStep, ...]
    mass: float


class SeedShare(NamedTuple):
    """What a phrase seed carried to a passage, in the unit of the score; its weight; what made it a seed.

    facts: the kept facts that name it · entities: the question's entities that were linked to it
    """

    phrase: str
    mass: float
    weight: float = 0.0
    facts: tuple[KeptFact, ...] = ()
    entities: tuple[str, ...] = ()


class WordShare(NamedTuple):
    """A word of the question that a passage has, and what it adds to the passage's BM25 score."""

    word: str
    score: float


class Evidence(NamedTuple):
    """A kind of evidence for a passage: how much there is, its weight in the score, and the id of the passage that it
    takes into account too, if any.
    """

    kind: str
    value: float
    weight: float
    partner: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What walked to a passage, and the strongest paths, best first. own + the masses of seeds + others = mass.

    others is the rest of the served mass, so it bears what the solver left unwalked. It is never below 0: where more
    was left than others had, the shares sum to more than mass, by at most bound.
    mass is the score itself, but where the method makes the score of more evidence than that of the walk.

    own       mass from the passage's own seed, that is from the question's similarity to its text
    seeds     mass from each phrase seed, in the order of the ranking's seeds
    others    mass from the seeds of all other passages
    bound     own and the seeds' masses are short by at most this together, and others is over by it, but for what the
              solver left
    evidence  what the score is the weighed sum of, in a method that weighs more than mass; empty for others
    words     for bm25: the words of the question that the passage has, heaviest first; their scores sum to the score
    note      None, or why no walk can be told of (a ranking by similarity alone); then score is None for a passage that
              is no hit
    """

    passage: Passage
    score: float | None
    mass: float = 0.0
    own: float = 0.0
    seeds: tuple[SeedShare, ...] = ()
    others: float = 0.0
    bound: float = 0.0
    paths: tuple[MassPath, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    words: tuple[WordShare, ...] = ()
    note: str | None = None
