"""A corpus of any size in the published proportions: python -m bench.scale.corpus FOLDER [--passages P]

Writes corpus.jsonl (_id, title, text), openie.jsonl (_id, entities, triples) and queries.jsonl, the same for the same
seed, a block of passages at a time: memory does not grow with the corpus.

What is imitated: 7.3 distinct phrases, 12.1 pairs of phrases joined by facts and 11.4 mentions a passage, which is the
papers' graph of MuSiQue, and 97 synonym edges a passage where hashing:384 encodes the phrases and cosines of 0.8 are
linked. The laws are those of bench.ppr.synthetic: each phrase first occurs in one passage, further mentions fall on
phrases by popularity (rank r with density r^(-2/3)), passages state unequally much (gamma distributed), one in a
thousand nothing, most facts are about the title, 3.5 % of the pairs are stated twice. Texts are 600 characters: the
phrases, and filling words of which the one of rank r has density 1/r.

Not imitated: meaning, topics, and names that share words oftener than by chance. For cost; never for retrieval quality.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from bench.ppr.synthetic import BARREN, GAMMA_SHAPE, MUSIQUE, POPULARITY_POWER, REPEATED_FACTS, TITLE_SHARE, distinct
from bench.scale.phrases import Universe, Words, glued, numbered, universe, vocabulary
from hippogpu.types import Longs

LEAST_PASSAGES = 500
CORPUS, RECORDS, QUESTIONS = "corpus.jsonl", "openie.jsonl", "queries.jsonl"

_BLOCK = 4096
_FILLING_WORDS, _FILLING = 50_000, 3
_PREDICATES = (
    "is a", "was born in", "died in", "is the capital of", "lies in", "is located in", "was founded by", "founded",
    "married", "is the father of", "is the daughter of", "played for", "directed", "was directed by", "wrote",
    "composed", "was released by", "produced", "won", "was awarded", "belongs to", "is part of", "borders",
    "flows into", "led", "was succeeded by", "studied at", "worked at", "lived in", "moved to", "was built by",
    "was named after",
)  # fmt: skip
_PREDICATE_TEXTS: Words = pa.array(_PREDICATES)

Random = np.random.Generator


class Block(NamedTuple):
    """Some passages: which phrases each mentions, and what it states.

    mentions  : phrase numbers, passage by passage · ends (passages,): where those of each passage end
    titles    : for each passage the place among `mentions` of the phrase it is about; −1 for one that states nothing
    subject, object : places among `mentions`, statements in passage order · stated (passages,): where those of each end
    predicate : one a statement
    """

    first: int
    mentions: Longs
    ends: Longs
    titles: Longs
    subject: Longs
    object: Longs
    predicate: Longs
    stated: Longs

    @property
    def passages(self) -> int:
        return len(self.ends)


def write_corpus(folder: Path, passages: int, *, seed: int = 0, questions: int = 256) -> dict[str, int]:
    """Writes the three files into a folder, each under its name when it is whole. Counts of what was written."""
    if passages < LEAST_PASSAGES:
        raise ValueError(f"The smallest corpus has {LEAST_PASSAGES} passages. Got {passages}.")
    folder.mkdir(parents=True, exist_ok=True)
    all_phrases, asked = universe(round(MUSIQUE.phrases * passages)), _asked(passages, questions)
    counts = {"passages": passages, "mentions": 0, "statements": 0, "questions": questions}
    parts = [folder / f"{name}.partial" for name in (CORPUS, RECORDS, QUESTIONS)]
    with parts[0].open("wb") as texts, parts[1].open("wb") as records, parts[2].open("w", encoding="ascii") as queries:
        for block in blocks(passages, all_phrases, seed=seed):
            phrases = all_phrases.texts(block.mentions)
            filling = np.random.default_rng([seed, block.first, 1])
            texts.write(_bytes(_passage_lines(block, phrases, filling)))
            records.write(_bytes(_record_lines(block, phrases)))
            queries.writelines(_questions(block, phrases, asked))
            counts["mentions"] += len(block.mentions)
            counts["statements"] += len(block.subject)
    for part in parts:
        part.replace(part.with_suffix(""))
    return counts


def blocks(passages: int, phrases: Universe, *, seed: int) -> Iterator[Block]:
    """The corpus in blocks of passages; each depends on the seed, its place and the number of all phrases alone."""
    for first in range(0, passages, _BLOCK):
        random = np.random.default_rng([seed, first, 0])
        yield _block(first, min(first + _BLOCK, passages), phrases, random)


def _block(first: int, end: int, phrases: Universe, random: Random) -> Block:
    passages = end - first
    keys = _mentions(first, end, phrases, random)
    passage, mentions = keys // phrases.count, keys % phrases.count
    ends = np.searchsorted(passage, np.arange(passages), side="right")
    counts = np.diff(ends, prepend=0)
    titles = np.where(counts > 0, ends - counts + (random.random(passages) * counts).astype(np.int64), -1)
    pairs = _pairs(passage, ends, counts, titles, _share(MUSIQUE.facts, first, end), random)
    again = np.sort(random.choice(pairs, round(REPEATED_FACTS * len(pairs)), replace=False))
    predicate = random.integers(len(_PREDICATES), size=len(pairs))
    other = (predicate[np.searchsorted(pairs, again)] + 1) % len(_PREDICATES)
    statements, predicate = np.concatenate([pairs, again]), np.concatenate([predicate, other])
    order = np.argsort(statements, kind="stable")
    subject, object_ = np.divmod(statements[order], len(mentions))
    about = titles[passage[object_]] == object_
    subject, object_ = np.where(about, object_, subject), np.where(about, subject, object_)
    stated = np.searchsorted(passage[subject], np.arange(passages), side="right")
    return Block(first, mentions, ends, titles, subject, object_, predicate[order], stated)


def _share(a_passage: float, first: int, end: int) -> int:
    return round(a_passage * end) - round(a_passage * first)


def _mentions(first: int, end: int, phrases: Universe, random: Random) -> Longs:
    """Keys passage · E + phrase, ascending and distinct: the block's own phrases once each, others by popularity."""
    share = random.gamma(GAMMA_SHAPE, size=end - first) * (random.random(end - first) >= BARREN)
    reach = np.cumsum(share)
    own = np.arange(round(MUSIQUE.phrases * first), round(MUSIQUE.phrases * end))

    def some_passages(size: int) -> Longs:
        chosen: Longs = np.searchsorted(reach, random.random(size) * reach[-1], side="right")
        return np.minimum(chosen, end - first - 1)

    def draw(size: int) -> Longs:
        rank = (phrases.count * random.random(size) ** POPULARITY_POWER).astype(np.int64)
        return some_passages(size) * phrases.count + phrases.popular(rank)

    held = np.sort(some_passages(len(own)) * phrases.count + own)
    return distinct(held, _share(MUSIQUE.mentions, first, end), draw, random)


