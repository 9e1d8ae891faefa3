"""Index: the one writer of an index folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from hippogpu.backends import load_backend
from hippogpu.config import DiffuseRule, ExtractConfig, ForceRule, IndexConfig, RunConfig, SearchConfig
from hippogpu.corpus import distinct
from hippogpu.embed import Embedder, default_embedder
from hippogpu.errors import ConfigError, CorpusError, UsageError
from hippogpu.index.build import CommitReport, build
from hippogpu.index.diffusing import diffuse_current
from hippogpu.index.edges import EdgeHoldings, EdgeReport, PlacedEdges
from hippogpu.index.forcing import Forced, end_forced, forced_reading
from hippogpu.index.grouping import grouped
from hippogpu.index.holdings import AddReport, DeleteReport, Holdings
from hippogpu.index.logs import Logs, used_extractors
from hippogpu.index.reading import OnExtracted, Reader, collect, extract, reopened
from hippogpu.index.settling import settled_config, settled_encoder
from hippogpu.index.stages import Progress, Stages
from hippogpu.openie import ExtractionReport, Extractor, ReplayExtractor
from hippogpu.openie.missing import never
from hippogpu.store import Passages, Snapshot, WriterLock, current_manifest, has_index, load_snapshot, require_whole
from hippogpu.store.snapshot import VECTORS
from hippogpu.types import Passage, UserEdge

# What every commit takes from the generation before, and what one that is not made anew takes too.
HELD = {"ids", "passages", "edges", "phrases", "facts", "statements_indptr", "statements"}
TAKEN_OVER = {*VECTORS, *VECTORS.values(), "synonym_source", "synonym_target", "synonym_weight"}


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
        self.config = settled_config(root, self._stored, config)
        self._encoder = settled_encoder(root, self._stored, embedder, encoder_spec)
        if self.config.chunk_tokens and isinstance(extractor, ReplayExtractor):
            raise ConfigError("Stored extractions speak of whole passages, so 'chunk_tokens' must be 0 with them.")
        self._holdings, self._edges = self._held()
        self._extraction: ExtractionReport | None = None
        self._sound: set[str] = set()
        self._logs = Logs(root)
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
        is_new = not root.exists()
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
            if is_new:
                lock.remove_folder()
            lock.release()
            raise
        index._lock = lock
        return index

    def add(self, passages: Iterable[Passage]) -> AddReport:
        """Takes in passages for the next commit: new ids are added, known ids with new content are updates."""
        self._extraction = None
        kept, refused, duplicates = distinct(passages)
        groups, unfit = grouped(kept, self.config, self._embedder)
        report = self._holdings.add(groups)
        gone = self._edges.forget_ends(self._holdings)
        refused = (*refused, *unfit, *report.refused)
        return report._replace(refused=refused, duplicates=duplicates, edges_gone=gone)

    def delete(self, ids: Iterable[str]) -> DeleteReport:
        """Takes passages out with the next commit, by id; the id of a chunked passage stands for all its chunks.

        What comes out is the index that never had them. Where several ids share one text, it stays under the others.
        Ids that are not held are reported, and the others go. Records stay in the extraction log: a passage that
        comes back is not read again.
        """
        if isinstance(ids, str):
            raise UsageError(f"Pass a list of ids, not one text: [{ids[:40]!r}].")
        self._extraction = None
        report = self._holdings.delete(ids)
        return report._replace(edges_gone=self._edges.forget_ends(self._holdings))

    def ids_where(self, test: Callable[[Passage], bool]) -> list[str]:
        """The ids of the passages held, of chunks each, that pass the test: for delete."""
        return self._holdings.ids_where(test)

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
        forced: bool = False,
        stop: Callable[[], bool] = never,
        on_progress: OnExtracted | None = None,
    ) -> ExtractionReport:
        """Reads what has no record yet and builds nothing; the next commit finds it in the log.

        quarantine_after, retry_failed, stop : see openie.extract_missing
        forced      : reads every passage again; where that fails its earlier record stays. A forced reading that was
                      cut short goes on when it is forced again
        on_progress : called after each record with what is done so far and the number of ids to read
        """
        passages, keys = self._current()
        if not forced and self._nothing_to_do(passages):
            self._extraction = _all_reused(passages)
        else:
            reader = Reader(self._extractor, quarantine_after, retry_failed, forced, stop, on_progress)
            self._extraction = extract(self.root, passages, keys, reader, self._logs)
        return self._extraction

    def commit(
        self,
        *,
        diffuse: DiffuseRule = "auto",
        damping: float = SearchConfig().damping,
        force: ForceRule | None = None,
        on_progress: Progress | None = None,
    ) -> CommitReport:
        """Builds and publishes the next generation; removes those that nobody can need (RunConfig.grace_s).

        Passages without a record are extracted first, unless extract has just done so. When nothing changed and no
        record was gained, the generation stays the one there is. An index all of whose passages were deleted is empty.
        force: "extract" reads every passage again and builds; "build" takes no vector and no synonym from what is
        stored; "all" does both.
        diffuse: "auto" diffuses the passage vectors, for that damping, when the estimate is under a minute, else they
        are left stale; "always" diffuses them, in a generation of its own when it takes longer; "never" does not.
        """
        report = self._committed(diffuse, damping, force, on_progress)
        if diffuse != "always" or (report.diffusion == "fresh" and self._damping_held() == damping):
            return report
        stages = Stages(on_progress)
        with stages("diffuse"):
            done = diffuse_current(self.root, damping=damping, run=self._run, on_progress=stages.progress)
        self._stored = self._load()
        return replace(
            report,
            generation=done.generation,
            changed=True,
            diffusion="fresh",
            seconds={**report.seconds, **stages.seconds},
            peak_bytes={**report.peak_bytes, **stages.peak_bytes},
        )

    def _damping_held(self) -> float | None:
        mark = self._stored.manifest.diffusion if self._stored else None
        return mark.damping if mark else None

    def _committed(
        self, diffuse: DiffuseRule, damping: float, force: ForceRule | None, on_progress: Progress | None
    ) -> CommitReport:
        self._require_open()
        if diffuse != "never":
            # A backend that is not there is named before hours of work, not after.
            load_backend(self._run.backend)
        passages, keys = self._current()
        stages = Stages(on_progress)
        again = force in ("extract", "all")
        if self._extraction is None or (again and not self._extraction.forced):
            with stages("extract"):
                self.extract(forced=again, on_progress=lambda so_far, ids: stages.progress(so_far.ids, ids))
        extraction, self._extraction = self._extraction or ExtractionReport(), None
        stored, changed = self._stored, self._holdings.changed or self._edges.changed
        forced = self._read_anew()
        if stored is not None and not force and forced is None and self._nothing_to_do(passages):
            return self._unchanged(stored, extraction, ())
        with stages("extract"):
            lost_from = stored if self._extractor is None else None
            reading = collect(
                self.root, passages, keys, self._newest(), logs=self._logs, forced=forced, stored=lost_from
            )
        same = list(reading.passages.extractors) == list(passages.extractors)
        if stored is not None and not force and forced is None and not changed and same:
            return self._unchanged(stored, extraction, reading.damage)
        anew = force in ("build", "all")
        if stored is not None:
            # What is taken over gets a new checksum, under which nobody could tell that it was altered.
            require_whole(self.root, stored.manifest, roles=HELD if anew else HELD | TAKEN_OVER, sound=self._sound)
        report = build(
            self.root,
            reading,
            extraction,
            self._placed_edges(passages),
            embedder=self._embedder,
            anew=anew,
            config=self.config,
            run=self._run,
            encoder=self._encoder,
            stored=stored,
            diffuse=diffuse,
            damping=damping,
            stages=stages,
        )
        self._stored = self._load()
        self._sound = {entry.file for entry in self._stored.manifest.files.values()} if self._stored else set()
        self._holdings.committed(keys, reading.passages.extractors)
        self._edges.committed()
        if forced is not None:
            end_forced(self.root)
        return report

    def _placed_edges(self, passages: Passages) -> PlacedEdges:
        # Also for what an exception has kept from being forgotten: an edge without its end would spoil the index.
        self._edges.forget_ends(self._holdings)
        return self._edges.placed(self._holdings, passages)

    def _read_anew(self) -> Forced | None:
        """A forced reading that is done and that no index was made of yet."""
        forced = forced_reading(self.root)
        return forced if forced is not None and forced.finished else None

    def _current(self) -> tuple[Passages, tuple[str, ...]]:
        """The distinct passages held, and their content keys; CorpusError when there never was one."""
        self._require_open()
        passages, keys = self._holdings.passages()
        if not len(passages) and self._stored is None:
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

    def _require_open(self) -> None:
        if self._lock is None:
            raise UsageError(f"The index '{self.root}' is closed. Open it again to commit.")


def _all_reused(passages: Passages) -> ExtractionReport:
    """A run that had nothing to read."""
    records = Counter(name for row in passages.rows if (name := passages.extractors[row]))
    return ExtractionReport(reused=records.total(), records=dict(records))
