"""Passages of a vector store into an index, their vectors in the place of encoding them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hippogpu.config import DiffuseRule, IndexConfig, RunConfig, SearchConfig
from hippogpu.embed import Embedder
from hippogpu.errors import EncoderMismatchError
from hippogpu.exchange.points_read import Fields, check_encoder, read_points
from hippogpu.exchange.values import Form, OnProgress, form_of, silent
from hippogpu.index import AddReport, CommitReport, Index
from hippogpu.openie import Extractor, NoExtractor
from hippogpu.store import StoredVectors, current_manifest, has_index
from hippogpu.text import identity
from hippogpu.types import Floats, Passage, Refusal

_BLOCK = 2048


class CollectionReport(NamedTuple):
    """What became of a collection.

    vectors      : how many were taken over · least_cosine: of the texts encoded again to compare; None without vectors
    added, built : see Index.add and Index.commit
    refused      : points that are no passage with a vector, or that the index refused, and why
    """

    vectors: int
    least_cosine: float | None
    added: AddReport
    built: CommitReport
    refused: tuple[Refusal, ...]


def import_collection(
    path: str | Path,
    source: str | Path,
    *,
    embedder: Embedder,
    encoder_spec: str = "",
    form: Form | None = None,
    collection: str = "passages",
    fields: Fields = Fields(),  # noqa: B008  (frozen)
    vector_field: str | None = None,
    vectors: bool = True,
    extractor: Extractor | None = None,
    config: IndexConfig | None = None,
    run: RunConfig = RunConfig(),  # noqa: B008  (frozen)
    diffuse: DiffuseRule = "auto",
    damping: float = SearchConfig().damping,
    on_progress: OnProgress = silent,
) -> CollectionReport:
    """Adds the passages of a collection to the index at `path`, made when there is none, and commits.

    embedder   the encoder that made the vectors; the index is built with it. A few texts are encoded again and
               compared: EncoderMismatchError when they differ
    vectors    without it the vectors are left out and every text is encoded
    extractor  reads the passages; None for nobody: then they can be searched by their vectors only
    fields     how the store names what a passage has
    """
    root, where = Path(path), Path(source)
    _fitting(root, embedder)
    read = read_points(
        where,
        form or form_of(where),
        collection=collection,
        fields=fields,
        vector_field=vector_field,
        width=embedder.width if vectors else None,
        on_progress=on_progress,
    )
    cosine = check_encoder(read, embedder, where) if vectors else None
    reader = extractor or NoExtractor()
    with Index.open(
        root, extractor=reader, embedder=embedder, config=config, run=run, encoder_spec=encoder_spec
    ) as index:
        added = index.add(read.passages)
        if read.vectors is not None and added.added + added.updated:
            keep_vectors(root, embedder, read.passages, read.vectors)
        built = index.commit(diffuse=diffuse, damping=damping, on_progress=on_progress)
    taken = 0 if read.vectors is None else len(read.vectors)
    return CollectionReport(taken, cosine, added, built, (*read.refused, *added.refused))


def keep_vectors(root: Path, embedder: Embedder, passages: Sequence[Passage], vectors: Floats) -> None:
    """Stores the vectors of passages, so that the next commit takes them over. For who has the index open."""
    known = StoredVectors(root / "vectors", embedder.name, embedder.width)
    for begin in range(0, len(passages), _BLOCK):
        block = passages[begin : begin + _BLOCK]
        known.keep([identity(one.title, one.text) for one in block], vectors[begin : begin + _BLOCK])


def _fitting(root: Path, embedder: Embedder) -> None:
    """EncoderMismatchError, before anything is read, when the index was built with another encoder."""
    if not has_index(root):
        return
    have = current_manifest(root).encoder
    if (have.name, have.width) != (embedder.name, embedder.width):
        raise EncoderMismatchError(
            f"The index '{root}' was built with the encoder '{have.name}' (width {have.width}), not with "
            f"'{embedder.name}' (width {embedder.width}). Import into another folder, or with that encoder."
        )
