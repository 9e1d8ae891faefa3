"""The verbs export and import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from hippogpu.cli import options
from hippogpu.cli.encoders import writers_encoder
from hippogpu.cli.extracting import Asked, chosen_extractor
from hippogpu.cli.output import count_rows, note, note_list, people, print_json, progress, table
from hippogpu.config import ExtractorName, read_configs, with_values
from hippogpu.embed import Embedder
from hippogpu.errors import UsageError
from hippogpu.exchange import (
    VECTOR_STORES,
    CollectionReport,
    Fields,
    Form,
    ImportForm,
    What,
    export_index,
    form_of,
    import_collection,
    import_parquet,
)
from hippogpu.store import has_index
from hippogpu.types import Refusal

_NAMES = Fields()
_Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an export of the same form that is there.")]


def export(
    folder: options.Folder,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The file or folder to write.")],
    to: Annotated[Form | None, typer.Option("--to", help="The form (default: by the ending of TARGET).")] = None,
    what: Annotated[
        str | None,
        typer.Option("--what", metavar="LIST", help="For a vector store: passages,phrases,facts (default passages)."),
    ] = None,
    overwrite: _Overwrite = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write what an index holds in a form that others read. TARGET appears when it is whole.

    parquet: a folder of Parquet files that import makes the same index from. graphml, edges: the graph (.graphml, .tsv
    or .csv, also .gz). qdrant, chroma, milvus: passages with their vectors, in the files of the client named.

    \b
    hippogpu export wiki.hippo wiki.parquet
    hippogpu export wiki.hippo graph.graphml.gz
    hippogpu export wiki.hippo edges.tsv
    hippogpu export wiki.hippo wiki.qdrant --what passages,phrases
    """
    wanted = tuple(part.strip() for part in what.split(",")) if what is not None else ("passages",)
    with progress(quiet=quiet) as show:
        report = export_index(
            folder,
            target,
            form=to,
            what=cast("tuple[What, ...]", wanted),
            overwrite=overwrite,
            on_progress=lambda stage, done, whole: show(stage, done, whole),
        )
    if json:
        lists = {"refused": _listed(report.refused), "replaced": _listed(report.replaced), "notes": report.notes}
        value = {"index": str(folder), "target": str(target), "form": report.form, "bytes": report.bytes}
        print_json({**value, "rows": dict(report.rows), **lists})
    else:
        people().print(table(f"{target}, {report.form}", ["what", "rows"], count_rows(report.rows)))
        people().print(f"{target}: {report.bytes / 2**20:,.1f} MiB.", markup=False)
    for line in report.notes:
        note(line, quiet=quiet)
    note_list(
        f"Characters replaced in {len(report.replaced):,} texts", [str(item) for item in report.replaced], quiet=quiet
    )
    note_list(f"Refused, {len(report.refused):,}", [str(item) for item in report.refused])
    if report.refused:
        raise typer.Exit(1)


