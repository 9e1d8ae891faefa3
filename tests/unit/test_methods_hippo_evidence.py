"""What speaks for the passages of a pool: each kind in its range, worked out again in plain words, on every backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hippo_cases import HIPPO, worked
from method_cases import loaded, rank
from small_index import WIDTH, index_of, open_index, stating

from hippogpu.config import IndexConfig, SearchConfig
from hippogpu.corpus import read_queries
from hippogpu.demo import demo_folder, demo_passages
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.index import Index
from hippogpu.methods import Loaded
from hippogpu.methods.hippo.evidence import EVIDENCE, Pooled, log_share
from hippogpu.methods.lexical import asked_words, word_counts
from hippogpu.openie import ReplayExtractor
from hippogpu.types import AnyFloats
from hippogpu.words import words_of

RANGES = {"facts": (-1.0, 1e-3), "names": (-1.0, 1e-3)}
# Vectors and masses in float32 against float64; the log scale stretches what is small by up to 1 ÷ (0.001 · log 1000).
CLOSE, STRETCHED = 1e-5, 2e-3
WALKED = replace(HIPPO, solver="power", tolerance=1e-9)
QUESTIONS = [query.text for query in read_queries(demo_folder() / "queries.jsonl.gz").queries][:12]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evidence") / "demo.hippo"
    records, embedder = ReplayExtractor(demo_folder() / "openie.jsonl.gz"), HashingEmbedder(WIDTH)
    with Index.open(folder, extractor=records, embedder=embedder, encoder_spec=f"hashing:{WIDTH}") as index:
        index.add(demo_passages())
        index.commit()
    return folder


@pytest.fixture(scope="module")
def here(demo: Path) -> Loaded:
    return loaded(demo, "cpu")


@pytest.fixture(scope="module")
def pools(here: Loaded) -> list[Pooled]:
    return list(worked(here, HIPPO, QUESTIONS).pools)


def column(pool: Pooled, kind: str) -> AnyFloats:
    values: AnyFloats = pool.evidence[:, EVIDENCE.index(kind)]
    return values


@pytest.mark.parametrize("kind", EVIDENCE)
def test_each_kind_stays_in_its_range_and_says_something(pools: list[Pooled], kind: str) -> None:
    low, high = RANGES.get(kind, (0.0, 1.0))
    values = np.concatenate([column(pool, kind) for pool in pools])
    assert low <= values.min() < values.max() <= high + 1e-9


@pytest.fixture(scope="module")
def words(here: Loaded) -> list[set[str]]:
    """The words of each passage."""
    return [set(words_of(text)) for text in here.snapshot.passages.wholes]


Told = Callable[[str], dict[str, float]]


@pytest.fixture(scope="module")
def told(here: Loaded, words: list[set[str]]) -> Told:
    """From a text to the share of weight of each of its words that some passages have, and few enough of them."""
    counts = Counter(word for row in words for word in row)

    def shares(text: str) -> dict[str, float]:
        (numbers,) = asked_words(here, [text], HIPPO)
        telling = [word_counts(here).words[number] for number in numbers.tolist()]
        weights = {word: np.log1p(len(words) / counts[word]) for word in telling}
        return {word: weight / sum(weights.values()) for word, weight in weights.items()}

    return shares


def covered(told: dict[str, float], words: set[str]) -> float:
    return sum(share for word, share in told.items() if word in words)


def test_words_and_rest_are_the_shares_that_they_are_said_to_be(
    here: Loaded, pools: list[Pooled], words: list[set[str]], told: Told
) -> None:
    for question, pool in zip(QUESTIONS, pools, strict=True):
        shares, rows = told(question), [words[row] for row in pool.rows]
        assert column(pool, "words") == pytest.approx([covered(shares, row) for row in rows])
        leader = words[int(np.argmax(worked(here, HIPPO, [question]).masses.total(HIPPO)))]
        assert column(pool, "rest") == pytest.approx([covered(shares, row - leader) for row in rows])


def test_title_is_the_share_of_the_titles_weight_that_the_question_has(
    here: Loaded, pools: list[Pooled], told: Told
) -> None:
    titles = [here.snapshot.passages.passage(row).title for row in range(len(here.snapshot.passages))]
    for question, pool in zip(QUESTIONS, pools, strict=True):
        named = set(words_of(question))
        assert column(pool, "title") == pytest.approx([covered(told(titles[row]), named) for row in pool.rows])


def test_a_pair_covers_what_passage_and_partner_have_and_no_less_than_the_passage(
    pools: list[Pooled], words: list[set[str]], told: Told
) -> None:
    for question, pool in zip(QUESTIONS, pools, strict=True):
        shares = told(question)
        both = [words[row] | (words[other] if other >= 0 else set()) for row, other in zip(*pool[::2], strict=True)]
        assert column(pool, "pair") == pytest.approx([covered(shares, row) for row in both])
        assert (column(pool, "pair") >= column(pool, "words") - 1e-12).all()


def test_partners_share_a_phrase_that_few_passages_mention(here: Loaded, pools: list[Pooled]) -> None:
    mentions = here.snapshot.tables.mentions
    for pool in pools:
        for place in np.flatnonzero(pool.partners >= 0):
            shared = np.intersect1d(mentions.row(int(pool.rows[place])), mentions.row(int(pool.partners[place])))
            assert here.mention_counts[shared].min() <= 5  # and 2 % of 250 passages


def test_a_pool_is_the_first_passages_by_the_graph_and_by_the_texts(here: Loaded) -> None:
    config = replace(HIPPO, pool=7)
    found = worked(here, config, QUESTIONS)
    for i, pool in enumerate(found.pools):
        graph, text = (
            np.argsort(-row[i], kind="stable")[:7] for row in (found.masses.total(config), found.texts.nearest)
        )
        assert pool.rows.tolist() == sorted({*graph.tolist(), *text.tolist()})


def test_vectors_and_walks_speak_as_shares_of_the_greatest_over_all_passages(here: Loaded) -> None:
    found = worked(here, HIPPO, QUESTIONS)
    for i, pool in enumerate(found.pools):
        facts, names, passages = (mass[i].astype(np.float64) for mass in found.masses)
        assert column(pool, "dense") == pytest.approx(found.texts.dense[i, pool.rows])
        assert column(pool, "near") == pytest.approx((passages / passages.max())[pool.rows])
        assert column(pool, "facts") == pytest.approx(log_share(facts, facts.max())[pool.rows])
        assert column(pool, "names") == pytest.approx(log_share(names, names.max())[pool.rows])


def test_a_batch_gathers_as_its_questions_alone(here: Loaded, pools: list[Pooled]) -> None:
    for question, together in zip(QUESTIONS, pools, strict=True):
        (alone,) = worked(here, HIPPO, [question]).pools
        assert alone.rows.tolist() == together.rows.tolist()
        assert alone.evidence == pytest.approx(together.evidence, abs=CLOSE)
        assert alone.partners.tolist() == together.partners.tolist()


def test_every_backend_gathers_the_evidence_of_the_reference(demo: Path, here: Loaded) -> None:
    reference = loaded(demo, "reference")
    ours, theirs = (worked(one, WALKED, QUESTIONS).pools for one in (here, reference))
    for one, other in zip(ours, theirs, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        assert one.evidence == pytest.approx(other.evidence, abs=STRETCHED)
        assert one.partners.tolist() == other.partners.tolist()


@pytest.mark.parametrize(("config", "k"), [(WALKED, 50), (replace(HIPPO, push_epsilon=1e-9), 50)])
def test_every_backend_ranks_as_the_reference(demo: Path, here: Loaded, config: SearchConfig, k: int) -> None:
    found = (rank(one, QUESTIONS, config, k=k) for one in (here, loaded(demo, "reference")))
    ours, theirs = ([row.rows.tolist() for row in rows] for rows in found)
    assert ours == theirs


def test_a_question_of_unknown_words_has_the_evidence_of_vectors_and_walks_alone(here: Loaded) -> None:
    (pool,) = worked(here, HIPPO, ["zzzz qqqq?"]).pools
    for kind in ("words", "title", "pair", "rest"):
        assert not column(pool, kind).any()
    assert column(pool, "dense").max() == pytest.approx(1.0)


def test_a_passage_without_a_title_has_none_that_is_asked_for(made: Path) -> None:
    (pool,) = worked(loaded(made), HIPPO, ["Oliver Badman wrote notes"]).pools
    assert column(pool, "title").tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_a_title_of_words_that_all_passages_have_tells_nothing(tmp_path: Path) -> None:
    passages = [stating(f"p{i}", f"word{i}", title="The Town") for i in range(12)]
    index_of(tmp_path / "towns.hippo", passages)
    (pool,) = worked(loaded(tmp_path / "towns.hippo"), HIPPO, ["the town word3"]).pools
    assert not column(pool, "title").any()
    assert column(pool, "words").tolist() == [float(i == 3) for i in range(12)]


class Words(HashingEmbedder):
    """An encoder whose tokens are words."""

    def token_counts(self, texts: list[str]) -> list[int]:  # type: ignore[override]
        return [len(text.split()) for text in texts]


def test_every_chunk_of_a_document_has_its_title(tmp_path: Path) -> None:
    text = " ".join(f"Word {i} is here now." for i in range(4))
    with open_index(
        tmp_path / "c.hippo", embedder=Words(WIDTH), config=IndexConfig(chunk_tokens=8, chunk_overlap=0)
    ) as index:
        index.add([stating("d", text, title="Ada Lovelace")])
        index.commit()
    (pool,) = worked(loaded(tmp_path / "c.hippo"), HIPPO, ["who is Ada?"]).pools
    assert len(pool.rows) > 2
    assert column(pool, "title").tolist() == [0.5] * len(pool.rows)


def test_shares_of_mass_are_on_a_log_scale_from_minus_one_for_none() -> None:
    assert log_share(np.array([0.0, 2.0]), 2.0) == pytest.approx([-1.0, np.log(1.001) / np.log(1000)])
    assert log_share(np.array([0.5]), 1.0) == pytest.approx(np.log(0.501) / np.log(1000))
    assert log_share(np.zeros(3), 0.0).tolist() == [-1.0] * 3
    assert log_share(np.array([-1e-12]), 1.0).tolist() == [-1.0]


def test_nothing_is_near_where_passage_seeds_weigh_nothing(made: Path) -> None:
    (pool,) = worked(loaded(made), replace(HIPPO, passage_weight=0.0), ["zzz"]).pools
    assert not column(pool, "near").any()
