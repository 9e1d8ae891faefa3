"""The configurations of a run, from a file or by default."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

from hippogpu.config.answers import AnswerConfig
from hippogpu.config.models import ExtractConfig, LlmConfig, LlmTask
from hippogpu.config.retrieval import PROFILES, IndexConfig, ProfileName, RunConfig, SearchConfig
from hippogpu.errors import ConfigError


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
    answer: AnswerConfig = field(default_factory=AnswerConfig)

    def llm_for(self, task: LlmTask) -> LlmConfig:
        """The language model of a task: its own, else the common one."""
        return self.llms.get(task, self.llm)


AnyConfig = IndexConfig | SearchConfig | RunConfig | LlmConfig | ExtractConfig | AnswerConfig
ConfigT = TypeVar("ConfigT", IndexConfig, SearchConfig, RunConfig, LlmConfig, ExtractConfig, AnswerConfig)


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
        "answer": AnswerConfig(),
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
        starts[name] = _read_table(path, name, starts[name], own)
    index = starts["index"] if profile is not None or "index" in tables else None
    llms = {task: _read_table(path, f"llm.{task}", starts["llm"], table) for task, table in tasks.items()}
    return Configs(index, starts["search"], starts["run"], starts["llm"], starts["extract"], llms, starts["answer"])


def _read_table(path: Path | None, name: str, start: ConfigT, values: Mapping[str, Any]) -> ConfigT:
    """The configuration with the values of a table; a ConfigError names the table too."""
    try:
        return with_values(start, values)
    except ConfigError as error:
        raise ConfigError(f"[{name}] of {path}: {error}") from error


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The configuration {path} cannot be read: {error.strerror}. Check --config.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration {path} is no TOML: {error}. Correct that line.") from error
