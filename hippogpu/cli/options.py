"""The options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hippogpu.config import (
    BackendName,
    DiffuseRule,
    ExtractorName,
    FilterName,
    ForceRule,
    LinkName,
    MethodName,
    ProfileName,
    Prompting,
    SolverName,
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the index.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout, all else on stderr.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="TOML with the tables [index], [search], [run], [llm], [extract] and [answer]."
    ),
]
Backend = Annotated[BackendName | None, typer.Option("--backend", help="Where the arithmetic runs (default auto).")]
Profile = Annotated[
    ProfileName | None,
    typer.Option("--profile", help="Rules of a new index: 'default', or 'oracle' for those of the papers' library."),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME",
        help="minilm, st:NAME, vllm:NAME, http:URL#MODEL, hashing (default: the index's own, or minilm for a new one).",
    ),
]
ReadersEncoder = Annotated[
    str | None,
    typer.Option(
        "--encoder", metavar="NAME", help="The encoder, where the index names one that is not trusted by itself."
    ),
]
OpenIe = Annotated[
    Path | None,
    typer.Option(
        "--openie", metavar="FILE", help="Stored extractions to replay: JSON lines, or openie_results_*.json."
    ),
]
Extractor = Annotated[
    ExtractorName | None,
    typer.Option(
        "--extractor",
        help="Who reads the passages (default auto: the configured model, else what read here before, else spaCy).",
    ),
]
Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="Address of an OpenAI-compatible server: https://host/v1.")
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Language model that is asked.")]
PromptingRule = Annotated[
    Prompting | None,
    typer.Option("--prompting", help="Ask for entities, then triples (default), or for both at once: half the tokens."),
]
Edges = Annotated[
    list[Path] | None,
    typer.Option(
        "--edges", metavar="FILE", help="Edges of one's own between passages and phrases; may be given several times."
    ),
]
Force = Annotated[
    ForceRule | None,
    typer.Option(
        "--force",
        help="Read every passage of the index again (extract), encode and link all anew (build), or both (all).",
    ),
]
Solver = Annotated[SolverName | None, typer.Option("--solver", help="How PageRank is solved (default auto).")]
Diffuse = Annotated[
    DiffuseRule,
    typer.Option("--diffuse", help="Diffuse the passage vectors: when it takes under a minute, always, or never."),
]
Damping = Annotated[
    float | None, typer.Option("--damping", min=0.0, max=1.0, help="Damping to diffuse for (default 0.5).")
]
Method = Annotated[MethodName | None, typer.Option("--method", help="How passages are ranked (default hippo).")]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        help="How passages are ranked; may be given several times (default: that of the settings, and dense).",
    ),
]
Filter = Annotated[
    FilterName | None, typer.Option("--filter", help="Which facts near to the question are kept (default none).")
]
Entities = Annotated[
    str | None,
    typer.Option(
        "--entities", metavar="NAME", help="Who names a question's entities: spacy (default), llm, or a FILE."
    ),
]
Link = Annotated[
    LinkName | None,
    typer.Option(
        "--link", help="What links a question to phrases in hippo and hippo2: facts (default), its entities, itself."
    ),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of [search]; repeatable.")
]
Hits = Annotated[int, typer.Option("-k", min=1, help="How many passages a question gets.")]
