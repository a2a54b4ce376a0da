"""What state each broker was in, and from whom it was cut off, over time, from notes.

Owns: the words for states on a timeline.  Never: knows lanes or pages.
Kafka: no counterpart.

Spans of one broker: (at_ms, what, id of the note) in order; each lasts until the next; "" for
nothing to tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kcluster.runs.record import NoteRow
from kcluster.trace import kinds

NoteKey = tuple[int, int]
Spans = list[tuple[int, str, NoteKey | None]]

CONTROLLER: Final = 3000
FIRST_CLIENT: Final = 100_000
UP: Final = "up"
PAUSED: Final = "paused"
FENCED: Final = "fenced"
_DOWN: Final = {"clean": "stopped", "kill": "killed", "power": "lost power", "wipe": "wiped"}
_UP_AGAIN: Final = (kinds.BROKER_STARTED, kinds.BROKER_RESUMED)


def broker_spans(
    notes: Iterable[NoteRow], brokers: Sequence[int]
) -> tuple[dict[int, Spans], dict[int, Spans]]:
    """By broker: its process (`up`, `paused`, or how it went down), and when it was fenced."""
    states: dict[int, Spans] = {broker: [] for broker in brokers}
    fenced: dict[int, Spans] = {broker: [] for broker in brokers}
    for note in notes:
        broker = note.data.get("broker")
        if broker not in states:
            continue
        if note.kind in _UP_AGAIN:
            states[broker].append((note.at_ms, UP, note.id))
        elif note.kind == kinds.BROKER_PAUSED:
            states[broker].append((note.at_ms, PAUSED, note.id))
        elif note.kind == kinds.BROKER_DOWN:
            states[broker].append((note.at_ms, death_of(note), note.id))
        elif note.kind == kinds.BROKER_FENCED:
            fenced[broker].append((note.at_ms, FENCED, note.id))
        elif note.kind == kinds.BROKER_UNFENCED:
            fenced[broker].append((note.at_ms, "", note.id))
    return states, fenced


def death_of(note: NoteRow) -> str:
    """How a broker's process went, in a word or two."""
    return _DOWN.get(note.data.get("how", ""), "down")


def link_spans(notes: Iterable[NoteRow], brokers: Sequence[int]) -> dict[int, Spans]:
    """By broker: the nodes that it cannot reach, or that cannot reach it, in words."""
    spans: dict[int, Spans] = {broker: [] for broker in brokers}
    to: dict[int, dict[int, None]] = {broker: {} for broker in brokers}
    back: dict[int, dict[int, None]] = {broker: {} for broker in brokers}
    touched: dict[int, NoteRow] = {}
    for note in notes:
        if touched and note.at_ms != next(iter(touched.values())).at_ms:
            _tell(touched, spans, to, back)
        if note.kind not in (kinds.LINK_CUT, kinds.LINK_HEALED):
            if note.kind in (kinds.NETWORK_CUT, kinds.NETWORK_HEALED):
                # It says in one line what its links say.
                touched = dict.fromkeys(touched, note)
            continue
        source, end = note.data["source"], note.data["to"]
        for broker, other, known in ((source, end, to), (end, source, back)):
            if broker not in known:
                continue
            touched[broker] = note
            if note.kind == kinds.LINK_CUT:
                known[broker][other] = None
            else:
                known[broker].pop(other, None)
    _tell(touched, spans, to, back)
    return spans


def _tell(
    touched: dict[int, NoteRow],
    spans: dict[int, Spans],
    to: dict[int, dict[int, None]],
    back: dict[int, dict[int, None]],
) -> None:
    for broker, note in touched.items():
        spans[broker].append((note.at_ms, _cut_text(to[broker], back[broker], len(to)), note.id))
    touched.clear()


def _cut_text(to: dict[int, None], back: dict[int, None], brokers: int) -> str:
    """`cut off from` the controller or most brokers; `no link with` fewer."""
    both = [node for node in to if node in back]
    peers = sum(node < CONTROLLER for node in both)
    is_off = CONTROLLER in both or 2 * peers > brokers - 1
    parts = (
        ("cut off from" if is_off else "no link with", both),
        ("cannot reach", [node for node in to if node not in back]),
        ("is not reached by", [node for node in back if node not in to]),
    )
    return "; ".join(f"{words} {names(nodes)}" for words, nodes in parts if nodes)


def names(nodes: Sequence[int]) -> str:
    """`broker 1, controller, 2 clients`: nodes of the fabric for people."""
    words = [f"broker {node}" for node in sorted(nodes) if node < CONTROLLER]
    words += ["controller"] if CONTROLLER in nodes else []
    clients = sum(node >= FIRST_CLIENT for node in nodes)
    words += [f"{clients} client{'s' if clients > 1 else ''}"] if clients else []
    return ", ".join(words)
