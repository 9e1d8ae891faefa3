"""What an index holds leaves it and comes back: Parquet, graphs, and collections of vector stores."""

from __future__ import annotations

from hippogpu.exchange.export import export_index
from hippogpu.exchange.parquet_import import ImportReport, import_parquet
from hippogpu.exchange.points_import import CollectionReport, import_collection, keep_vectors
from hippogpu.exchange.points_read import Fields
from hippogpu.exchange.values import FORMS, VECTOR_STORES, WHATS, ExportReport, Form, ImportForm, What, form_of

__all__ = [
    "FORMS",
    "VECTOR_STORES",
    "WHATS",
    "CollectionReport",
    "ExportReport",
    "Fields",
    "Form",
    "ImportForm",
    "ImportReport",
    "What",
    "export_index",
    "form_of",
    "import_collection",
    "import_parquet",
    "keep_vectors",
]
