"""The verb index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hippogpu.cli import options
from hippogpu.cli.encoders import writers_encoder
from hippogpu.cli.extracting import Asked, chosen_extractor, draining
from hippogpu.cli.extraction_report import (
    add_edges,
    extract,
    extraction_value,
    refusals_of,
    show_extraction,
    tell,
)
from hippogpu.cli.output import count_rows, note, note_list, people, print_json, progress, table
from hippogpu.config import Configs, IndexConfig, read_configs, with_values
from hippogpu.corpus import read_corpus
from hippogpu.embed import Embedder
from hippogpu.index import AddReport, CommitReport, EdgeReport, Index
from hippogpu.types import Refusal

DEFAULT_CHUNK_TOKENS = 256


def index(
    folder: options.Folder,
    corpus: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Files or folders of passages.")],
    extractor: options.Extractor = None,
    openie: options.OpenIe = None,
    edges: options.Edges = None,
    url: options.Url = None,
    model: options.Model = None,
    prompting: options.PromptingRule = None,
    extract_only: Annotated[
        bool, typer.Option("--extract-only", help="Read the passages and stop; a later run builds without reading.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also read passages that failed so often that they are left alone.")
    ] = False,
    force: options.Force = None,
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
    Without a language model the passages are read by spaCy, which knows English.

    \b
    hippogpu index wiki.hippo corpus.jsonl
    hippogpu index wiki.hippo corpus.jsonl --extractor http --url http://localhost:8000/v1 --model llama-3.3-70b
    hippogpu index wiki.hippo corpus.jsonl --openie openie.jsonl.gz
    hippogpu index wiki.hippo corpus.jsonl --extractor none --edges links.jsonl
    hippogpu index wiki.hippo beir-folder/ --openie openie_results_ner_gpt-4o-mini.json --profile oracle
    """
    configs = read_configs(config, profile)
    run = with_values(configs.run, {"backend": backend} if backend else {})
    spec, embedder = writers_encoder(folder, encoder)
    reading = read_corpus(corpus)
    settings = _index_config(configs, profile, embedder, chunk=chunk)
    asked = Asked(extractor, openie, url, model, prompting)
    with (
        chosen_extractor(folder, configs, asked) as chosen,
        Index.open(
            folder, extractor=chosen.extractor, embedder=embedder, config=settings, run=run, encoder_spec=spec
        ) as writer,
    ):
        added = writer.add(reading.passages)
        joined = add_edges(writer, edges or [])
        with progress(quiet=quiet) as show, draining() as stop:
            extraction = extract(
                writer, chosen, stop, show, retry_failed=retry_failed, forced=force in ("extract", "all")
            )
        refused = (*reading.refusals, *refusals_of(chosen), *added.refused, *joined.refused)
        duplicates = added.duplicates + reading.counts["duplicates"]
        value = {
            "index": str(folder),
            **_added(added._replace(duplicates=duplicates), joined, refused),
            "extraction": extraction_value(chosen, extraction),
        }
        report = None
        if not extract_only and not stop():
            with progress(quiet=quiet) as show:
                report = writer.commit(diffuse=diffuse, damping=configs.search.damping, force=force, on_progress=show)
            value |= _built(report)
    if json:
        print_json(value)
    else:
        _show(folder, value)
    if added.edges_gone:
        note(f"{added.edges_gone:,} edges of one's own went with passages that are no longer there.", quiet=quiet)
    note_list("Refused", [f"{item.where}: {item.reason}" for item in refused])
    tell(chosen, extraction, quiet=quiet)
    if stop():
        raise KeyboardInterrupt
    if refused or extraction.failed or extraction.quarantined or extraction.damage:
        raise typer.Exit(1)


def _index_config(configs: Configs, profile: str | None, embedder: Embedder, *, chunk: bool) -> IndexConfig | None:
    if not chunk:
        return configs.index
    start = configs.index or IndexConfig()
    return with_values(start, {"chunk_tokens": start.chunk_tokens or embedder.window or DEFAULT_CHUNK_TOKENS})


def _added(added: AddReport, joined: EdgeReport, refused: tuple[Refusal, ...]) -> dict[str, Any]:
    return {
        "added": added.added,
        "updated": added.updated,
        "unchanged": added.unchanged,
        "duplicates": added.duplicates,
        "edges_added": joined.added + joined.updated,
        "edges_gone": added.edges_gone,
        "refused": [item._asdict() for item in refused],
    }


def _built(report: CommitReport) -> dict[str, Any]:
    return {
        "generation": report.generation,
        "changed": report.changed,
        "counts": dict(report.counts),
        "triples_dropped": dict(report.dropped),
        "truncated": report.truncated,
        "spoiled": report.spoiled,
        "recovered": report.recovered,
        "diffusion": report.diffusion,
        "seconds": {stage: round(spent, 3) for stage, spent in report.seconds.items()},
        "peak_bytes": dict(report.peak_bytes),
    }


def _show(folder: Path, value: dict[str, Any]) -> None:
    out = people()
    names = ("added", "updated", "unchanged", "duplicates")
    out.print(
        table("Passages", [*names, "refused"], [[*(f"{value[n]:,}" for n in names), f"{len(value['refused']):,}"]])
    )
    show_extraction(value["extraction"])
    if "generation" not in value:
        out.print(f"{folder}: nothing was built.", markup=False)
        return
    if not value["changed"]:
        out.print(f"{folder}: nothing new; generation {value['generation']} stays current.", markup=False)
    out.print(table(f"Index, generation {value['generation']}", ["what", "count"], count_rows(value["counts"])))
    if value["triples_dropped"]:
        out.print(table("Triples left out of the graph", ["reason", "count"], count_rows(value["triples_dropped"])))
    if value["truncated"]:
        out.print(
            f"{value['truncated']:,} passages are longer than the encoder reads; only their beginning is encoded."
        )
    if value["spoiled"]:
        out.print(f"{value['spoiled']:,} stored blocks of vectors were damaged; their texts were encoded again.")
    if value["recovered"]:
        out.print(f"{value['recovered']:,} records are lost from the logs; what the index has of them was kept.")
    if value["diffusion"] != "fresh":
        out.print(
            f"Diffused vectors: {value['diffusion']}. Questions walk the graph until they are made: "
            f"hippogpu diffuse {folder}"
        )
    if value["seconds"]:
        peaks = [f"{value['peak_bytes'][stage] / 2**20:,.0f}" for stage in value["seconds"]]
        rows = [["seconds", *(f"{s:.2f}" for s in value["seconds"].values())], ["peak MiB", *peaks]]
        out.print(table("Stages", ["", *value["seconds"]], rows))
