"""The guides name everything there is, and README's lines work."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest
import typer

import hippogpu
from bench.ppr.results import RESULTS, read_results
from bench.quality.results import RESULTS as QUALITY
from bench.quality.results import read_results as read_quality
from bench.readme import stored_result, with_engine, with_quality, with_scale, with_table
from bench.scale.page import COST, stored
from bench.scale.page import QUALITY as SCALE_QUALITY
from hippogpu import config
from hippogpu.cli import app
from hippogpu.config import SearchConfig
from hippogpu.demo import demo_folder
from hippogpu.methods.hippo.evidence import EVIDENCE
from hippogpu.methods.hippo.weights import weights_for
from hippogpu.openie import parse
from hippogpu.testing.cli import run_verb

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
CLI = (ROOT / "docs" / "cli.md").read_text()
API = (ROOT / "docs" / "api.md").read_text()
CORPUS = (ROOT / "docs" / "corpus.md").read_text()
TOP = typer.main.get_command(app).commands  # type: ignore[attr-defined]
GROUPS = {name: verb.commands for name, verb in TOP.items() if hasattr(verb, "commands")}
COMMANDS = {name: verb for name, verb in TOP.items() if name not in GROUPS} | {
    f"{group} {name}": verb for group, verbs in GROUPS.items() for name, verb in verbs.items()
}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_every_verb_and_option_is_in_the_guide(verb: str) -> None:
    row = next(line for line in CLI.splitlines() if line.startswith(f"| `{verb} ") or line.startswith(f"| `{verb}`"))
    options = [name for parameter in COMMANDS[verb].params for name in parameter.opts if name.startswith("-")]
    assert [name for name in options if name not in row] == []


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_every_verb_has_an_example_in_its_help(verb: str) -> None:
    assert f"hippogpu {verb}" in run_verb(app, *verb.split(), "--help").out


@pytest.mark.parametrize("name", hippogpu.__all__)
def test_every_public_name_is_in_the_guide_and_can_be_imported(name: str) -> None:
    assert f"`{name}" in API
    assert getattr(hippogpu, name) is not None


SETTINGS = (
    *(config.IndexConfig, config.SearchConfig, config.RunConfig, config.LlmConfig, config.ExtractConfig),
    config.AnswerConfig,
)


@pytest.mark.parametrize("kind", list(SETTINGS))
def test_every_setting_is_in_the_guide_with_its_default(kind: type) -> None:
    shown = "\n".join(blocks(CLI, "toml"))
    for name, value in config.as_mapping(kind()).items():
        text = json.dumps(value) if not isinstance(value, float) else f"{value:g}".replace("e-0", "e-")
        assert f"{name} = {text}" in shown


def test_the_configuration_of_the_guide_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(blocks(CLI, "toml")[0])
    assert config.read_configs(path).index == config.IndexConfig()


def test_the_guide_lists_every_key_that_a_triple_may_have() -> None:
    rows = [line for line in CORPUS.splitlines() if line.startswith(("| subject |", "| predicate |", "| object |"))]
    assert [re.findall("`(.*?)`", row) for row in rows] == [
        list(keys) for keys in (parse.SUBJECT_KEYS, parse.PREDICATE_KEYS, parse.OBJECT_KEYS)
    ]


def test_the_shell_lines_of_readme_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for source, target in (("corpus", "corpus.jsonl"), ("openie", "openie.jsonl.gz"), ("queries", "questions.jsonl")):
        data = (demo_folder() / f"{source}.jsonl.gz").read_bytes()
        (tmp_path / target).write_bytes(data if target.endswith(".gz") else gzip.decompress(data))
    some = (tmp_path / "corpus.jsonl").read_text().splitlines(keepends=True)[:80]
    (tmp_path / "corpus.jsonl").write_text("".join(some))
    lines = [line for line in blocks(README, "sh")[2].splitlines() if line.startswith("hippogpu ")]
    assert len(lines) == 14
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        ran = run_verb(app, *(words[: words.index(">")] if ">" in words else words))
        assert (line, ran.code, ran.err if ran.code else "") == (line, 0, "")


def test_the_python_of_readme_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    records = [
        {"_id": "p1", "entities": [], "triples": [["Oliver Badman", "is from", "Montebello"]]},
        {"_id": "p2", "entities": [], "triples": [["Montebello", "part of", "Rockland County"]]},
    ]
    Path("openie.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    exec(compile(blocks(README, "python")[0], "README.md", "exec"), {})
    assert "'p2'" in capsys.readouterr().out


def test_links_between_the_guides_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())]
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def test_the_demo_command_and_the_test_command_stand_in_readme_once_each() -> None:
    commands = [
        line for line in README.splitlines() if line.startswith("python3 -m venv .venv && .venv/bin/pip install")
    ]
    assert [line.rsplit(" && ", 1)[1] for line in commands] == [".venv/bin/hippogpu demo", ".venv/bin/pytest"]


def test_the_figures_of_readme_are_those_of_the_stored_result() -> None:
    assert with_table(README, stored_result()) == README
    assert with_engine(README, read_results(RESULTS)) == README
    assert with_quality(README, read_quality(QUALITY)) == README
    assert with_scale(README, stored(COST), stored(SCALE_QUALITY)) == README


def test_the_weights_of_the_guide_are_those_that_rank() -> None:
    table = (ROOT / "docs" / "hippo.md").read_text("utf-8").replace("−", "-")
    weights = zip(EVIDENCE, weights_for(SearchConfig()), strict=True)
    assert [kind for kind, weight in weights if not re.search(rf"\| `{kind}` \|.*\| {weight:.3f} \|", table)] == []


def test_the_stored_result_passed_every_check() -> None:
    assert [check["name"] for check in stored_result()["checks"] if not check["passed"]] == []
