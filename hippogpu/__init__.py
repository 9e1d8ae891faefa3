"""hippogpu: associative retrieval as sparse linear algebra.

The writer is Index, the reader Searcher; everything else is a value or a part to plug in.
"""

from __future__ import annotations

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hippogpu.config import PROFILES, AnswerConfig, ExtractConfig, IndexConfig, LlmConfig, RunConfig, SearchConfig
    from hippogpu.corpus import read_corpus, read_edges, read_qrels, read_queries
    from hippogpu.embed import Embedder, default_embedder, embedder_from_name
    from hippogpu.errors import HippoError
    from hippogpu.exchange import (
        CollectionReport,
        ExportReport,
        Fields,
        ImportReport,
        export_index,
        import_collection,
        import_parquet,
        keep_vectors,
    )
    from hippogpu.index import (
        AddReport,
        CleanReport,
        CommitReport,
        DeleteReport,
        DiffuseReport,
        EdgeReport,
        Index,
        clean_index,
        diffuse_index,
        verify_index,
    )
    from hippogpu.llm import Llm, open_llm
    from hippogpu.methods.entities import EntityReader, QuestionEntities
    from hippogpu.methods.filter import FactFilter, Verdict
    from hippogpu.methods.given_entities import GivenEntities, read_entities
    from hippogpu.methods.spacy_entities import SpacyEntities
    from hippogpu.openie import (
        ExtractionReport,
        Extractor,
        LlmExtractor,
        NoExtractor,
        ReplayExtractor,
        SpacyExtractor,
        open_extractor,
    )
    from hippogpu.reading import Answer, CrossEncoderFilter, LlmEntities, LlmFilter, answer_questions, read_answers
    from hippogpu.searcher import Searcher
    from hippogpu.types import (
        Explanation,
        Hit,
        KeptFact,
        LinkedEntity,
        MassPath,
        Passage,
        PathNode,
        PathStep,
        Ranking,
        Record,
        Seed,
        SeedShare,
        StatedFact,
        Triple,
        UserEdge,
        WordShare,
    )

__version__ = version("hippogpu")

_HOMES = {
    "hippogpu.config": (
        *("PROFILES", "AnswerConfig", "ExtractConfig", "IndexConfig", "LlmConfig", "RunConfig", "SearchConfig"),
    ),
    "hippogpu.corpus": ("read_corpus", "read_edges", "read_qrels", "read_queries"),
    "hippogpu.embed": ("Embedder", "default_embedder", "embedder_from_name"),
    "hippogpu.errors": ("HippoError",),
    "hippogpu.exchange": (
        *("CollectionReport", "ExportReport", "Fields", "ImportReport", "export_index"),
        *("import_collection", "import_parquet", "keep_vectors"),
    ),
    "hippogpu.index": (
        *("AddReport", "CleanReport", "CommitReport", "DeleteReport", "DiffuseReport", "EdgeReport", "Index"),
        *("clean_index", "diffuse_index", "verify_index"),
    ),
    "hippogpu.llm": ("Llm", "open_llm"),
    "hippogpu.methods.entities": ("EntityReader", "QuestionEntities"),
    "hippogpu.methods.filter": ("FactFilter", "Verdict"),
    "hippogpu.methods.given_entities": ("GivenEntities", "read_entities"),
    "hippogpu.methods.spacy_entities": ("SpacyEntities",),
    "hippogpu.openie": (
        *("ExtractionReport", "Extractor", "LlmExtractor", "NoExtractor", "ReplayExtractor", "SpacyExtractor"),
        "open_extractor",
    ),
    "hippogpu.reading": (
        *("Answer", "CrossEncoderFilter", "LlmEntities", "LlmFilter", "answer_questions", "read_answers"),
    ),
    "hippogpu.searcher": ("Searcher",),
    "hippogpu.types": (
        *("Explanation", "Hit", "KeptFact", "LinkedEntity", "MassPath", "Passage", "PathNode", "PathStep", "Ranking"),
        *("Record", "Seed", "SeedShare", "StatedFact", "Triple", "UserEdge", "WordShare"),
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "PROFILES",
    "AddReport",
    "Answer",
    "AnswerConfig",
    "CleanReport",
    "CollectionReport",
    "CommitReport",
    "CrossEncoderFilter",
    "DeleteReport",
    "DiffuseReport",
    "EdgeReport",
    "Embedder",
    "EntityReader",
    "Explanation",
    "ExportReport",
    "ExtractConfig",
    "ExtractionReport",
    "Extractor",
    "FactFilter",
    "Fields",
    "GivenEntities",
    "HippoError",
    "Hit",
    "ImportReport",
    "Index",
    "IndexConfig",
    "KeptFact",
    "LinkedEntity",
    "Llm",
    "LlmConfig",
    "LlmEntities",
    "LlmExtractor",
    "LlmFilter",
    "MassPath",
    "NoExtractor",
    "Passage",
    "PathNode",
    "PathStep",
    "QuestionEntities",
    "Ranking",
    "Record",
    "ReplayExtractor",
    "RunConfig",
    "SearchConfig",
    "Searcher",
    "Seed",
    "SeedShare",
    "SpacyEntities",
    "SpacyExtractor",
    "StatedFact",
    "Triple",
    "UserEdge",
    "Verdict",
    "WordShare",
    "__version__",
    "answer_questions",
    "clean_index",
    "default_embedder",
    "diffuse_index",
    "embedder_from_name",
    "export_index",
    "import_collection",
    "import_parquet",
    "keep_vectors",
    "open_extractor",
    "open_llm",
    "read_answers",
    "read_corpus",
    "read_edges",
    "read_entities",
    "read_qrels",
    "read_queries",
    "verify_index",
]


def __getattr__(name: str) -> Any:
    """Public names, imported from their rooms at first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'hippogpu' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
