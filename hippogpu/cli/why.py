"""search --why: what carried mass to a hit, as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.markup import escape

from hippogpu.cli.output import people, printable
from hippogpu.config import SearchConfig
from hippogpu.searcher import Searcher
from hippogpu.types import Explanation, MassPath, PathNode, PathStep, Ranking

EXPLAINED = 5
"""Hits that are explained at most."""
_LEAST_SHARE, _LEAST_EVIDENCE = 0.0005, 0.005
_NAMED_FACTS, _NAMED_PASSAGES, _LONG = 2, 2, 60


class Why(NamedTuple):
    """What is to be explained: nothing, the first hits, or the passages of these ids."""

    wanted: bool = False
    passages: tuple[str, ...] = ()


def with_explanations(
    searcher: Searcher, batches: Iterable[Sequence[Ranking]], config: SearchConfig, why: Why
) -> Iterator[tuple[Ranking, Sequence[Explanation]]]:
    """Each ranking with the explanations that are wanted."""
    for batch in batches:
        found: Sequence[Sequence[Explanation]] = [()] * len(batch)
        if why.wanted:
            found = searcher.explain(batch, k=EXPLAINED, passages=why.passages, config=config)
        yield from zip(batch, found, strict=True)


def show_explanations(ranking: Ranking, explanations: Sequence[Explanation]) -> None:
    """A block of lines for each passage: what its mass came from, and the strongest paths."""
    out, notes = people(), {one.note for one in explanations}
    rank = {hit.passage.id: place for place, hit in enumerate(ranking.hits, start=1)}
    if len(notes) == 1 and None not in notes and not any(one.words for one in explanations):
        out.print(escape(printable(f"why: {notes.pop()}")))
        explanations = ()
    for one in explanations:
        out.print(f"[bold]{escape(printable(_heading(one, rank.get(one.passage.id))))}[/]")
        for line in explanation_lines(one):
            out.print(escape(printable(line)))
    if notes:
        out.print()


def explanation_lines(one: Explanation) -> list[str]:
    """What a score is made of, the shares of the passage's mass, then a line for each path with its share."""
    if one.words:
        return [f"   {one.note}: " + ", ".join(f"{word.word} {word.score:.2f}" for word in one.words)]
    if one.note:
        return [f"   {one.note}"]
    weighed = sorted(one.evidence, key=lambda kind: -abs(kind.weight * kind.value))
    evidence = ", ".join(
        f"{kind.kind} {kind.weight * kind.value:+.2f}" + (f" (with {kind.partner})" if kind.partner else "")
        for kind in weighed
        if abs(kind.weight * kind.value) >= _LEAST_EVIDENCE
    )
    whole = sum(kind.weight * kind.value for kind in one.evidence)
    lines = [f"   score {whole:.2f} = {evidence}"] if evidence else []
    if not one.mass:
        return [*lines, "   nothing walked to it"]
    shares = [
        ("its own text", one.own),
        *((f'seed "{seed.phrase}"', seed.mass) for seed in sorted(one.seeds, key=lambda seed: -seed.mass)),
        ("other passages", one.others),
    ]
    told = [f"{name} {_percent(mass / one.mass)}" for name, mass in shares if mass >= _LEAST_SHARE * one.mass]
    walked = "   walked to it: " if evidence else "   "
    paths = [
        f"   {_percent(path.mass / one.mass):>6}  {path_line(path, one.passage.id)}"
        for path in one.paths
        if path.mass >= _LEAST_SHARE * one.mass
    ]
    return [*lines, walked + ", ".join(told), *paths]


def path_line(path: MassPath, explained: str) -> str:
    """Nodes and edges in a row. explained: the id of the passage at the end, whose facts need no mention of it."""
    line = _node(path.nodes[0], explained)
    for step, before, node in zip(path.steps, path.nodes, path.nodes[1:], strict=False):
        line += f" ─({_step(step, before, explained)})→ {_node(node, explained)}"
    return line


def _heading(one: Explanation, rank: int | None) -> str:
    title = f"{one.passage.title} ({one.passage.id})" if one.passage.title else one.passage.id
    if rank:
        return f"{rank}. {title}"
    return f"{title}, no hit" if one.score is None else f"{title}, no hit; score {one.score:.6f}"


def _node(node: PathNode, explained: str) -> str:
    """A phrase, or a passage in brackets: by its title, and its id too where it is another than the one explained."""
    if node.kind == "phrase":
        return node.name
    if not node.title or node.name == explained:
        return f"[{node.title or node.name}]"
    return f"[{node.title}, {node.name}]"


def _step(step: PathStep, before: PathNode, explained: str) -> str:
    if step.kind == "mention":
        return "mentions" if before.kind == "passage" else "mentioned in"
    if step.kind == "synonym":
        return f"synonym, cosine {step.cosine:.2f}"
    if step.kind == "name":
        return f"another name, weight {step.weight:.2f}"
    if step.kind == "own":
        return f"own edge, weight {step.weight:g}"
    facts = [f"{fact.subject}, {_short(fact.predicate)}, {fact.object}" for fact in step.facts]
    states = list(dict.fromkeys(id_ for fact in step.facts for id_ in fact.passages))
    where = "" if explained in states else f"; stated in {_some(states, _NAMED_PASSAGES, ', ')}"
    return f"fact: {_some(facts, _NAMED_FACTS, '; ')}{where}"


def _short(text: str) -> str:
    """An extractor without a model gives whole sentences as predicates."""
    return text if len(text) <= _LONG else f"{text[:_LONG].rsplit(' ', 1)[0]} …"


def _some(names: Sequence[str], most: int, between: str) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0095 else f"{100 * share:.1f} %"
