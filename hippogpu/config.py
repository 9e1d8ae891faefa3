"""The frozen configurations; their defaults are the papers'. Unknown keys and values out of range are errors."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from hippogpu.errors import ConfigError
from hippogpu.text import TextRule

EdgeRule = Literal["max", "parallel"]
FactText = Literal["plain", "tuple"]
BackendName = Literal["auto", "cpu", "cuda", "cugraph", "reference"]
MethodName = Literal["hippo2", "dense"]
LinearSolver = Literal["power", "chebyshev"]
ServingSolver = Literal["power", "chebyshev", "diffused"]
SolverName = Literal["auto", "power", "chebyshev", "diffused"]
Precision = Literal["float32", "float64"]
DiffuseRule = Literal["auto", "always", "never"]
FilterName = Literal["none"]
ProfileName = Literal["default", "oracle"]
EngineName = Literal["http", "vllm"]
ExtractorName = Literal["auto", "spacy", "http", "vllm", "replay", "none"]
Prompting = Literal["two-step", "joint"]
LlmTask = Literal["extract", "entities", "filter", "answer"]


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
    """

    text_rule: TextRule = "unicode"
    edge_rule: EdgeRule = "max"
    keep_empty: bool = False
    fact_text: FactText = "plain"
    synonym_threshold: float = 0.8
    synonym_cap: int = 100
    chunk_tokens: int = 0
    chunk_overlap: int = 32

    def __post_init__(self) -> None:
        _check_types(self)
        _require(self, "synonym_threshold", 0.0 < self.synonym_threshold <= 1.0, "in (0, 1]")
        _require(self, "synonym_cap", self.synonym_cap >= 0, "0 or more")
        _require(self, "chunk_tokens", self.chunk_tokens == 0 or self.chunk_tokens >= 8, "0 (off) or at least 8")
        fits = self.chunk_tokens == 0 or self.chunk_overlap <= self.chunk_tokens // 2
        _require(self, "chunk_overlap", self.chunk_overlap >= 0 and fits, "between 0 and half of chunk_tokens")


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """How questions are answered. HippoRAG 2, section 3 and its appendix on hyper-parameters.

    damping          d: the share of mass that walks on at each step, in [0, 1)
    passage_weight   factor of the passage seeds against the phrase seeds, 0 or more
    top_facts        facts that go to the filter, at least 1
    top_phrases      phrase seeds kept, at least 1
    tolerance        bound of the power iteration's L1 error, in (0, 1); what chebyshev's shrinks to
    epsilon          the push of diffused first stops when no residual is above epsilon · degree, in (0, 1]
    least_epsilon    how far epsilon is lowered for a query that is not certified yet, above 0 and at most epsilon
    """

    method: MethodName = "hippo2"
    solver: SolverName = "auto"
    filter: FilterName = "none"
    damping: float = 0.5
    passage_weight: float = 0.05
    top_facts: int = 5
    top_phrases: int = 5
    tolerance: float = 1e-6
    epsilon: float = 1e-5
    least_epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check_types(self)
        _require(self, "damping", 0.0 <= self.damping < 1.0, "in [0, 1)")
        _require(self, "passage_weight", 0.0 <= self.passage_weight < float("inf"), "0 or more")
        _require(self, "top_facts", self.top_facts >= 1, "at least 1")
        _require(self, "top_phrases", self.top_phrases >= 1, "at least 1")
        _require(self, "tolerance", 0.0 < self.tolerance < 1.0, "in (0, 1)")
        _require(self, "epsilon", 0.0 < self.epsilon <= 1.0, "above 0 and at most 1")
        _require(self, "least_epsilon", 0.0 < self.least_epsilon <= self.epsilon, "above 0 and at most epsilon")


@dataclass(frozen=True, slots=True)
class RunConfig:
    """How the machine is used; changes no result.

    budget_bytes  most memory that one blockwise product or one batch of questions may take for its scores
    """

    backend: BackendName = "auto"
    budget_bytes: int = 512 * 2**20

    def __post_init__(self) -> None:
        _check_types(self)
        _require(self, "budget_bytes", self.budget_bytes >= 2**20, "at least 1048576 (1 MiB)")


