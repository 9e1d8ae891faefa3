"""Records that an extraction log has lost, as the stored generation has them."""

from __future__ import annotations

from collections.abc import Iterable

from hippogpu.store import Snapshot
from hippogpu.text import content_key
from hippogpu.types import Record, Triple


def recovered(stored: Snapshot, keys: Iterable[str]) -> dict[str, Record]:
    """What the tables of a generation say of these texts, by content key; a text that it lacks is left out.

    Phrases and predicates are normalised there, and normalising again changes nothing: the same tables come of it.
    """
    wanted = set(keys)
    rows = {content_key(whole): row for row, whole in enumerate(stored.passages.wholes)} if wanted else {}
    return {key: _record(stored, rows[key]) for key in wanted if key in rows}


def _record(stored: Snapshot, row: int) -> Record:
    phrases, facts = stored.tables.phrases, stored.tables.facts
    triples = (
        Triple(
            phrases[int(facts.subject[i])], facts.predicate[int(i)], phrases[int(facts.object[i])], facts.text[int(i)]
        )
        for i in stored.tables.statements.row(row)
    )
    return Record(stored.passages.passage(row).id, tuple(triples))