def _pairs(passage: Longs, ends: Longs, counts: Longs, titles: Longs, wanted: int, random: Random) -> Longs:
    """Keys low · M + high of places of mentions that one passage joins; every mention takes part in one at least."""
    total = len(passage)

    def joined(place: Longs) -> Longs:
        here = passage[place]
        start, count = (ends - counts)[here], counts[here]
        step = 1 + (random.random(len(place)) * (count - 1)).astype(np.int64)
        any_other = start + (place - start + step) % count
        title = (random.random(len(place)) < TITLE_SHARE) & (titles[here] != place)
        other = np.where(title, titles[here], any_other)
        return np.where(count > 1, np.minimum(place, other) * total + np.maximum(place, other), -1)

    every = np.unique(joined(np.arange(total)))
    return distinct(every[every >= 0], wanted, lambda size: joined(random.integers(total, size=size)), random)


def _passage_lines(block: Block, phrases: Words, random: Random) -> Words:
    """A line of JSON for each passage."""
    words, count = _filling_words(), len(phrases)
    rank = (_FILLING_WORDS ** random.random((_FILLING, count))).astype(np.int64) - 1
    filling = [words.take(numbered(row)) for row in rank]
    sentences = glued(phrases, *filling, " ")
    ids, numbers = _ids(block), numbered(np.arange(block.first, block.first + block.passages)).cast(pa.string())
    barren = glued("Page", numbers, " ")
    titles = pc.coalesce(phrases.take(pa.array(block.titles, mask=block.titles < 0)), barren)
    texts = glued(_joined(sentences, block.ends, ". "), ".", "")
    return glued('{"_id": "', ids, '", "title": "', titles, '", "text": "', texts, '"}\n', "")


