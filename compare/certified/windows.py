"""How long a run's first failure took to be noticed and repaired, for brokers and for clients.

Owns: Windows, read from a run's events and verdict.  Never: plays a run.
Kafka: broker.session.timeout.ms, and the election after it, as an operator reads them from logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from kcluster.contract import Note
from kcluster.deaths import DeathKind
from kcluster.events.brokers import BrokerDown, BrokerFenced, BrokerPaused
from kcluster.events.network import NetworkCut
from kcluster.events.partitions import LeaderElected
from kcluster.scenario.play.phases import RunResult


class Windows(Struct, frozen=True):
    """Times in ms, of the cluster.  `detection_ms`: from the first fault that made the controller
    fence a broker until the fencing; `election_ms`: from the first fault that cost a partition its
    leader until the next leader; None if there was none.  `writes_ms`, `reads_ms`: the time in
    which the worst partition could not be written, or read."""

    detection_ms: int | None = None
    election_ms: int | None = None
    writes_ms: int = 0
    reads_ms: int = 0


def windows_of(result: RunResult) -> Windows:
    """The windows of a run."""
    notes = result.notes[result.first_note :]
    faults = list(_faults(notes))
    return Windows(
        detection_ms=_first(faults, notes, _fenced),
        election_ms=_first(faults, notes, _deposed),
        writes_ms=result.verdict.unavailable_ms("writes"),
        reads_ms=result.verdict.unavailable_ms("reads"),
    )


def _faults(notes: Sequence[Note]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The time of each fault after which the controller no longer hears some nodes, and these
    nodes."""
    for note in notes:
        event = note.event
        if isinstance(event, BrokerPaused) or (
            isinstance(event, BrokerDown) and event.how is not DeathKind.CLEAN
        ):
            yield note.at_ms, (event.broker,)
        elif isinstance(event, NetworkCut):
            yield note.at_ms, tuple(event.nodes)


def _fenced(note: Note) -> int | None:
    """The broker that was fenced."""
    return note.event.broker if isinstance(note.event, BrokerFenced) else None


def _deposed(note: Note) -> int | None:
    """The leader that lost a partition of users to another."""
    event = note.event
    return event.old_leader if isinstance(event, LeaderElected) and not event.is_internal else None


def _first(
    faults: Sequence[tuple[int, tuple[int, ...]]],
    notes: Sequence[Note],
    node_of: Callable[[Note], int | None],
) -> int | None:
    """The time from the first fault with such an event of its nodes until that event."""
    for at, (fault_ms, nodes) in enumerate(faults):
        until_ms = min(
            (ms for ms, later in faults[at + 1 :] if set(later) & set(nodes)), default=None
        )
        for note in notes:
            is_after = note.at_ms >= fault_ms and (until_ms is None or note.at_ms < until_ms)
            if is_after and node_of(note) in nodes:
                return note.at_ms - fault_ms
    return None