@dataclass(frozen=True, slots=True)
class LlmConfig:
    """Which language model answers, and how it is reached.

    engine            "http" for any server that speaks the OpenAI protocol, "vllm" for vLLM in this process
    url               base address of the API (https://host/v1), for http
    model             name of the model, or for vllm a name or folder; "" when none is configured
    key_variable      environment variable that holds the API key
    in_flight         requests held at once, at least 1
    timeout_s         seconds that one request may take
    attempts          how often a request is sent before a busy or broken server is given up on
    temperature       0 is greedy
    window            most tokens of prompt and reply together; 0 for the model's own
    data_parallel     copies of the model, each on its own GPUs, for vllm
    tensor_parallel   GPUs that share one copy, for vllm
    gpu_memory        share of each GPU's memory that vllm may take, in (0, 1]
    dtype             number type of the weights for vllm ("auto", "float32", "bfloat16", …)
    remember          keep replies in the index folder, so that the same request is never paid twice
    prompt_price      price of a million prompt tokens; -1 for the table's
    cached_price      price of a million prompt tokens from the server's prefix cache; -1 for the table's
    completion_price  price of a million tokens of replies; -1 for the table's
    """

    engine: EngineName = "http"
    url: str = ""
    model: str = ""
    key_variable: str = "HIPPOGPU_LLM_API_KEY"
    in_flight: int = 64
    timeout_s: float = 120.0
    attempts: int = 6
    temperature: float = 0.0
    window: int = 0
    data_parallel: int = 1
    tensor_parallel: int = 1
    gpu_memory: float = 0.9
    dtype: str = "auto"
    remember: bool = True
    prompt_price: float = -1.0
    cached_price: float = -1.0
    completion_price: float = -1.0

    def __post_init__(self) -> None:
        _check_types(self)
        for name in ("in_flight", "attempts", "data_parallel", "tensor_parallel"):
            _require(self, name, getattr(self, name) >= 1, "at least 1")
        _require(self, "timeout_s", 0.0 < self.timeout_s < float("inf"), "above 0")
        _require(self, "temperature", 0.0 <= self.temperature <= 2.0, "in [0, 2]")
        _require(self, "window", self.window == 0 or self.window >= 256, "0 (the model's own) or at least 256")
        _require(self, "gpu_memory", 0.0 < self.gpu_memory <= 1.0, "in (0, 1]")
        _require(self, "url", not self.url or self.url.startswith(("http://", "https://")), "an http(s) address")

    @property
    def configured(self) -> bool:
        """Whether there is enough here to ask a model."""
        return bool(self.model) and (self.engine == "vllm" or bool(self.url))


@dataclass(frozen=True, slots=True)
class ExtractConfig:
    """How passages are read for triples.

    extractor        "auto" takes the configured language model, else spaCy
    prompting        "two-step" asks for entities, then for triples (the papers'); "joint" asks for both at once
    verify           ask again, of each passage, which of its triples it really states
    max_tokens       most tokens of a reply at first; a reply that was cut is asked for again with twice as many
    largest_tokens   most tokens that a reply is ever given
    tries            how often a passage is asked for in one run when the reply cannot be used
    quarantine_after failed runs after which a passage is left alone until --retry-failed
    spacy_model      name of the spaCy model; "" for the small English one
    """

    extractor: ExtractorName = "auto"
    prompting: Prompting = "two-step"
    verify: bool = False
    max_tokens: int = 1024
    largest_tokens: int = 4096
    tries: int = 3
    quarantine_after: int = 3
    spacy_model: str = ""

    def __post_init__(self) -> None:
        _check_types(self)
        for name in ("max_tokens", "tries", "quarantine_after"):
            _require(self, name, getattr(self, name) >= 1, "at least 1")
        _require(self, "largest_tokens", self.largest_tokens >= self.max_tokens, "at least max_tokens")