def import_(
    folder: options.Folder,
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="The export, or the folder or file of a store.")],
    from_: Annotated[
        ImportForm | None, typer.Option("--from", help="The form (default: by the ending of SOURCE).")
    ] = None,
    collection: Annotated[
        str | None, typer.Option("--collection", metavar="NAME", help="Collection of a store (default passages).")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="NAME",
            help="What made the vectors: minilm, st:NAME, vllm:NAME, http:URL#MODEL, hashing (default: the index's).",
        ),
    ] = None,
    no_vectors: Annotated[
        bool, typer.Option("--no-vectors", help="Leave the vectors of a store out, and encode every text.")
    ] = False,
    id_field: Annotated[
        str | None,
        typer.Option("--id-field", metavar="NAME", help="Field of the id (default id, else the point's own)."),
    ] = None,
    title_field: Annotated[
        str | None,
        typer.Option("--title-field", metavar="NAME", help="Field of the title (default title; '' for none)."),
    ] = None,
    text_field: Annotated[
        str | None, typer.Option("--text-field", metavar="NAME", help="Field of the text (default text).")
    ] = None,
    meta_field: Annotated[
        str | None, typer.Option("--meta-field", metavar="NAME", help="Field of the metadata (default meta).")
    ] = None,
    vector_field: Annotated[
        str | None, typer.Option("--vector-field", metavar="NAME", help="Which vector, where points have several.")
    ] = None,
    extractor: Annotated[
        ExtractorName | None, typer.Option("--extractor", help="Who reads the passages of a store (default nobody).")
    ] = None,
    openie: options.OpenIe = None,
    url: options.Url = None,
    model: options.Model = None,
    prompting: options.PromptingRule = None,
    profile: options.Profile = None,
    diffuse: options.Diffuse = "auto",
    config: options.ConfigFile = None,
    backend: options.Backend = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Make an index from a Parquet export, or add the passages of a vector store to one.

    A Parquet export becomes a new folder, array for array the exported index; the options of stores do not apply to it.
    Passages of a store keep their vectors when --encoder names what made them. Nobody reads them unless --extractor or
    --openie says who: until then they are found by their vectors.

    \b
    hippogpu import copy.hippo wiki.parquet
    hippogpu import mine.hippo old.qdrant --encoder minilm --text-field page_content --meta-field metadata
    hippogpu import mine.hippo old.chroma --encoder minilm --collection notes --extractor spacy
    """
    form = from_ or form_of(source)
    asked = Asked(extractor, openie, url, model, prompting)
    named = {"id": id_field, "title": title_field, "text": text_field, "meta": meta_field}
    if form not in VECTOR_STORES:
        given = [*named.values(), *asked, collection, encoder, vector_field, profile, config, backend]
        if form != "parquet":
            raise UsageError(f"{form} cannot be imported; parquet, {', '.join(VECTOR_STORES)} can.")
        if no_vectors or diffuse != "auto" or any(value is not None for value in given):
            raise UsageError("A Parquet export is imported as it is: no other option than --from, --json and --quiet.")
        _import_parquet(folder, source, json=json, quiet=quiet)
        return
    configs = read_configs(config, profile)
    spec, embedder = _encoder(folder, encoder, vectors=not no_vectors)
    asked = asked if extractor or openie or url or model else asked._replace(extractor="none")
    with chosen_extractor(folder, configs, asked) as chosen, progress(quiet=quiet) as show:
        report = import_collection(
            folder,
            source,
            embedder=embedder,
            encoder_spec=spec,
            form=form,
            collection=collection or "passages",
            fields=_NAMES._replace(**{name: value for name, value in named.items() if value is not None}),
            vector_field=vector_field,
            vectors=not no_vectors,
            extractor=chosen.extractor,
            config=configs.index,
            run=with_values(configs.run, {"backend": backend} if backend else {}),
            diffuse=diffuse,
            damping=configs.search.damping,
            on_progress=lambda stage, done, whole: show(stage, done, whole),
        )
    _tell_collection(folder, source, report, embedder, json=json, quiet=quiet)


def _import_parquet(folder: Path, source: Path, *, json: bool, quiet: bool) -> None:
    with progress(quiet=quiet) as show:
        report = import_parquet(folder, source, on_progress=lambda stage, done, whole: show(stage, done, whole))
    if json:
        value = {"index": str(folder), "source": str(source), "counts": dict(report.counts)}
        print_json({**value, "records": report.records, "same_files": report.same, "bytes": report.bytes})
        return
    people().print(table(f"{folder}, generation 1", ["what", "count"], count_rows(report.counts)))
    people().print(
        f"{folder}: {report.same} files as in the exported index, {report.records:,} records of extractors, "
        f"{report.bytes / 2**20:,.1f} MiB."
    )


def _encoder(folder: Path, encoder: str | None, *, vectors: bool) -> tuple[str, Embedder]:
    """The encoder of the line, else of the index. A new index with vectors needs its name."""
    if not encoder and not has_index(folder) and vectors:
        raise UsageError(
            "Name the encoder that made the vectors (--encoder minilm, st:NAME, vllm:NAME, http:URL#MODEL, hashing), "
            "or leave them out with --no-vectors."
        )
    return writers_encoder(folder, encoder)


def _tell_collection(
    folder: Path, source: Path, report: CollectionReport, embedder: Embedder, *, json: bool, quiet: bool
) -> None:
    added, built = report.added, report.built
    names = ("added", "updated", "unchanged", "duplicates")
    counts: Mapping[str, int] = {name: getattr(added, name) for name in names}
    if json:
        value: dict[str, Any] = {"index": str(folder), "source": str(source), **counts}
        value |= {"vectors": report.vectors, "least_cosine": report.least_cosine, "refused": _listed(report.refused)}
        value |= {"generation": built.generation, "changed": built.changed, "counts": dict(built.counts)}
        print_json({**value, "failed": [list(item) for item in built.extraction.failed], "diffusion": built.diffusion})
    else:
        row = [*(f"{count:,}" for count in counts.values()), f"{len(report.refused):,}"]
        people().print(table("Passages", [*names, "refused"], [row]))
        people().print(table(f"{folder}, generation {built.generation}", ["what", "count"], count_rows(built.counts)))
    if report.least_cosine is not None:
        note(
            f"{report.vectors:,} vectors were taken as those of '{embedder.name}'. A few texts were encoded again; the "
            f"least cosine is {report.least_cosine:.5f}. Vectors of another encoder among the rest would be found by "
            "no question.",
            quiet=quiet,
        )
    if built.counts["phrases"] == 0:
        note(
            f"Nobody has read the passages: they are found by their vectors alone. hippogpu index {folder} CORPUS with "
            "--extractor or --openie reads them and keeps the vectors.",
            quiet=quiet,
        )
    note_list(f"Refused, {len(report.refused):,}", [str(item) for item in report.refused])
    note_list("Not read", [f"{id_}: {reason}" for id_, reason in built.extraction.failed])
    if report.refused or built.extraction.failed:
        raise typer.Exit(1)


def _listed(items: Sequence[Refusal]) -> list[dict[str, str]]:
    return [item._asdict() for item in items]