def _record_lines(block: Block, phrases: Words) -> Words:
    """A line of JSON for each passage's entities and triples."""
    predicates = _PREDICATE_TEXTS.take(numbered(block.predicate))
    subjects, objects = (phrases.take(numbered(places)) for places in (block.subject, block.object))
    triples = glued('["', subjects, '", "', predicates, '", "', objects, '"]', "")
    entities = glued('"', phrases, '"', "")
    named, stated = _joined(entities, block.ends, ", "), _joined(triples, block.stated, ", ")
    return glued('{"_id": "', _ids(block), '", "entities": [', named, '], "triples": [', stated, "]}\n", "")


def _asked(passages: int, questions: int) -> Longs:
    """The passages that questions are asked of, evenly spread."""
    return np.unique(((np.arange(questions) + 0.5) * passages / questions).astype(np.int64))


def _questions(block: Block, phrases: Words, asked: Longs) -> Iterator[str]:
    """A question for each passage of the block that is to be asked of, made of its first and last statement."""
    here = asked[(asked >= block.first) & (asked < block.first + block.passages)] - block.first
    for row in here.tolist():
        start, end = int(block.stated[row - 1]) if row else 0, int(block.stated[row])
        if end == start:
            continue
        (one, verb, _), (_, other_verb, two) = (
            (
                phrases[int(block.subject[at])].as_py(),
                _PREDICATES[block.predicate[at]],
                phrases[int(block.object[at])].as_py(),
            )
            for at in (start, end - 1)
        )
        id_ = f"p{block.first + row:09d}"
        text = f"Who or what is it that {one} {verb}, and who or what {other_verb} {two}?"
        yield json.dumps({"_id": f"q-{id_}", "question": text, "supporting_ids": [id_]}) + "\n"


@cache
def _filling_words() -> Words:
    return vocabulary(_FILLING_WORDS, 2, seed=10)


def _ids(block: Block) -> Words:
    numbers = numbered(np.arange(block.first, block.first + block.passages)).cast(pa.string())
    return glued("p", pc.utf8_lpad(numbers, 9, "0"), "")


def _joined(texts: Words, ends: Longs, between: str) -> Words:
    """Runs of texts as one text each."""
    offsets = numbered(np.concatenate([[0], ends]).astype(np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, texts), between)


def _bytes(lines: Words) -> memoryview:
    """All lines in a row: the one buffer in which Arrow holds them."""
    _, offsets, data = lines.buffers()
    assert lines.offset == 0
    return memoryview(data)[: int(np.frombuffer(offsets, np.int32)[len(lines)])]


def main(
    folder: Path,
    passages: Annotated[int, typer.Option(help="How many passages.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Another seed gives another corpus.")] = 0,
    questions: Annotated[int, typer.Option(help="How many questions.")] = 256,
) -> None:
    """Write a corpus, its stored extractions and questions into a folder."""
    typer.echo(json.dumps(write_corpus(folder, passages, seed=seed, questions=questions)))


if __name__ == "__main__":
    typer.run(main)