@dataclass(frozen=True, slots=True)
class Configs:
    """The configurations of one run; index is None when neither a profile nor an [index] table was given.

    llms : the language model of each task that has a table of its own ([llm.extract], …)
    """

    index: IndexConfig | None
    search: SearchConfig
    run: RunConfig
    llm: LlmConfig = field(default_factory=LlmConfig)
    extract: ExtractConfig = field(default_factory=ExtractConfig)
    llms: Mapping[LlmTask, LlmConfig] = field(default_factory=dict)

    def llm_for(self, task: LlmTask) -> LlmConfig:
        """The language model of a task: its own, else the common one."""
        return self.llms.get(task, self.llm)


AnyConfig = IndexConfig | SearchConfig | RunConfig | LlmConfig | ExtractConfig
ConfigT = TypeVar("ConfigT", IndexConfig, SearchConfig, RunConfig, LlmConfig, ExtractConfig)


def with_values(config: ConfigT, values: Mapping[str, Any]) -> ConfigT:
    """The configuration with some keys replaced; a key it does not have is a ConfigError."""
    known = [item.name for item in fields(config)]
    for key in values:
        if key not in known:
            raise ConfigError(f"{type(config).__name__} has no key '{key}'. Its keys are: {', '.join(known)}.")
    return replace(config, **values)


def as_mapping(config: AnyConfig) -> dict[str, Any]:
    """Plain values, ready for JSON."""
    return asdict(config)


def read_configs(path: Path | None, profile: ProfileName | None = None) -> Configs:
    """The configurations of a TOML file with a table each ([index], [search], …); without a file, the defaults.

    [llm] may hold tables of its own, one a task ([llm.extract]), that say what differs there.
    """
    tables = _read_toml(path) if path else {}
    starts: dict[str, Any] = {
        "index": PROFILES[profile or "default"],
        "search": SearchConfig(),
        "run": RunConfig(),
        "llm": LlmConfig(),
        "extract": ExtractConfig(),
    }
    tasks: dict[LlmTask, dict[str, Any]] = {}
    for name, table in tables.items():
        if name not in starts or not isinstance(table, dict):
            known = ", ".join(f"[{table}]" for table in starts)
            raise ConfigError(f"{path} has '{name}' at its top level. Use the tables {known}.")
        own = table
        if name == "llm":
            tasks = {task: table[task] for task in get_args(LlmTask) if isinstance(table.get(task), dict)}
            own = {key: value for key, value in table.items() if key not in tasks}
        starts[name] = with_values(starts[name], own)
    index = starts["index"] if profile is not None or "index" in tables else None
    llms = {task: with_values(starts["llm"], table) for task, table in tasks.items()}
    return Configs(index, starts["search"], starts["run"], starts["llm"], starts["extract"], llms)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The configuration {path} cannot be read: {error.strerror}. Check --config.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration {path} is no TOML: {error}. Correct that line.") from error


def _check_types(config: AnyConfig) -> None:
    for name, hint in get_type_hints(type(config)).items():
        value = getattr(config, name)
        choices = get_args(hint)
        if choices:
            _require(config, name, value in choices, f"one of {', '.join(map(str, choices))}")
        elif hint is float:
            _require(config, name, isinstance(value, (int, float)) and not isinstance(value, bool), "a number")
        elif hint is bool or hint is int:
            _require(config, name, type(value) is hint, "true or false" if hint is bool else "a whole number")


def _require(config: AnyConfig, name: str, holds: bool, rule: str) -> None:
    if not holds:
        value = getattr(config, name)
        raise ConfigError(f"The '{name}' of {type(config).__name__} must be {rule}. Got {value!r}.")


PROFILES: Mapping[ProfileName, IndexConfig] = {
    "default": IndexConfig(),
    "oracle": IndexConfig(text_rule="ascii", edge_rule="parallel", keep_empty=True, fact_text="tuple", synonym_cap=101),
}
