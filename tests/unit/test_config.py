"""Configurations: checked when made, read from TOML."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from hippogpu.config import (
    PROFILES,
    ExtractConfig,
    IndexConfig,
    LlmConfig,
    RunConfig,
    SearchConfig,
    as_mapping,
    read_configs,
    with_values,
)
from hippogpu.errors import ConfigError

WRONG: list[tuple[type, str, Any]] = [
    (IndexConfig, "text_rule", "latin"),
    (IndexConfig, "edge_rule", "sum"),
    (IndexConfig, "keep_empty", 1),
    (IndexConfig, "synonym_threshold", 0.0),
    (IndexConfig, "synonym_threshold", 1.001),
    (IndexConfig, "synonym_threshold", float("nan")),
    (IndexConfig, "synonym_threshold", "0.8"),
    (IndexConfig, "synonym_threshold", True),
    (IndexConfig, "synonym_cap", -1),
    (IndexConfig, "synonym_cap", 1.0),
    (IndexConfig, "chunk_tokens", 7),
    (IndexConfig, "chunk_overlap", -1),
    (SearchConfig, "method", "magic"),
    (SearchConfig, "damping", 1.0),
    (SearchConfig, "damping", -0.1),
    (SearchConfig, "damping", float("nan")),
    (SearchConfig, "passage_weight", float("inf")),
    (SearchConfig, "top_facts", 0),
    (SearchConfig, "top_phrases", False),
    (SearchConfig, "tolerance", 0.0),
    (SearchConfig, "tolerance", None),
    (RunConfig, "backend", "cuda9"),
    (RunConfig, "budget_bytes", 2**20 - 1),
    *((LlmConfig, key, value) for key in ("url", "model", "key_variable", "dtype") for value in (5, None, True)),
    (ExtractConfig, "spacy_model", 3),
]


@pytest.mark.parametrize(("kind", "key", "value"), WRONG)
def test_a_value_out_of_range_names_configuration_key_and_value(kind: type, key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"'{key}' of {kind.__name__} must be .*Got {value!r}"):
        kind(**{key: value})


def test_a_refused_address_is_shown_without_its_password() -> None:
    with pytest.raises(ConfigError, match=r"Got 'htp://\*\*\*@host/v1'"):
        LlmConfig(url="htp://name:pass/word@host/v1")


@pytest.mark.parametrize(
    "values", [{"synonym_threshold": 1.0}, {"synonym_cap": 0}, {"chunk_tokens": 8, "chunk_overlap": 4}]
)
def test_values_at_the_ends_of_their_ranges_are_taken(values: dict[str, Any]) -> None:
    assert as_mapping(IndexConfig(**values)).items() >= values.items()


def test_an_overlap_above_half_of_the_chunk_is_refused() -> None:
    with pytest.raises(ConfigError, match="half of chunk_tokens"):
        IndexConfig(chunk_tokens=8, chunk_overlap=5)


def test_an_unknown_key_is_an_error_that_lists_the_keys() -> None:
    with pytest.raises(ConfigError, match=r"no key 'dampnig'.*damping"):
        with_values(SearchConfig(), {"dampnig": 0.5})


def test_configurations_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        SearchConfig().damping = 0.9  # type: ignore[misc]


@pytest.mark.parametrize("config", [IndexConfig(), PROFILES["oracle"], SearchConfig(), RunConfig()])
def test_a_configuration_comes_back_from_its_mapping(config: Any) -> None:
    assert with_values(type(config)(), as_mapping(config)) == config


def test_the_defaults_are_those_of_the_papers() -> None:
    search = SearchConfig()
    values = (search.damping, search.passage_weight, search.top_facts, search.top_phrases)
    assert (values, IndexConfig().synonym_threshold) == ((0.5, 0.05, 5, 5), 0.8)


def test_the_oracle_profile_differs_where_the_papers_library_does() -> None:
    default, oracle = as_mapping(PROFILES["default"]), as_mapping(PROFILES["oracle"])
    changed = {key for key in default if default[key] != oracle[key]}
    assert changed == {"text_rule", "edge_rule", "keep_empty", "fact_text", "synonym_cap"}


def test_tables_of_a_file_replace_values_of_their_configuration_only(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[search]\ndamping = 0.3\n[run]\nbackend = 'cpu'\n")
    configs = read_configs(path)
    assert (configs.index, configs.search.damping, configs.run.backend) == (None, 0.3, "cpu")


def test_an_index_table_changes_the_chosen_profile(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[index]\nsynonym_cap = 7\n")
    assert read_configs(path, "oracle").index == with_values(PROFILES["oracle"], {"synonym_cap": 7})


def test_without_a_file_and_profile_the_index_is_not_configured() -> None:
    assert read_configs(None) == read_configs(None)
    assert read_configs(None).index is None


@pytest.mark.parametrize("text", ["damping = 0.5", "[searching]\n", "[search\n", "search = 1", "\xff"])
def test_a_file_that_cannot_mean_anything_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"c\.toml"):
        read_configs(tmp_path / "c.toml")


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml"):
        read_configs(tmp_path / "gone.toml")
