"""The shipped example: 250 real passages with stored extractions, and three questions that need two passages each."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from hippogpu.config import RunConfig, SearchConfig
from hippogpu.corpus import Query, read_corpus, read_queries
from hippogpu.index import CommitReport, Index, Progress
from hippogpu.openie import ReplayExtractor
from hippogpu.searcher import Searcher
from hippogpu.types import Passage, Ranking

SHOWN = ("2hop__145018_36340", "2hop__32362_37771", "2hop__141468_119861")


class Answer(NamedTuple):
    """A question's ranking, the supporting passages, and the rank dense search gives each hit (from 1)."""

    question: Query
    ranking: Ranking
    dense_ranks: tuple[int, ...]

    @property
    def gold(self) -> tuple[str, ...]:
        return tuple(self.question.supporting)


class DemoReport(NamedTuple):
    """What indexing did, and the answers."""

    commit: CommitReport
    answers: tuple[Answer, ...]


def demo_folder() -> Path:
    """The folder with corpus.jsonl.gz, openie.jsonl.gz, queries.jsonl.gz, qrels.tsv and their attribution."""
    return Path(str(files("hippogpu.demo"))) / "data"


def demo_passages() -> tuple[Passage, ...]:
    """The 250 passages, in the source's order."""
    return tuple(read_corpus([demo_folder() / "corpus.jsonl.gz"]).passages)


def demo_questions() -> tuple[Query, ...]:
    """The three questions that run_demo answers, in order."""
    by_id = {query.id: query for query in read_queries(demo_folder() / "queries.jsonl.gz").queries}
    return tuple(by_id[id_] for id_ in SHOWN)


def run_demo(
    path: Path,
    *,
    k: int = 5,
    on_progress: Progress | None = None,
    run: RunConfig = RunConfig(),  # noqa: B008  (frozen)
) -> DemoReport:
    """Makes the demo's index at the path, or uses the one there, and answers its questions by the default method."""
    with Index.open(path, extractor=ReplayExtractor(demo_folder() / "openie.jsonl.gz"), run=run) as index:
        index.add(demo_passages())
        commit = index.commit(on_progress=on_progress)
    searcher = Searcher.open(path, run=run)
    questions = demo_questions()
    texts = [question.text for question in questions]
    rankings = searcher.rank(texts, k=k)
    dense = searcher.rank(texts, k=commit.counts["passages"], config=SearchConfig(method="dense"))
    return DemoReport(commit, tuple(map(_answer, questions, rankings, dense)))


def _answer(question: Query, ranking: Ranking, dense: Ranking) -> Answer:
    rank = {hit.passage.id: place for place, hit in enumerate(dense.hits, start=1)}
    return Answer(question, ranking, tuple(rank[hit.passage.id] for hit in ranking.hits))
