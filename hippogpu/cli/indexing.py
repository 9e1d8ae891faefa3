"""The verb index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hippogpu.cli import options
from hippogpu.cli.output import count_rows, note_list, people, print_json, progress, table
from hippogpu.config import Configs, IndexConfig, read_configs, with_values
from hippogpu.corpus import read_corpus
from hippogpu.embed import Embedder, embedder_from_name
from hippogpu.index import AddReport, CommitReport, Index
from hippogpu.openie import ReplayExtractor
from hippogpu.store import current_manifest, has_index
from hippogpu.types import Refusal

DEFAULT_CHUNK_TOKENS = 256


def index(
    folder: options.Folder,
    corpus: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Files or folders of passages.")],
    openie: options.OpenIe = None,
    encoder: options.Encoder = None,
    profile: options.Profile = None,
    chunk: Annotated[bool, typer.Option("--chunk", help="Split passages that the encoder cannot read whole.")] = False,
    diffuse: options.Diffuse = "auto",
    config: options.ConfigFile = None,
    backend: options.Backend = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Create an index, or extend it; a second run on the same corpus does nothing.

    A known id with new content is an update. An interrupted run goes on where it stopped. CORPUS may be JSON lines,
    a JSON array, CSV, TSV or Parquet with the fields _id, title and text, a BEIR folder, or a folder of .txt and .md.

    \b
    hippogpu index wiki.hippo corpus.jsonl --openie openie.jsonl.gz
    hippogpu index wiki.hippo beir-folder/ --openie openie_results_ner_gpt-4o-mini.json --profile oracle
    """
    configs = read_configs(config, profile)
    run = with_values(configs.run, {"backend": backend} if backend else {})
    spec = encoder or _stored_spec(folder) or "minilm"
    embedder = embedder_from_name(spec)
    reading = read_corpus(corpus)
    extractor = _extractor(openie)
    settings = _index_config(configs, profile, embedder, chunk=chunk)
    with Index.open(
        folder, extractor=extractor, embedder=embedder, config=settings, run=run, encoder_spec=spec
    ) as writer:
        added = writer.add(reading.passages)
        with progress(quiet=quiet) as show:
            report = writer.commit(diffuse=diffuse, damping=configs.search.damping, on_progress=show)
    refused = (*reading.refusals, *(extractor.refusals if extractor else ()), *added.refused)
    duplicates = added.duplicates + reading.counts["duplicates"]
    value = _value(folder, added._replace(duplicates=duplicates), report, refused)
    if json:
        print_json(value)
    else:
        _show(folder, value)
    note_list("Refused", [f"{item.where}: {item.reason}" for item in refused], quiet=quiet)
    note_list("Without extraction", [f"{id_}: {why}" for id_, why in report.extraction.failed], quiet=quiet)
    note_list("Damaged lines of extraction logs, passed over", report.damage, quiet=quiet)
    if refused or report.extraction.failed or report.damage:
        raise typer.Exit(1)


def _stored_spec(folder: Path) -> str:
    return current_manifest(folder).encoder.spec if has_index(folder) else ""


def _extractor(openie: Path | None) -> ReplayExtractor | None:
    return ReplayExtractor(openie) if openie else None


def _index_config(configs: Configs, profile: str | None, embedder: Embedder, *, chunk: bool) -> IndexConfig | None:
    if not chunk:
        return configs.index
    start = configs.index or IndexConfig()
    return with_values(start, {"chunk_tokens": start.chunk_tokens or embedder.window or DEFAULT_CHUNK_TOKENS})


def _value(folder: Path, added: AddReport, report: CommitReport, refused: tuple[Refusal, ...]) -> dict[str, Any]:
    extraction = report.extraction
    return {
        "index": str(folder),
        "generation": report.generation,
        "changed": report.changed,
        "added": added.added,
        "updated": added.updated,
        "unchanged": added.unchanged,
        "duplicates": added.duplicates,
        "refused": [item._asdict() for item in refused],
        "counts": dict(report.counts),
        "extracted": extraction.done,
        "extraction_failed": [{"id": id_, "reason": reason} for id_, reason in extraction.failed],
        "triples_dropped": {**extraction.drops, **report.dropped},
        "truncated": report.truncated,
        "log_damage": list(report.damage),
        "spoiled": report.spoiled,
        "diffusion": report.diffusion,
        "seconds": {stage: round(spent, 3) for stage, spent in report.seconds.items()},
    }


def _show(folder: Path, value: dict[str, Any]) -> None:
    out = people()
    if not value["changed"]:
        out.print(f"{folder}: nothing new; generation {value['generation']} stays current.")
    names = ("added", "updated", "unchanged", "duplicates")
    out.print(
        table("Passages", [*names, "refused"], [[*(f"{value[n]:,}" for n in names), f"{len(value['refused']):,}"]])
    )
    out.print(table(f"Index, generation {value['generation']}", ["what", "count"], count_rows(value["counts"])))
    if value["triples_dropped"]:
        rows = [[reason, f"{count:,}"] for reason, count in sorted(value["triples_dropped"].items())]
        out.print(table("Triples left out", ["reason", "count"], rows))
    if value["truncated"]:
        out.print(
            f"{value['truncated']:,} passages are longer than the encoder reads; only their beginning is encoded."
        )
    if value["spoiled"]:
        out.print(f"{value['spoiled']:,} stored blocks of vectors were damaged; their texts were encoded again.")
    if value["diffusion"] != "fresh":
        out.print(
            f"Diffused vectors: {value['diffusion']}. Questions walk the graph until they are made: "
            f"hippogpu diffuse {folder}"
        )
    if value["seconds"]:
        out.print(table("Seconds", list(value["seconds"]), [[f"{s:.2f}" for s in value["seconds"].values()]]))
