"""The verbs that take away: delete and gc."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import typer

from hippogpu.cli import options
from hippogpu.cli.output import note, note_list, people, print_json, progress, table
from hippogpu.config import read_configs, with_values
from hippogpu.corpus.rows import as_id
from hippogpu.embed.deferred import DeferredEmbedder
from hippogpu.embed.stored import stored_embedder
from hippogpu.errors import UsageError
from hippogpu.index import CommitReport, DeleteReport, Index, clean_index
from hippogpu.store import Encoder, current_manifest
from hippogpu.types import Passage, Refusal

Test = Callable[[Passage], bool]
_SHOWN_FIELDS = 20


def delete(
    folder: options.Folder,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[IDS]...", help="Ids of passages.")] = None,
    ids_file: Annotated[
        Path | None,
        typer.Option("--ids", metavar="FILE", help="Ids, one a line (or JSON lines with _id); - for standard input."),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--text", help="Passages whose whole text is this; may be given several times.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="KEY=VALUE", help="Passages with this metadata; of several, all must hold."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would be deleted, and delete nothing.")] = False,
    diffuse: options.Diffuse = "auto",
    config: options.ConfigFile = None,
    backend: options.Backend = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Delete passages: the index becomes the one that never had them, in one commit.

    The id of a chunked document stands for all its chunks. --text and --where together choose what fits both, and that
    goes beside the ids that are named. Behind -- an id may begin with a dash. The records of what was deleted stay in
    the extraction log, so that it is not read again if it comes back; gc --forget removes them.

    \b
    hippogpu delete wiki.hippo p17 p18
    hippogpu delete wiki.hippo --ids old.txt
    hippogpu delete wiki.hippo --where source=intranet --where year=2019 --dry-run
    """
    configs = read_configs(config)
    run = with_values(configs.run, {"backend": backend} if backend else {})
    if not (ids or ids_file or text or where):
        raise UsageError("Nothing was named to delete. Give ids, --ids FILE, --text TEXT or --where KEY=VALUE.")
    encoder = current_manifest(folder).encoder
    named, refused = _ids_of(ids_file) if ids_file else ([], [])
    conditions = [_Condition.of(condition) for condition in where or ()]
    tests = [_says(text)] * bool(text) + [condition.holds for condition in conditions]
    with Index.open(folder, embedder=deferred(folder, encoder), run=run) as writer:
        chosen = [*(ids or ()), *named]
        if tests:
            fitting = writer.ids_where(lambda passage: all(test(passage) for test in tests))
            chosen += fitting
            if not fitting:
                note(_none_fits(writer, conditions), quiet=quiet)
        report = writer.delete(chosen)
        commit = None
        if report.deleted and not dry_run:
            with progress(quiet=quiet) as show:
                commit = writer.commit(diffuse=diffuse, damping=configs.search.damping, on_progress=show)
    value = _value(folder, report, refused, commit, dry_run=dry_run)
    _show(folder, value, json=json, quiet=quiet)
    if report.missing or refused or (commit is not None and commit.damage):
        raise typer.Exit(1)


