"""The state of each broker over time, and the nodes that it was cut off from, derived from notes.

Owns: the words for these states on the page.  Never: knows lanes or pages.
Kafka: no counterpart.

The spans of a broker are (at_ms, text, id of the note) in order of time.  Each lasts until the
next; an empty text means that there is nothing to show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kcluster.contract import CONTROLLER_ID
from kcluster.events.brokers import (
    BrokerDown,
    BrokerEvent,
    BrokerFenced,
    BrokerPaused,
    BrokerResumed,
    BrokerStarted,
    BrokerUnfenced,
)
from kcluster.events.network import LinkCut, LinkHealed, NetworkCut, NetworkHealed
from kcluster.events.words import counted_nodes, state_after
from kcluster.runs.record import NoteRow

NoteKey = tuple[int, int]
Spans = list[tuple[int, str, NoteKey | None]]

UP: Final = "up"
PAUSED: Final = "paused"
FENCED: Final = "fenced"


def broker_spans(
    notes: Iterable[NoteRow], brokers: Sequence[int]
) -> tuple[dict[int, Spans], dict[int, Spans]]:
    """By broker: the state of its process (`up`, `paused`, `killed`, …), and when it was fenced."""
    states: dict[int, Spans] = {broker: [] for broker in brokers}
    fenced: dict[int, Spans] = {broker: [] for broker in brokers}
    for note in notes:
        event = note.event
        if not isinstance(event, BrokerEvent) or event.broker not in states:
            continue
        broker = event.broker
        match event:
            case BrokerStarted() | BrokerResumed():
                states[broker].append((note.at_ms, UP, note.id))
            case BrokerPaused():
                states[broker].append((note.at_ms, PAUSED, note.id))
            case BrokerDown(how=how):
                states[broker].append((note.at_ms, state_after(how), note.id))
            case BrokerFenced():
                fenced[broker].append((note.at_ms, FENCED, note.id))
            case BrokerUnfenced():
                fenced[broker].append((note.at_ms, "", note.id))
    return states, fenced


def link_spans(notes: Iterable[NoteRow], brokers: Sequence[int]) -> dict[int, Spans]:
    """By broker: the nodes that it cannot reach or that cannot reach it, as text."""
    spans: dict[int, Spans] = {broker: [] for broker in brokers}
    to: dict[int, dict[int, None]] = {broker: {} for broker in brokers}
    back: dict[int, dict[int, None]] = {broker: {} for broker in brokers}
    touched: dict[int, NoteRow] = {}
    for note in notes:
        if touched and note.at_ms != next(iter(touched.values())).at_ms:
            _add_spans(touched, spans, to, back)
        event = note.event
        if not isinstance(event, LinkCut | LinkHealed):
            if isinstance(event, NetworkCut | NetworkHealed):
                # It summarizes the notes of its links.
                touched = dict.fromkeys(touched, note)
            continue
        source, end = event.source, event.destination
        for broker, other, known in ((source, end, to), (end, source, back)):
            if broker not in known:
                continue
            touched[broker] = note
            if isinstance(event, LinkCut):
                known[broker][other] = None
            else:
                known[broker].pop(other, None)
    _add_spans(touched, spans, to, back)
    return spans


def _add_spans(
    touched: dict[int, NoteRow],
    spans: dict[int, Spans],
    to: dict[int, dict[int, None]],
    back: dict[int, dict[int, None]],
) -> None:
    for broker, note in touched.items():
        spans[broker].append((note.at_ms, _cut_text(to[broker], back[broker], len(to)), note.id))
    touched.clear()


def _cut_text(to: dict[int, None], back: dict[int, None], brokers: int) -> str:
    """`cut off from`: the controller or most brokers; `no link with`: fewer brokers."""
    both = [node for node in to if node in back]
    peers = sum(node < CONTROLLER_ID for node in both)
    is_off = CONTROLLER_ID in both or 2 * peers > brokers - 1
    parts = (
        ("cut off from" if is_off else "no link with", both),
        ("cannot reach", [node for node in to if node not in back]),
        ("unreachable from", [node for node in back if node not in to]),
    )
    shown = ((words, counted_nodes(nodes)) for words, nodes in parts if nodes)
    return "; ".join(f"{words} {names}" for words, names in shown)
