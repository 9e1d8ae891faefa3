"""The one entry: python -m bench VERB."""

from __future__ import annotations

import typer

from bench.agreement import agreement
from bench.capacity import capacity
from bench.concurrent import concurrent
from bench.extract import extract
from bench.gpu_check import gpu_check
from bench.growth import growth
from bench.guide import guide
from bench.latency import latency
from bench.learn import learn
from bench.locality import locality, locality_report
from bench.opening import opening
from bench.oracle.command import oracle
from bench.ppr.command import ppr, ppr_report
from bench.quality.command import quality, quality_report
from bench.reading import reading
from bench.reading_page import reading_page
from bench.readme import readme
from bench.resolve import resolve
from bench.scale.command import app as scale
from bench.shards import shards, shards_report
from bench.spacy_quality import spacy
from bench.synonyms import synonyms
from bench.throughput import throughput
from bench.vector_types import vector_types
from bench.vectors import vectors, vectors_report

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
app.command("agreement")(agreement)
app.command("capacity")(capacity)
app.command("concurrent")(concurrent)
app.command("extract")(extract)
app.command("gpu_check")(gpu_check)
app.command("growth")(growth)
app.command("guide")(guide)
app.command("latency")(latency)
app.command("learn")(learn)
app.command("locality")(locality)
app.command("locality-report")(locality_report)
app.command("opening")(opening)
app.command("oracle")(oracle)
app.command("ppr")(ppr)
app.command("ppr-report")(ppr_report)
app.command("quality")(quality)
app.command("quality-report")(quality_report)
app.command("reading")(reading)
app.command("reading-page")(reading_page)
app.command("readme")(readme)
app.command("resolve")(resolve)
app.command("shards")(shards)
app.command("shards-report")(shards_report)
app.command("spacy")(spacy)
app.command("synonyms")(synonyms)
app.command("throughput")(throughput)
app.command("vector-types")(vector_types)
app.command("vectors")(vectors)
app.command("vectors-report")(vectors_report)
app.add_typer(scale, name="scale")


if __name__ == "__main__":
    app(prog_name="python -m bench")
