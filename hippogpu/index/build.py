"""The straight line from records to a generation: tabulate, encode, link, assemble, commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from hippogpu.config import DiffuseRule, IndexConfig, RunConfig
from hippogpu.disk import failures_of
from hippogpu.embed import Embedder
from hippogpu.graph import assemble
from hippogpu.index.cells import fact_cell_files
from hippogpu.index.counting import counts_of
from hippogpu.index.diffusing import Diffusion, kept_diffusion
from hippogpu.index.edges import PlacedEdges
from hippogpu.index.encoding import encode
from hippogpu.index.reading import Reading
from hippogpu.index.stages import Stages
from hippogpu.index.tidying import BUILDING, building, tidy
from hippogpu.openie import ExtractionReport
from hippogpu.precision import Vectors
from hippogpu.resolve import names_for, with_names
from hippogpu.store import (
    DiffusionMark,
    Encoder,
    Manifest,
    Passages,
    Snapshot,
    StoredVectors,
    load_snapshot,
    publish,
    write_graph,
    write_passages,
    write_tables,
    write_user_edges,
    write_words,
)
from hippogpu.store.files import Entry
from hippogpu.synonyms import KnownSynonyms, find_synonyms
from hippogpu.tables import Tabulated, tabulate
from hippogpu.types import Csr, Edges, Tables
from hippogpu.words import count_words


@dataclass(frozen=True, slots=True)
class CommitReport:
    """What a commit did. changed is False when there was nothing to do: then the generation is the one there was.

    counts     passages, ids, phrases, facts, fact pairs, mentions, synonyms, edges, and user edges where there are any
    extraction passages extracted now, reused, and failed with their reasons
    dropped    triples left out by normalisation, by reason
    truncated  texts encoded for this commit that are longer than the encoder reads
    damage     lines of the extraction logs that were passed over, "FILE:LINE: reason"
    recovered  records that the logs have lost, taken from the generation before
    spoiled    stored blocks of vectors that were damaged, so that their texts were encoded again
    diffusion  "fresh" when the solver "diffused" can serve, "stale" after changes since the last diffusion, or "none"
    seconds    by stage
    peak_bytes by stage, the most memory that the process held at any time of it (Stages.peak_bytes)
    """

    generation: int
    changed: bool
    counts: Mapping[str, int]
    extraction: ExtractionReport
    dropped: Mapping[str, int] = field(default_factory=dict)
    truncated: int = 0
    damage: tuple[str, ...] = ()
    spoiled: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    diffusion: str = "none"
    recovered: int = 0
    peak_bytes: Mapping[str, int] = field(default_factory=dict)


def build(
    root: Path,
    reading: Reading,
    extraction: ExtractionReport,
    own: PlacedEdges,
    *,
    embedder: Embedder,
    anew: bool,
    config: IndexConfig,
    run: RunConfig,
    encoder: Encoder,
    stored: Snapshot | None,
    diffuse: DiffuseRule,
    damping: float,
    stages: Stages,
) -> CommitReport:
    """Runs the line from records and user edges on and publishes the generation after the stored one.

    anew : take no vector and no synonym from what is stored
    """
    passages, taken = reading.passages, None if anew else stored
    with stages("load"):
        if anew:
            with failures_of(root / "vectors"):
                known_vectors(root, None, embedder).clear()
        known = known_vectors(root, taken, embedder)
    with stages("tables"):
        tabulated = _tabulated(root, reading, own, config, run, stages)
        tables = tabulated.tables
    with stages("encode"):
        vectors = encode(
            root,
            passages,
            tables,
            embedder=embedder,
            known=known,
            config=config,
            budget_bytes=run.budget_bytes,
            on_progress=stages.progress,
        )
    with stages("synonyms"):
        synonyms = _synonyms(root, tables, vectors.phrase, config, run, taken, stages)
    with stages("graph"):
        names = names_for(tables, passages.wholes, config)
        joined = with_names(synonyms, names)
        graph = assemble(tables, joined, config.edge_rule, budget_bytes=run.budget_bytes, on_progress=stages.progress)
    with stages("words"):
        words = _words(root, passages, run, stages)
    counts = counts_of(passages, tables, synonyms, graph, names=names)
    counts |= {"user_edges": len(own.edges)} if own.edges else {}
    with stages("commit"):
        files = {
            **write_passages(root, passages),
            **write_tables(root, tables),
            **vectors.files,
            **write_graph(root, graph, synonyms),
            **write_user_edges(root, own.edges, tables.user_edges),
            **words,
        }
    with stages("cells"):
        earlier = taken.manifest if taken else None
        files |= fact_cell_files(root, files, vectors.fact, config, earlier, stages.progress)
    diffused, mark = _diffused(root, files, graph, vectors.passage, stored, diffuse, damping, run, stages)
    with stages("commit"):
        generation = stored.manifest.generation + 1 if stored else 1
        now = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = Manifest(
            generation, now, version("hippogpu"), config, encoder, counts, {**files, **diffused}, diffusion=mark
        )
        # What could not be opened must not become current.
        load_snapshot(root, manifest)
        publish(root, manifest)
        tidy(root, run, known)
    return CommitReport(
        generation,
        True,
        counts,
        extraction,
        tabulated.dropped,
        vectors.truncated,
        reading.damage,
        known.spoiled,
        dict(stages.seconds),
        manifest.diffusion_state,
        reading.recovered,
        dict(stages.peak_bytes),
    )


def _tabulated(
    root: Path, reading: Reading, own: PlacedEdges, config: IndexConfig, run: RunConfig, stages: Stages
) -> Tabulated:
    """The tables; what a killed commit of the same records has finished of them is not done again."""
    rules = json.dumps([config.text_rule, config.keep_empty])
    scratch = building(root, "tables", hashlib.sha256(f"{reading.records.digest()} {rules}".encode()).hexdigest())
    passages = len(reading.records)
    return tabulate(
        reading.records,
        config,
        edges=own.edges,
        rows=own.rows,
        scratch=scratch,
        budget_bytes=run.budget_bytes,
        on_progress=lambda done: stages.progress(done, passages),
    )


def _synonyms(
    root: Path,
    tables: Tables,
    vectors: Vectors,
    config: IndexConfig,
    run: RunConfig,
    taken: Snapshot | None,
    stages: Stages,
) -> Edges:
    """The synonym edges, of those phrases searched alone whose lists the generation taken over does not settle."""
    return find_synonyms(
        tables.phrases,
        vectors,
        config,
        known=known_synonyms(taken) if taken else None,
        budget_bytes=run.budget_bytes,
        scratch=root / BUILDING / "synonyms",
        backend=run.backend,
        on_progress=stages.progress,
    )


def _words(root: Path, passages: Passages, run: RunConfig, stages: Stages) -> dict[str, Entry]:
    """The files of the words of all passages, counted anew."""
    counted = count_words(
        passages.wholes,
        passages.first_titles(),
        budget_bytes=run.budget_bytes,
        scratch=root,
        on_progress=stages.progress,
    )
    return write_words(root, counted)


def known_vectors(root: Path, stored: Snapshot | None, embedder: Embedder) -> StoredVectors:
    """Vectors by text: those of unfinished commits, and those of a generation."""
    known = StoredVectors(root / "vectors", embedder.name, embedder.width)
    if stored is not None:
        known.know(stored.passages.wholes, stored.passage_vectors)
        known.know(stored.tables.phrases, stored.phrase_vectors)
        known.know(stored.tables.facts.text, stored.fact_vectors)
    return known


def known_synonyms(stored: Snapshot) -> KnownSynonyms:
    return KnownSynonyms(stored.tables.phrases, stored.phrase_vectors, stored.synonyms)


def _diffused(
    root: Path,
    files: Mapping[str, Entry],
    graph: Csr,
    vectors: Vectors,
    stored: Snapshot | None,
    rule: DiffuseRule,
    damping: float,
    run: RunConfig,
    stages: Stages,
) -> tuple[dict[str, Entry], DiffusionMark | None]:
    """The diffused vectors of these files: those there are while they fit, new ones when that is quick, else none."""
    kept, mark = kept_diffusion(stored, files)
    work = Diffusion(root, files, damping=damping, run=run)
    fits = bool(kept) and mark is not None and mark.damping == damping
    if fits or not work.due(rule, graph, vectors.shape[1]):
        return kept, mark
    with stages("diffuse"):
        return work.run(graph, vectors, stages.progress)
