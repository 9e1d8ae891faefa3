"""How an index is built, how questions are answered, how the machine is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from hippogpu.config.checks import check_types, require
from hippogpu.errors import ConfigError
from hippogpu.text import TextRule

EdgeRule = Literal["max", "parallel"]
FactText = Literal["plain", "tuple"]
ResolveRule = Literal["none", "names"]
VectorType = Literal["float32", "float16", "int8"]
SynonymSearch = Literal["exact", "cells"]
FactSearch = Literal["exact", "ivfpq"]
FactStore = Literal["own", "faiss", "cagra"]
BackendName = Literal["auto", "cpu", "cuda", "cugraph", "reference"]
MethodName = Literal["hippo", "hippo2", "hippo1", "dense", "bm25", "ensemble", "fusion", "seeds-only", "neighbours"]
LinearSolver = Literal["power", "chebyshev"]
ServingSolver = Literal["power", "chebyshev", "diffused"]
SolverName = Literal["auto", "power", "chebyshev", "diffused"]
Precision = Literal["float32", "float64"]
DiffuseRule = Literal["auto", "always", "never"]
FilterName = Literal["none", "llm", "gap", "agreement", "cross-encoder"]
FilterFails = Literal["keep", "drop"]
EntitySource = Literal["spacy", "llm", "given"]
LinkName = Literal["fact", "entity", "phrase"]
RerankName = Literal["learned", "lead", "none"]
ForceRule = Literal["extract", "build", "all"]
ProfileName = Literal["default", "oracle"]


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """What an index is built by; stored in its manifest and fixed for its life.

    text_rule          how phrases are normalised (text.normalise)
    edge_rule          how fact counts and synonym scores of one pair of phrases combine (graph.assemble)
    keep_empty         keep phrases that normalise to nothing as one node; else they go with their triple
    fact_text          what is encoded for a fact: "subject predicate object", or the text of the Python tuple
    synonym_threshold  least cosine of a synonym edge, in (0, 1]
    synonym_cap        most synonyms that one phrase may find
    chunk_tokens       split passages longer than this many tokens; 0 never splits
    chunk_overlap      tokens that neighbouring chunks share
    resolve            join phrases that name one thing in another way by rules (names), or not (none)
    passage_vectors    how vectors of passages are stored (precision.rounded); all that is made of them is made of those
    phrase_vectors     the same for phrases
    fact_vectors       the same for facts
    synonym_search     compare every phrase with all others (exact), or with those of near cells only (cells)
    fact_search        compare a question with every fact (exact), or with those of near cells first (ivfpq)
    """

    text_rule: TextRule = "unicode"
    edge_rule: EdgeRule = "max"
    keep_empty: bool = False
    fact_text: FactText = "plain"
    synonym_threshold: float = 0.8
    synonym_cap: int = 100
    chunk_tokens: int = 0
    chunk_overlap: int = 32
    resolve: ResolveRule = "none"
    passage_vectors: VectorType = "float32"
    phrase_vectors: VectorType = "float32"
    fact_vectors: VectorType = "float32"
    synonym_search: SynonymSearch = "exact"
    fact_search: FactSearch = "exact"

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "synonym_threshold", 0.0 < self.synonym_threshold <= 1.0, "in (0, 1]")
        require(self, "synonym_cap", self.synonym_cap >= 0, "0 or more")
        require(self, "chunk_tokens", self.chunk_tokens == 0 or self.chunk_tokens >= 8, "0 (off) or at least 8")
        fits = self.chunk_tokens == 0 or self.chunk_overlap <= self.chunk_tokens // 2
        require(self, "chunk_overlap", self.chunk_overlap >= 0 and fits, "between 0 and half of chunk_tokens")


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """How questions are answered. HippoRAG 2, section 3 and its appendix on hyper-parameters.

    What a method does not use changes nothing for it (docs/methods.md).

    filter           which of the candidate facts are kept (recognition memory); llm and cross-encoder need a model
    filter_fails     what is kept of a question's facts when the filter cannot judge them: all (keep) or none (drop)
    filter_model     the cross-encoder of the filter of that name: a folder, or a name that sentence-transformers knows
    gap_share        filter gap: facts with less than this share of the best one's score go, in [0, 1]
    entities         who names the entities of a question, where a method links those
    link             what links a question to phrases: the facts near to it, its entities, or the phrases near to it
    synonyms         walk along synonym edges
    specificity      divide a phrase seed by the number of passages that mention the phrase
    passage_nodes    walk over passages too; without them a passage scores the mass of the phrases in its facts
    damping          d: the share of mass that walks on at each step, in [0, 1)
    passage_weight   factor of the passage seeds against the phrase seeds, 0 or more
    top_facts        facts that go to the filter, at least 1
    top_phrases      phrase seeds kept, at least 1
    exact_facts      compare a question with every fact, also in an index that has cells of them (fact_search = "ivfpq")
    fact_probes      with cells: so many of the nearest are looked at, at least 1
    fact_shortlist   with cells: facts that are compared by their stored vectors, at least 1
    bm25_k1          how soon more of a word counts no more, 0 or more
    bm25_b           how far long passages count less, in [0, 1]
    bm25_common      words in more than this share of the passages count nothing, in (0, 1]
    certain          ensemble: a question all of whose links are more alike than this is ranked by hippo1 alone
    fuse             fusion: the methods whose ranks are fused, joined by +
    fuse_depth       fusion: how many passages of each are looked at (k, when that is more)
    fuse_constant    fusion: what is added to every rank before it is inverted, 0 or more
    lead_facts       hippo: facts that go to the filter there, at least 1
    doubt            hippo: a question whose nearest fact has a lower cosine walks from none, in [-1, 1]
    names            hippo: walk from the phrases that a question names word for word, too
    name_weight      hippo: factor of that walk in the order of the graph, 0 or more
    lexical_passages hippo: passages that start the walk because BM25 puts them first, 0 or more
    lexical_weight   hippo: factor of the words against the vectors, where both say how near a passage is, 0 or more
    focus            hippo: how strongly edges weigh by the likeness of their facts to the question, 0 (off) or more
    hubs             hippo: edges weigh less by this power of the degrees of their ends, 0 (off) or more
    pool             hippo: passages of each of two orders, by graph and by text, that are weighed, at least 1
    partners         hippo: the first passages of the graph's order that may be partners of others, at least 1
    pairs            hippo: weigh how much of the question a passage and a partner cover together
    rerank           hippo: how the pool is ordered: by learned weights; by the graph behind the nearest by text (lead);
                     by the graph
    push_epsilon     hippo: what a push may leave of a node's mass, as a share of degree · seeds, in (0, 1]
    tolerance        bound of the power iteration's L1 error, in (0, 1); what chebyshev's shrinks to
    epsilon          the push of diffused first stops when no residual is above epsilon · degree, in (0, 1]
    least_epsilon    how far epsilon is lowered for a query that is not certified yet, above 0 and at most epsilon
    """

    method: MethodName = "hippo"
    solver: SolverName = "auto"
    filter: FilterName = "none"
    filter_fails: FilterFails = "keep"
    filter_model: str = ""
    gap_share: float = 0.85
    entities: EntitySource = "spacy"
    link: LinkName = "fact"
    synonyms: bool = True
    specificity: bool = True
    passage_nodes: bool = True
    damping: float = 0.5
    passage_weight: float = 0.05
    top_facts: int = 5
    top_phrases: int = 5
    exact_facts: bool = False
    fact_probes: int = 128
    fact_shortlist: int = 256
    bm25_k1: float = 0.9
    bm25_b: float = 0.4
    bm25_common: float = 0.3
    certain: float = 0.9
    fuse: str = "hippo2+bm25+dense"
    fuse_depth: int = 100
    fuse_constant: int = 60
    lead_facts: int = 3
    doubt: float = -1.0
    names: bool = True
    name_weight: float = 0.25
    lexical_passages: int = 30
    lexical_weight: float = 0.5
    focus: float = 0.0
    hubs: float = 0.0
    pool: int = 100
    partners: int = 10
    pairs: bool = True
    rerank: RerankName = "learned"
    push_epsilon: float = 1e-6
    tolerance: float = 1e-6
    epsilon: float = 1e-5
    least_epsilon: float = 1e-8

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "damping", 0.0 <= self.damping < 1.0, "in [0, 1)")
        require(self, "passage_weight", 0.0 <= self.passage_weight < float("inf"), "0 or more")
        require(self, "top_facts", self.top_facts >= 1, "at least 1")
        require(self, "top_phrases", self.top_phrases >= 1, "at least 1")
        for name in ("fact_probes", "fact_shortlist"):
            require(self, name, getattr(self, name) >= 1, "at least 1")
        require(self, "gap_share", 0.0 <= self.gap_share <= 1.0, "in [0, 1]")
        require(self, "bm25_k1", 0.0 <= self.bm25_k1 < float("inf"), "0 or more")
        require(self, "bm25_b", 0.0 <= self.bm25_b <= 1.0, "in [0, 1]")
        require(self, "bm25_common", 0.0 < self.bm25_common <= 1.0, "in (0, 1]")
        require(self, "certain", -1.0 <= self.certain <= 1.0, "a cosine, in [-1, 1]")
        require(self, "fuse", self._fuses(), "different methods other than fusion, joined by +")
        require(self, "fuse_depth", self.fuse_depth >= 1, "at least 1")
        require(self, "fuse_constant", self.fuse_constant >= 0, "0 or more")
        for name in ("lead_facts", "pool", "partners"):
            require(self, name, getattr(self, name) >= 1, "at least 1")
        require(self, "doubt", -1.0 <= self.doubt <= 1.0, "a cosine, in [-1, 1]")
        require(self, "lexical_passages", self.lexical_passages >= 0, "0 or more")
        for name in ("name_weight", "lexical_weight", "focus", "hubs"):
            require(self, name, 0.0 <= getattr(self, name) < float("inf"), "0 or more")
        require(self, "push_epsilon", 0.0 < self.push_epsilon <= 1.0, "above 0 and at most 1")
        require(self, "tolerance", 0.0 < self.tolerance < 1.0, "in (0, 1)")
        require(self, "epsilon", 0.0 < self.epsilon <= 1.0, "above 0 and at most 1")
        require(self, "least_epsilon", 0.0 < self.least_epsilon <= self.epsilon, "above 0 and at most epsilon")
        self._check_together()

    @property
    def fused(self) -> tuple[MethodName, ...]:
        """The methods of fuse."""
        return cast("tuple[MethodName, ...]", tuple(self.fuse.split("+")))

    def _fuses(self) -> bool:
        names = self.fuse.split("+")
        return len(set(names)) == len(names) and set(names) <= set(get_args(MethodName)) - {"fusion"}

    def _check_together(self) -> None:
        """ConfigError for settings that exclude each other."""
        if self.solver == "diffused" and not (self.synonyms and self.passage_nodes):
            raise ConfigError(
                "The diffused vectors are of the whole graph: solver 'diffused' cannot go with synonyms = false or "
                "passage_nodes = false. Leave the solver to 'auto'."
            )
        if self.filter != "none" and self.link != "fact":
            raise ConfigError(
                f"The filter '{self.filter}' judges facts, and link '{self.link}' takes none. Set filter to 'none', or "
                "link to 'fact'."
            )


@dataclass(frozen=True, slots=True)
class RunConfig:
    """How the machine is used; changes no result, but for fact_store = "cagra", whose graph misses some facts.

    budget_bytes  most memory that one blockwise product or one batch of questions may take for its scores
    fact_store    what finds the facts near to a question: our own loops, FAISS (on the GPU with the backend cuda), or a
                  graph of cuVS on the GPU (docs/vectors.md)
    grace_s       seconds for which a commit leaves the files of a generation after the next one has replaced it
    """

    backend: BackendName = "auto"
    budget_bytes: int = 512 * 2**20
    fact_store: FactStore = "own"
    grace_s: float = 60.0

    def __post_init__(self) -> None:
        check_types(self)
        require(self, "budget_bytes", self.budget_bytes >= 2**20, "at least 1048576 (1 MiB)")
        require(self, "grace_s", self.grace_s >= 0.0, "0 or more")


PROFILES: Mapping[ProfileName, IndexConfig] = {
    "default": IndexConfig(),
    "oracle": IndexConfig(text_rule="ascii", edge_rule="parallel", keep_empty=True, fact_text="tuple", synonym_cap=101),
}
