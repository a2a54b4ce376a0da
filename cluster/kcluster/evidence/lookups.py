"""Look-ups in the record of a run: the brokers that were up, led a partition or held a record at a
time.

Owns: indexes over a recorder's notes, appends, moves and answers.  Never: explains an anomaly or a
window (checks/ does).  Kafka: no counterpart.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from kcluster.clients.ledger import Ledger, Partition, SentRecord
from kcluster.contract import Event, Note, NoteId, Request
from kcluster.deaths import ProcessState
from kcluster.events.brokers import (
    BrokerDown,
    BrokerEvent,
    BrokerFenced,
    BrokerPaused,
    BrokerResumed,
    BrokerStarted,
)
from kcluster.events.network import (
    LinkCut,
    LinkHealed,
    NetworkCut,
    NetworkHealed,
    NetworkShaped,
    RuleHit,
)
from kcluster.events.partitions import PartitionEvent
from kcluster.events.rule_effects import EFFECTS_ON_FETCHED
from kcluster.evidence.client_names import client_name
from kcluster.evidence.recorder import Answer, Recorder
from kcluster.invariants.observed import Append, Move, ObservedPartition
from kcluster.metadata.records import PartitionRegistration
from kcluster.network.fabric import Link
from kcluster.protocol.records.batches import Batch
from kcluster.runtime.dispatch import RUNTIME_ID

E = TypeVar("E", bound=Event)

CHANGES_OF_STATE: Final[dict[type[Event], ProcessState]] = {
    BrokerStarted: ProcessState.UP,
    BrokerResumed: ProcessState.UP,
    BrokerDown: ProcessState.DOWN,
    BrokerPaused: ProcessState.PAUSED,
}


class Facts:
    """The look-ups of one run, after its end."""

    def __init__(
        self,
        recorder: Recorder,
        ledger: Ledger,
        clients: Mapping[str, int] | None = None,
        names: Mapping[Batch, list[bytes]] | None = None,
    ) -> None:
        self.recorder = recorder
        self._names = {} if names is None else names
        """The names of records that their values do not identify, by batch."""
        self.clients = {} if clients is None else clients
        """The clients' ids in the fabric, by name."""
        self._client_names = {number: name for name, number in self.clients.items()}
        self.ledger = ledger
        self.notes = recorder.notes
        self.by_id: dict[NoteId, Note] = {note.note_id: note for note in self.notes}
        self._of_partition: dict[Partition, list[Note]] = {}
        self._of_broker: dict[int, list[Note]] = {}
        self._at: dict[int, list[Note]] = {}
        self._of_link: dict[Link, list[Note]] = {}
        self._links_of: dict[int, dict[Link, None]] = {}
        """The links with notes that begin or end at a node."""
        self._places_of_links: dict[NoteId, int] = {}
        """The place of each note about a link among all of them."""
        self._sets_changed: dict[tuple[type[Event], int], Note] = {}
        """The note of an operation on sets of links, which covers all notes of its links, by event
        and time."""
        for note in self.notes:
            self._index(note)
        self._answers: dict[tuple[int, int], Answer] | None = None
        self._places: dict[
            Partition, dict[bytes | None, list[tuple[ObservedPartition, Append, int]]]
        ] = {}
        self._sends: dict[tuple[Partition, bytes | None], SentRecord] | None = None

    def _index(self, note: Note) -> None:
        event = note.event
        self._at.setdefault(note.at_ms, []).append(note)
        if isinstance(event, PartitionEvent):
            key = (event.topic, event.partition)
            self._of_partition.setdefault(key, []).append(note)
        elif isinstance(event, BrokerEvent):
            self._of_broker.setdefault(event.broker, []).append(note)
        elif isinstance(event, LinkCut | LinkHealed):
            link = (event.source, event.destination)
            self._of_link.setdefault(link, []).append(note)
            self._places_of_links[note.note_id] = len(self._places_of_links)
            for node in link:
                self._links_of.setdefault(node, {})[link] = None
        elif isinstance(event, NetworkCut):
            self._sets_changed[LinkCut, note.at_ms] = note
        elif isinstance(event, NetworkHealed):
            self._sets_changed[LinkHealed, note.at_ms] = note

    def client_name(self, client_id: int) -> str:
        """A client's name by its id in the fabric."""
        return self._client_names.get(client_id, f"client {client_id}")

    # ---------------------------------------------------------------------------- about notes

    def is_operation(self, note: Note) -> bool:
        """Whether a note reports an operation on the cluster and is not covered by another note."""
        if note.note_id[0] != RUNTIME_ID:
            return False
        return (type(note.event), note.at_ms) not in self._sets_changed

    def notes_at(self, at_ms: int) -> list[Note]:
        """The notes of this millisecond."""
        return self._at.get(at_ms, [])

    def of_partition(self, partition: Partition, wanted: type[E]) -> list[tuple[Note, E]]:
        """A partition's notes about events of this type, oldest first, with these events."""
        return of_type(self._of_partition.get(partition, []), wanted)

    def of_broker(self, broker: int, wanted: type[E]) -> list[tuple[Note, E]]:
        """The notes about a broker as a process, with their events."""
        return of_type(self._of_broker.get(broker, []), wanted)

    def state(self, broker: int, at_ms: int) -> tuple[ProcessState, Note | None]:
        """The state of a broker's process at that time, and the note of the last change."""
        state, last = ProcessState.UP, None
        for note in self._of_broker.get(broker, []):
            if note.at_ms > at_ms:
                break
            change = CHANGES_OF_STATE.get(type(note.event))
            if change is not None:
                state, last = change, note
        return state, last

    def away(self, broker: int, at_ms: int) -> Note | None:
        """The note by which a broker's process went down or was paused, if it was still down or
        paused at that time."""
        state, note = self.state(broker, at_ms)
        return None if state is ProcessState.UP else note

    def cut(self, source: int, destination: int, at_ms: int) -> Note | None:
        """The note by which this link was cut, if it was cut at that time."""
        notes = self._of_link.get((source, destination), [])
        at = bisect_right(notes, at_ms, key=_moment)
        last = notes[at - 1] if at else None
        return last if last is not None and isinstance(last.event, LinkCut) else None

    def causes_of(self, note: Note) -> list[Note]:
        """The causes of `note`, the nearest first; if the last cause is the fencing of a broker,
        then also that broker's fault."""
        causes: list[Note] = []
        seen = {note.note_id}
        current = note
        while current.cause is not None and current.cause in self.by_id:
            current = self.by_id[current.cause]
            if current.note_id in seen:
                break
            seen.add(current.note_id)
            causes.append(current)
        fenced = current.event
        if isinstance(fenced, BrokerFenced):
            fault = self.fault_of(fenced.broker, current.at_ms)
            if fault is not None:
                causes.append(fault)
        return causes

    def fault_of(self, broker: int, at_ms: int) -> Note | None:
        """The last operation on a broker's process or links that was not undone at that time: the
        reason why other nodes do not hear from it."""
        away = self.away(broker, at_ms)
        if away is not None:
            return away
        cuts = [
            cut
            for link in self._links_of.get(broker, ())
            if (cut := self.cut(*link, at_ms)) is not None
        ]
        if not cuts:
            return None
        last = max(cuts, key=lambda cut: self._places_of_links[cut.note_id])
        return self._sets_changed.get((LinkCut, last.at_ms), last)

    # ------------------------------------------------------------------------- about partitions

    def registration(self, observed: ObservedPartition, at_ms: int) -> PartitionRegistration | None:
        """A partition's registration at the controller at that time."""
        at = bisect_right(observed.registrations, at_ms, key=lambda entry: entry[0])
        return observed.registrations[at - 1][1] if at else None

    def log_end(self, observed: ObservedPartition, broker: int, at_ms: int) -> int | None:
        """A replica's log end at that time; None before it was first seen."""
        at = bisect_right(observed.moves, at_ms, key=lambda move: move.at_ms)
        for move in reversed(observed.moves[:at]):
            if move.broker == broker:
                return move.log_end_offset
        return None

    def reached(self, observed: ObservedPartition, append: Append, broker: int) -> int | None:
        """The time at which a replica first had the whole batch of `append`, if it did so in that
        epoch."""
        for move in self._moves_since(observed, append.at_ms):
            if move.broker == broker and move.log_end_offset > append.last_offset:
                return move.at_ms
        return None

    def _moves_since(self, observed: ObservedPartition, at_ms: int) -> Iterator[Move]:
        first = bisect_right(observed.moves, at_ms - 1, key=lambda move: move.at_ms)
        for index in range(first, len(observed.moves)):
            yield observed.moves[index]

    # ---------------------------------------------------------------------- about single records

    def appends_at(
        self, partition: Partition, offset: int, value: bytes | None = None
    ) -> list[tuple[ObservedPartition, Append]]:
        """Every append that held `offset`, oldest first; with `value`, only appends with this value
        at the offset."""
        contents = self.recorder.contents
        return [
            (observed, append)
            for observed in self.recorder.of_partition(partition)
            for append in observed.appends
            if append.base_offset <= offset <= append.last_offset
            and (
                value is None
                or (offset, value) in contents.of(append.batch)
                or (offset, value) in self._named(append)
            )
        ]

    def _named(self, append: Append) -> list[tuple[int, bytes]]:
        """(offset, name) of the records of an append that are not identified by their values."""
        names = self._names.get(append.batch, ())
        entries = self.recorder.contents.of(append.batch) if names else ()
        return [
            (offset, name)
            for (offset, value), name in zip(entries, names, strict=False)
            if name != value
        ]

    def places(
        self, partition: Partition, value: bytes | None
    ) -> list[tuple[ObservedPartition, Append, int]]:
        """Every place where a value was ever appended: (the partition as observed, append, offset),
        oldest first."""
        known = self._places.get(partition)
        if known is None:
            known = self._places[partition] = {}
            for observed in self.recorder.of_partition(partition):
                for append in observed.appends:
                    for offset, own in self.recorder.contents.of(append.batch):
                        known.setdefault(own, []).append((observed, append, offset))
                    for offset, name in self._named(append):
                        known.setdefault(name, []).append((observed, append, offset))
        return known.get(value, [])

    def place(
        self, partition: Partition, value: bytes | None, offset: int
    ) -> tuple[ObservedPartition, Append, int] | None:
        """The append of a value that the log has at this offset; None if none was observed.

        The value may have been there before, and have been truncated; and a deposed leader may have
        appended it there later, in an older epoch."""
        places = self.places(partition, value)
        there = [each for each in places if each[0] is places[-1][0] and each[2] == offset]
        return max(there, key=lambda each: each[1].epoch, default=None)

    def send(self, partition: Partition, value: bytes | None) -> SentRecord | None:
        """The send of a value."""
        if self._sends is None:
            self._sends = {(send.partition, send.value): send for send in self.ledger.sends}
        return self._sends.get((partition, value))

    def rule_hit(self, request: Request) -> Note | None:
        """The note of the fault rule that applied to a request, if one did."""
        for note, hit in of_type(self.notes, RuleHit):
            if (
                hit.connection_id == request.connection_id
                and hit.correlation_id == request.correlation_id
            ):
                return note
        return None

    def altered_fetch(self, client: str, until_ms: int) -> Note | None:
        """The note of the last hit of a fault rule that changed the records that a client had
        fetched by this time."""
        simulated = self.recorder.plan.fabric.clients
        hits = [
            note
            for note, hit in of_type(self.notes, RuleHit)
            if isinstance(hit.effect, EFFECTS_ON_FETCHED)
            and note.at_ms <= until_ms
            and client_name(hit.client_id, simulated) == client
        ]
        return hits[-1] if hits else None

    def shaped(self, at_ms: int) -> Note | None:
        """The note of the last shaping of links, if it was in force at that time."""
        shaped = [each for each in of_type(self.notes, NetworkShaped) if each[0].at_ms <= at_ms]
        return shaped[-1][0] if shaped and not shaped[-1][1].restored else None

    def answer(self, request: Request | None) -> Answer | None:
        """The broker's answer to a request, if there was one."""
        if request is None:
            return None
        if self._answers is None:
            self._answers = {
                (answer[2].request.connection_id, answer[2].request.correlation_id): answer
                for answer in self.recorder.answers
            }
        return self._answers.get((request.connection_id, request.correlation_id))


def _moment(note: Note) -> int:
    return note.at_ms


def of_type(notes: Iterable[Note], wanted: type[E]) -> list[tuple[Note, E]]:
    """The notes about events of this type, each with its event."""
    return [(note, event) for note in notes if isinstance(event := note.event, wanted)]


def between(
    notes: list[Note], from_ms: int, to_ms: int, holds: Callable[[Note], bool] | None = None
) -> list[Note]:
    """The notes between these times, both included."""
    return [
        note for note in notes if from_ms <= note.at_ms <= to_ms and (holds is None or holds(note))
    ]
