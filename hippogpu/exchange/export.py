"""An index to any of the forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hippogpu.errors import UsageError
from hippogpu.exchange.edge_list import HEADS, write_edge_list
from hippogpu.exchange.graphml import XML_HEAD, write_graphml
from hippogpu.exchange.packing import begins_with
from hippogpu.exchange.parquet_export import write_parquet
from hippogpu.exchange.parquet_head import is_export
from hippogpu.exchange.points import store_of, write_store
from hippogpu.exchange.target import whole
from hippogpu.exchange.values import (
    VECTOR_STORES,
    ExportReport,
    Form,
    OnProgress,
    What,
    Written,
    bytes_of,
    form_of,
    silent,
)
from hippogpu.store import Snapshot, current_manifest, load_snapshot, require_whole


def export_index(
    path: str | Path,
    target: str | Path,
    *,
    form: Form | None = None,
    what: Sequence[What] = ("passages",),
    overwrite: bool = False,
    on_progress: OnProgress = silent,
) -> ExportReport:
    """Writes the current generation of the index at `path` to `target`, which appears when it is whole.

    form      by the ending of the target when None
    what      what goes into a vector store: passages, phrases, facts; a collection each
    overwrite replaces an export of the same form that is there; anything else is never replaced
    UsageError for a target that is there, or a form that cannot hold the index; the index itself is only read.
    """
    root, goal = Path(path), Path(target)
    form = form or form_of(goal)
    if form not in VECTOR_STORES and tuple(what) != ("passages",):
        raise UsageError(f"What to write can be chosen for {', '.join(VECTOR_STORES)}; {form} holds all there is.")
    if goal.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"'{goal}' lies in the folder of the index itself. Name a target outside '{root}'.")
    manifest = current_manifest(root)
    # An export under checksums of its own would hide what was altered here.
    require_whole(root, manifest, roles=manifest.files)
    snapshot = load_snapshot(root, manifest)
    with whole(goal, overwrite=overwrite, replaceable=_replaceable(form)) as made:
        written = _write(form, root, snapshot, made, what, on_progress)
    return ExportReport(form, goal, written.rows, bytes_of(goal), written.refused, written.replaced, written.notes)


def _write(
    form: Form, root: Path, snapshot: Snapshot, made: Path, what: Sequence[What], on_progress: OnProgress
) -> Written:
    if form == "parquet":
        return write_parquet(root, snapshot, made, on_progress)
    if form == "graphml":
        return write_graphml(snapshot, made, on_progress)
    if form == "edges":
        return write_edge_list(snapshot, made, on_progress)
    return write_store(snapshot, made, form, what, on_progress)


def _replaceable(form: Form) -> Callable[[Path], bool]:
    """Whether a path is an export of the form, so that another may take its place."""
    if form == "parquet":
        return lambda path: path.is_dir() and is_export(path)
    if form in VECTOR_STORES:
        return store_of(form).is_store
    return lambda path: begins_with(path, [XML_HEAD] if form == "graphml" else HEADS)
