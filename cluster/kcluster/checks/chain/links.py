"""The links of the chain that led to a finding, and the links that notes become.

Owns: Link; folding of equal changes of links.  Never: finds an anomaly or its causes (anomalies/
does); has words (words.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from msgspec import Struct

from kcluster.checks.chain.facts import ChainFact, ClientGot, Fact, ManyLinks, OfEvent
from kcluster.checks.chain.words import fact_text
from kcluster.contract import Event, Note, NoteId
from kcluster.events.network import LinkCut, LinkEvent, LinkHealed
from kcluster.evidence.causes import Cause, causes_of
from kcluster.evidence.lookups import Facts
from kcluster.json_types import JsonObject

MAX_LINKS_SHOWN: Final = 2


class Link(Struct, frozen=True):
    """One event of the chain that led to an anomaly.  `note_id`: the note that it was made from."""

    at_ms: int
    fact: Fact
    note_id: NoteId | None = None

    @property
    def text(self) -> str:
        """Its sentence, for people; no code reads it."""
        return fact_text(self.fact)

    @property
    def identity(self) -> Hashable:
        """What links have in common that report one thing."""
        return self.note_id or (self.at_ms, self.fact)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The causes that it stands for."""
        fact = self.fact
        if isinstance(fact, OfEvent):
            return causes_of(fact.event)
        return fact.CAUSES if isinstance(fact, ChainFact) else causes_of(fact)

    @property
    def error(self) -> str:
        """The error that a client received, by Kafka's name; "" for none."""
        return self.fact.error if isinstance(self.fact, ClientGot) else ""

    def as_json(self) -> JsonObject:
        """Its fields in the JSON of a verdict."""
        return {
            "at_ms": self.at_ms,
            "text": self.text,
            "note_id": None if self.note_id is None else list(self.note_id),
            "causes": [str(cause) for cause in self.causes],
            "error": self.error,
        }


def link(note: Note, fact: ChainFact | None = None) -> Link:
    """A note as a link of a chain.  `fact`: what its event meant there, if that is more."""
    return Link(note.at_ms, note.event if fact is None else fact, note.note_id)


def with_causes(facts: Facts, note: Note) -> list[Link]:
    """A note and its causes, each before its effect."""
    return [*(link(cause) for cause in reversed(facts.causes_of(note))), link(note)]


def condensed(notes: Iterable[Note]) -> list[Link]:
    """Each note as a link of a chain.  If more than two network links were cut or healed at once,
    one link of the chain covers them."""
    links: list[Link] = []
    of_links: dict[tuple[type[Event], int], list[tuple[Note, LinkEvent]]] = {}
    for note in notes:
        event = note.event
        if isinstance(event, LinkCut | LinkHealed):
            of_links.setdefault((type(event), note.at_ms), []).append((note, event))
        else:
            links.append(link(note))
    for same in of_links.values():
        if len(same) <= MAX_LINKS_SHOWN:
            links += [link(note) for note, _ in same]
        else:
            first, event = same[0]
            links.append(link(first, ManyLinks(event, len(same))))
    return links


def in_order(links: Iterable[Link]) -> list[Link]:
    """Links by time, equal times in the given order.  Of links that report one thing, the first
    counts."""
    once: dict[Hashable, Link] = {}
    for entry in links:
        once.setdefault(entry.identity, entry)
    return sorted(once.values(), key=lambda entry: entry.at_ms)
