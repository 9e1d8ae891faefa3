"""The verb diffuse."""

from __future__ import annotations

import time
from dataclasses import asdict

from hippogpu.cli import options
from hippogpu.cli.output import note, people, print_json, progress
from hippogpu.config import read_configs, with_values
from hippogpu.errors import UsageError
from hippogpu.index import diffuse_index


def diffuse(
    folder: options.Folder,
    damping: options.Damping = None,
    config: options.ConfigFile = None,
    backend: options.Backend = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Bring the diffused vectors of an index up to date: then a question costs two dense products and a short push.

    Until it is done the index answers as before. An interrupted run goes on where it stopped.

    \b
    hippogpu diffuse wiki.hippo
    """
    configs = read_configs(config)
    run = with_values(configs.run, {"backend": backend} if backend else {})
    damping = configs.search.damping if damping is None else damping
    if not 0.0 <= damping < 1.0:
        raise UsageError(f"The damping must be in [0, 1). Got {damping}.")
    started = time.perf_counter()
    with progress(quiet=quiet) as show:
        report = diffuse_index(
            folder, damping=damping, run=run, on_progress=lambda done, whole: show("diffuse", done, whole)
        )
    seconds = time.perf_counter() - started
    if json:
        print_json({"index": str(folder), **asdict(report), "seconds": round(seconds, 3)})
        return
    if not report.changed:
        note(f"{folder}: the diffused vectors are fresh; generation {report.generation} stays current.", quiet=quiet)
        return
    people().print(
        f"{folder}: diffused {report.passages:,} passage vectors of width {report.width} in {seconds:.1f} s; "
        f"generation {report.generation}, damping {report.damping:g}, error at most {report.error:.1e} of a degree."
    )
