"""Three frozen configurations; their defaults are the papers'. Unknown keys and values out of range are errors."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
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
class Configs:
    """The three configurations of one run; index is None when neither a profile nor an [index] table was given."""

    index: IndexConfig | None
    search: SearchConfig
    run: RunConfig


ConfigT = TypeVar("ConfigT", IndexConfig, SearchConfig, RunConfig)


def with_values(config: ConfigT, values: Mapping[str, Any]) -> ConfigT:
    """The configuration with some keys replaced; a key it does not have is a ConfigError."""
    known = [item.name for item in fields(config)]
    for key in values:
        if key not in known:
            raise ConfigError(f"{type(config).__name__} has no key '{key}'. Its keys are: {', '.join(known)}.")
    return replace(config, **values)


def as_mapping(config: IndexConfig | SearchConfig | RunConfig) -> dict[str, Any]:
    """Plain values, ready for JSON."""
    return asdict(config)


def read_configs(path: Path | None, profile: ProfileName | None = None) -> Configs:
    """The configurations of a TOML file with the tables [index], [search] and [run]; without a file, the defaults."""
    tables = _read_toml(path) if path else {}
    starts: dict[str, Any] = {"index": PROFILES[profile or "default"], "search": SearchConfig(), "run": RunConfig()}
    for name, table in tables.items():
        if name not in starts or not isinstance(table, dict):
            raise ConfigError(f"{path} has '{name}' at its top level. Use the tables [index], [search] and [run].")
        starts[name] = with_values(starts[name], table)
    given = profile is not None or "index" in tables
    return Configs(starts["index"] if given else None, starts["search"], starts["run"])


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The configuration {path} cannot be read: {error.strerror}. Check --config.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration {path} is no TOML: {error}. Correct that line.") from error


def _check_types(config: IndexConfig | SearchConfig | RunConfig) -> None:
    for name, hint in get_type_hints(type(config)).items():
        value = getattr(config, name)
        choices = get_args(hint)
        if choices:
            _require(config, name, value in choices, f"one of {', '.join(map(str, choices))}")
        elif hint is float:
            _require(config, name, isinstance(value, (int, float)) and not isinstance(value, bool), "a number")
        elif hint is bool or hint is int:
            _require(config, name, type(value) is hint, "true or false" if hint is bool else "a whole number")


def _require(config: IndexConfig | SearchConfig | RunConfig, name: str, holds: bool, rule: str) -> None:
    if not holds:
        value = getattr(config, name)
        raise ConfigError(f"The '{name}' of {type(config).__name__} must be {rule}. Got {value!r}.")


PROFILES: Mapping[ProfileName, IndexConfig] = {
    "default": IndexConfig(),
    "oracle": IndexConfig(text_rule="ascii", edge_rule="parallel", keep_empty=True, fact_text="tuple", synonym_cap=101),
}