def gc(
    folder: options.Folder,
    grace: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Seconds for which a generation stays after it was replaced (default 60; 0 with --forget)."
        ),
    ] = None,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Also remove vectors and columns that a run which was cut short left.")
    ] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Also remove records of passages that were deleted, and a model's replies."),
    ] = False,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Remove what nobody can need any longer: earlier generations, and files of runs that were killed.

    Every commit does so by itself. Readers that have opened a generation keep it.

    \b
    hippogpu gc wiki.hippo --grace 0
    hippogpu gc wiki.hippo --forget
    """
    run = read_configs(config).run
    # What is to be forgotten is to be gone now.
    grace_s = grace if grace is not None else 0.0 if forget else run.grace_s
    report = clean_index(folder, grace_s=grace_s, unfinished=unfinished, forget=forget)
    if json:
        print_json({"index": str(folder), **report._asdict()})
        return
    people().print(
        f"{folder}: removed {report.generations:,} generations, {report.files:,} files, {report.bytes / 2**20:,.1f} MiB"
        + (f", {report.records:,} records and {report.damaged:,} damaged log lines" if forget else "")
        + "."
    )
    if report.kept:
        note(
            f"{report.kept:,} earlier generations stay, replaced less than {grace_s:g} s ago (--grace 0 removes them).",
            quiet=quiet,
        )


def deferred(folder: Path, encoder: Encoder) -> DeferredEmbedder:
    """The encoder of an index, loaded if something has to be encoded."""
    spec, name = encoder.spec, encoder.name
    return DeferredEmbedder(name, encoder.width, lambda: stored_embedder(spec, name, folder))


def _ids_of(file: Path) -> tuple[list[str], list[Refusal]]:
    """The ids of a file, and its lines that name none."""
    try:
        lines = (sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The ids of '{file}' cannot be read ({error}). Give a text file with one id a line."
        ) from error
    ids, refused = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        id_ = _id_of(line)
        if id_ is None:
            refused.append(Refusal(f"{file}:{number}", "a JSON line without a text under _id"))
        else:
            ids.append(id_)
    return ids, refused


def _id_of(line: str) -> str | None:
    if not line.lstrip().startswith("{"):
        return line.strip()
    try:
        return as_id(json_format.loads(line).get("_id"), "_id")
    except (ValueError, RecursionError):
        return None


def _says(texts: Sequence[str] | None) -> Test:
    """Whether the text, or title, line break and text, is one of these."""
    wanted = set(texts or ())
    return lambda passage: passage.text in wanted or f"{passage.title}\n{passage.text}" in wanted


class _Condition(NamedTuple):
    """KEY=VALUE: the key of a field, or the way to a nested one with dots, and what VALUE may mean."""

    key: str
    values: tuple[object, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise UsageError(f"--where needs KEY=VALUE. Got '{text}'.")
        return cls(key, tuple(_readings(value)))

    def holds(self, passage: Passage) -> bool:
        """Whether the metadata has one of the values there, by itself or in a list."""
        return any(_same(one, value) for one in self.found(passage) for value in self.values)

    def found(self, passage: Passage) -> list[object]:
        """What the metadata has under the key, the members of a list too."""
        at: object = passage.meta
        for name in [self.key] if self.key in passage.meta else self.key.split("."):
            if not isinstance(at, Mapping) or name not in at:
                return []
            at = at[name]
        return [at, *at] if isinstance(at, list) else [at]


def _same(one: object, value: object) -> bool:
    """Whether two JSON values are equal: numbers by value, and no truth is a number."""
    return one == value and isinstance(one, bool) == isinstance(value, bool)


def _none_fits(writer: Index, conditions: Sequence[_Condition]) -> str:
    """What to tell where nothing was chosen: fields that no passage has, and those that there are."""
    known: set[str] = set()

    def learn(passage: Passage) -> bool:
        known.update(map(str, passage.meta))
        return any(condition.found(passage) for condition in conditions)

    fields = writer.ids_where(learn)
    if conditions and not fields:
        names = ", ".join(repr(condition.key) for condition in conditions)
        have = ", ".join(sorted(known)[:_SHOWN_FIELDS]) or "none"
        return f"No passage has the field {names} in its metadata. Fields there are: {have}."
    return "No passage fits."


def _readings(value: str) -> Iterator[object]:
    yield value
    try:
        yield json_format.loads(value)
    except (ValueError, RecursionError):
        return


def _value(
    folder: Path, report: DeleteReport, refused: Sequence[Refusal], commit: CommitReport | None, *, dry_run: bool
) -> dict[str, Any]:
    value: dict[str, Any] = {
        "index": str(folder),
        "dry_run": dry_run,
        "deleted": report.deleted,
        "ids": list(report.ids),
        "missing": list(report.missing),
        "edges_gone": report.edges_gone,
        "refused": [item._asdict() for item in refused],
    }
    if commit is not None:
        value |= {
            "generation": commit.generation,
            "counts": dict(commit.counts),
            "diffusion": commit.diffusion,
            "log_damage": list(commit.damage),
            "recovered": commit.recovered,
            "seconds": {stage: round(spent, 3) for stage, spent in commit.seconds.items()},
        }
    return value


def _show(folder: Path, value: dict[str, Any], *, json: bool, quiet: bool) -> None:
    if json:
        print_json(value)
    elif value["dry_run"]:
        for id_ in value["ids"]:
            people().print(id_, markup=False)
        note(f"{folder}: {value['deleted']:,} passages would be deleted; nothing was.", quiet=quiet)
    else:
        row = [f"{value['deleted']:,}", f"{len(value['missing']):,}", f"{value['edges_gone']:,}"]
        people().print(table("Passages", ["deleted", "not there", "edges gone"], [row]))
        if "generation" in value:
            left = value["counts"]["ids"]
            people().print(f"{folder}: generation {value['generation']}, {left:,} passages left.", markup=False)
        else:
            people().print(f"{folder}: nothing was deleted.", markup=False)
    if value.get("recovered"):
        note(
            f"{value['recovered']:,} records of other passages are lost from the extraction logs; what the index has "
            "of them was kept.",
            quiet=quiet,
        )
    note_list("Damaged lines of the extraction logs, passed over", value.get("log_damage", []))
    note_list("Not in the index", value["missing"])
    note_list("Refused", [f"{item['where']}: {item['reason']}" for item in value["refused"]])
