"""The frozen configurations; their defaults are the papers'. Unknown keys and values out of range are errors."""

from __future__ import annotations

from hippogpu.config.answers import AnswerConfig
from hippogpu.config.files import Configs, as_mapping, read_configs, with_values
from hippogpu.config.models import EngineName, ExtractConfig, ExtractorName, LlmConfig, LlmTask, Prompting
from hippogpu.config.retrieval import (
    PROFILES,
    BackendName,
    DiffuseRule,
    EdgeRule,
    EntitySource,
    FactText,
    FilterFails,
    FilterName,
    ForceRule,
    IndexConfig,
    LinearSolver,
    LinkName,
    MethodName,
    Precision,
    ProfileName,
    RerankName,
    RunConfig,
    SearchConfig,
    ServingSolver,
    SolverName,
)

__all__ = [
    "PROFILES",
    "AnswerConfig",
    "BackendName",
    "Configs",
    "DiffuseRule",
    "EdgeRule",
    "EngineName",
    "EntitySource",
    "ExtractConfig",
    "ExtractorName",
    "FactText",
    "FilterFails",
    "FilterName",
    "ForceRule",
    "IndexConfig",
    "LinearSolver",
    "LinkName",
    "LlmConfig",
    "LlmTask",
    "MethodName",
    "Precision",
    "ProfileName",
    "Prompting",
    "RerankName",
    "ResolveRule",
    "RunConfig",
    "SearchConfig",
    "ServingSolver",
    "SolverName",
    "as_mapping",
    "read_configs",
    "with_values",
]
