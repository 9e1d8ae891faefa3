"""Index: the one writer of an index folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from hippogpu.backends import load_backend
from hippogpu.config import DiffuseRule, ExtractConfig, IndexConfig, RunConfig, SearchConfig, as_mapping
from hippogpu.corpus import chunk, distinct
from hippogpu.embed import Embedder, default_embedder
from hippogpu.errors import ConfigError, CorpusError, EncoderMismatchError, UsageError
from hippogpu.index.build import CommitReport, Progress, Stages, build
from hippogpu.index.diffusing import diffuse_current
from hippogpu.index.edges import EdgeHoldings, EdgeReport
from hippogpu.index.holdings import AddReport, Holdings, unstorable
from hippogpu.index.reading import OnExtracted, Reader, collect, extract, reopened, used_extractors
from hippogpu.openie import ExtractionReport, Extractor, ReplayExtractor
from hippogpu.openie.missing import never
from hippogpu.store import (
    Encoder,
    Passages,
    Snapshot,
    StoredVectors,
    WriterLock,
    current_manifest,
    has_index,
    load_snapshot,
)
from hippogpu.text import identity
from hippogpu.types import Passage, Refusal, UserEdge


class Index:
    """An index folder open for writing; one writer at a time, any number of readers.

    Nothing that add takes in is visible to readers before commit. What was extracted and encoded before a crash is
    kept and not done again.
    """

    def __init__(
        self,
        root: Path,
        *,
        extractor: Extractor | None,
        embedder: Embedder,
        config: IndexConfig | None,
        run: RunConfig,
        encoder_spec: str,
    ) -> None:
        self.root = root
        self._extractor, self._embedder, self._run = extractor, embedder, run
        self._stored = self._load()
        self.config = self._settled(config)
        self._encoder = self._settled_encoder(encoder_spec)
        if self.config.chunk_tokens and isinstance(extractor, ReplayExtractor):
            raise ConfigError("Stored extractions speak of whole passages, so 'chunk_tokens' must be 0 with them.")
        self._holdings, self._edges = self._held()
        self._extraction: ExtractionReport | None = None
        self._lock: WriterLock | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        extractor: Extractor | None = None,
        embedder: Embedder | None = None,
        config: IndexConfig | None = None,
        run: RunConfig = RunConfig(),  # noqa: B008  (frozen)
        encoder_spec: str = "",
    ) -> Self:
        """The index at the path, made on the first commit when there is none.

        extractor    reads new passages; None will do as long as nothing new is added
        embedder     default_embedder() when None; EncoderMismatchError when the index was built with another
        config       the index's own, or the default for a new one, when None; ConfigError when it differs
        encoder_spec how Searcher.open makes the encoder again (embed.embedder_from_name); "minilm" for the default
        IndexLockedError while another writer holds the folder.
        """
        root = Path(path)
        if root.exists() and not root.is_dir():
            raise UsageError(f"'{root}' is a file, not the folder of an index. Name another folder.")
        lock = WriterLock(root)
        try:
            spec = encoder_spec or ("minilm" if embedder is None else "")
            index = cls(
                root,
                extractor=extractor,
                embedder=embedder or default_embedder(),
                config=config,
                run=run,
                encoder_spec=spec,
            )
        except BaseException:
            lock.release()
            raise
        index._lock = lock
        return index

    def add(self, passages: Iterable[Passage]) -> AddReport:
        """Takes in passages for the next commit: new ids are added, known ids with new content are updates."""
        self._extraction = None
        kept, refused, duplicates = distinct(passages)
        unfit: list[Refusal] = []
        report = self._holdings.add(self._groups(kept, unfit))
        gone = self._edges.forget_ends(self._holdings)
        refused = (*refused, *unfit, *report.refused)
        return report._replace(refused=refused, duplicates=duplicates, edges_gone=gone)

    def add_edges(self, edges: Iterable[UserEdge]) -> EdgeReport:
        """Takes in edges of one's own for the next commit: new ones are added, known ones get their new weight.

        Their passages must be in the index or added before; the id of a chunked passage stands for all its chunks. An
        edge stays in the index until a passage it ends at goes.
        """
        return self._edges.add(edges, self._holdings)

    def extract(
        self,
        *,
        quarantine_after: int = ExtractConfig().quarantine_after,
        retry_failed: bool = False,
        stop: Callable[[], bool] = never,
        on_progress: OnExtracted | None = None,
    ) -> ExtractionReport:
        """Reads what has no record yet and builds nothing; the next commit finds it in the log.

        quarantine_after, retry_failed, stop : see openie.extract_missing
        on_progress : called after each record with what is done so far and the number of ids to read
        """
        passages, keys = self._current()
        if self._nothing_to_do(passages):
            self._extraction = _all_reused(passages)
        else:
            reader = Reader(self._extractor, quarantine_after, retry_failed, stop, on_progress)
            self._extraction = extract(self.root, passages, keys, reader)
        return self._extraction

    def commit(
        self,
        *,
        diffuse: DiffuseRule = "auto",
        damping: float = SearchConfig().damping,
        on_progress: Progress | None = None,
    ) -> CommitReport:
        """Builds and publishes the next generation.

        Passages without a record are extracted first, unless extract has just done so. When nothing changed and no
        record was gained, the generation stays the one there is.
        diffuse: "auto" diffuses the passage vectors, for that damping, when the estimate is under a minute, else they
        are left stale; "always" diffuses them, in a generation of its own when it takes longer; "never" does not.
        """
        report = self._committed(diffuse, damping, on_progress)
        if diffuse != "always" or (report.diffusion == "fresh" and self._damping_held() == damping):
            return report
        stages = Stages(on_progress)
        with stages("diffuse"):
            done = diffuse_current(self.root, damping=damping, run=self._run, on_progress=stages.progress)
        self._stored = self._load()
        seconds = {**report.seconds, **stages.seconds}
        return replace(report, generation=done.generation, changed=True, diffusion="fresh", seconds=seconds)

    def _damping_held(self) -> float | None:
        mark = self._stored.manifest.diffusion if self._stored else None
        return mark.damping if mark else None

    def _committed(self, diffuse: DiffuseRule, damping: float, on_progress: Progress | None) -> CommitReport:
        self._require_open()
        if diffuse != "never":
            # A backend that is not there is named before hours of work, not after.
            load_backend(self._run.backend)
        passages, keys = self._current()
        stages = Stages(on_progress)
        if self._extraction is None:
            with stages("extract"):
                self.extract(on_progress=lambda so_far, ids: stages.progress(so_far.ids, ids))
        extraction, self._extraction = self._extraction or ExtractionReport(), None
        stored, changed = self._stored, self._holdings.changed or self._edges.changed
        if stored is not None and self._nothing_to_do(passages):
            return self._unchanged(stored, extraction, ())
        with stages("extract"):
            reading = collect(self.root, passages, keys, self._newest())
        if stored is not None and not changed and list(reading.passages.extractors) == list(passages.extractors):
            return self._unchanged(stored, extraction, reading.damage)
        report = build(
            self.root,
            reading,
            extraction,
            self._edges.placed(self._holdings, passages),
            embedder=self._embedder,
            known=self._known_vectors(),
            config=self.config,
            run=self._run,
            encoder=self._encoder,
            stored=stored,
            diffuse=diffuse,
            damping=damping,
            stages=stages,
        )
        self._stored = self._load()
        self._holdings, self._edges = self._held()
        return report

    def _current(self) -> tuple[Passages, tuple[str, ...]]:
        """The distinct passages held, and their content keys; CorpusError when there is none."""
        self._require_open()
        passages, keys = self._holdings.passages()
        if not len(passages):
            raise CorpusError("There is no passage to index. Check the input.")
        return passages, keys

    def _newest(self) -> str:
        """The name of the extractor, or of the one used last; "" when there was none."""
        if self._extractor is not None:
            return self._extractor.name
        return (used_extractors(self.root) or [""])[-1]

    def _nothing_to_do(self, passages: Passages) -> bool:
        """Whether the stored generation is the one to come, and names a record wherever one can be had."""
        if self._stored is None or self._holdings.changed or self._edges.changed:
            return False
        newest = self._newest()
        return not newest or all(reopened(passages, newest).extractors)

    @staticmethod
    def _unchanged(stored: Snapshot, extraction: ExtractionReport, damage: tuple[str, ...]) -> CommitReport:
        manifest = stored.manifest
        state = manifest.diffusion_state
        return CommitReport(manifest.generation, False, manifest.counts, extraction, damage=damage, diffusion=state)

    def close(self) -> None:
        """Lets the folder go; what was not committed is forgotten (its extractions and vectors are kept)."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _load(self) -> Snapshot | None:
        # Damaged diffused vectors are no reason to refuse a writer: nothing is made from them.
        return load_snapshot(self.root, current_manifest(self.root), diffused=False) if has_index(self.root) else None

    def _held(self) -> tuple[Holdings, EdgeHoldings]:
        stored = self._stored
        holdings = Holdings(stored.passages if stored else None, chunked=self.config.chunk_tokens > 0)
        return holdings, EdgeHoldings(stored.user_edges if stored else (), holdings, rule=self.config.text_rule)

    def _settled(self, config: IndexConfig | None) -> IndexConfig:
        if self._stored is None:
            return config or IndexConfig()
        have = self._stored.manifest.config
        if config is not None and config != have:
            differing = ", ".join(
                f"{name} {value!r}, not {as_mapping(config)[name]!r}"
                for name, value in as_mapping(have).items()
                if as_mapping(config)[name] != value
            )
            raise ConfigError(
                f"The index '{self.root}' was built with {differing}. Use the same settings, or index into another "
                "folder."
            )
        return have

    def _settled_encoder(self, spec: str) -> Encoder:
        here = Encoder(self._embedder.name, self._embedder.width, spec)
        if self._stored is None:
            return here
        have = self._stored.manifest.encoder
        if (have.name, have.width) != (here.name, here.width):
            raise EncoderMismatchError(
                f"The index '{self.root}' was built with the encoder '{have.name}' (width {have.width}), not with "
                f"'{here.name}' (width {here.width}). Open it with that one, or index into another folder."
            )
        return have

    def _known_vectors(self) -> StoredVectors:
        known = StoredVectors(self.root / "vectors", self._embedder.name, self._embedder.width)
        stored = self._stored
        if stored is not None:
            pairs = zip(stored.passages.titles, stored.passages.texts, strict=True)
            known.know((identity(title, text) for title, text in pairs), stored.passage_vectors)
            known.know(stored.tables.phrases, stored.phrase_vectors)
            known.know(stored.tables.facts.text, stored.fact_vectors)
        return known

    def _groups(self, passages: Iterable[Passage], unfit: list[Refusal]) -> Iterator[tuple[str, list[Passage]]]:
        """Each passage with what is stored for it: itself, or its chunks."""
        for passage in passages:
            reason = unstorable(passage)
            if reason is not None:
                unfit.append(Refusal(f"passage '{passage.id}'", reason))
                continue
            try:
                parts = self._chunks_of(passage) if self.config.chunk_tokens else [passage]
            except CorpusError as error:
                unfit.append(Refusal(f"passage '{passage.id}'", str(error)))
                continue
            yield passage.id, parts

    def _chunks_of(self, passage: Passage) -> list[Passage]:
        return chunk(
            passage,
            window_tokens=self.config.chunk_tokens,
            overlap_tokens=self.config.chunk_overlap,
            token_counts=self._embedder.token_counts,
        )

    def _require_open(self) -> None:
        if self._lock is None:
            raise UsageError(f"The index '{self.root}' is closed. Open it again to commit.")


def _all_reused(passages: Passages) -> ExtractionReport:
    """A run that had nothing to read."""
    records = Counter(name for row in passages.rows if (name := passages.extractors[row]))
    return ExtractionReport(reused=records.total(), records=dict(records))
