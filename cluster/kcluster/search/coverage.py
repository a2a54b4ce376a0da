"""What a run reached: states of partitions, orders of events, reasons; and when its events were.

Owns: the signatures of a run, the moments of its events.  Never: judges, changes anything in the
cluster.  Kafka: no counterpart; the coverage of fuzzers such as AFL, of states instead of lines.

A signature is a number that is equal in all processes.  It leaves out ids and offsets, so equal
states of different brokers are one.
"""

from __future__ import annotations

from enum import Enum
from typing import Final
from zlib import crc32

from kcluster.contract import Note
from kcluster.deaths import ProcessState
from kcluster.events.network import LinkEvent
from kcluster.events.partitions import PartitionEvent
from kcluster.events.steps import StepSkipped
from kcluster.evidence.recorder import Recorder
from kcluster.invariants.observed import ObservedPartition, ObservedReplica
from kcluster.protocol.names import has_internal_prefix
from kcluster.runtime.dispatch import Dispatcher

MAX_MOMENTS: Final = 100
"""The number of moments that are kept of each kind of event."""
MAX_EPOCHS: Final = 2
"""Epochs that are farther apart than this count as this far apart."""

_OTHERS: Final = (LinkEvent, StepSkipped)
"""The events of faults themselves."""


class Coverage:
    """The signatures of one run, from `attach` on.  `moments`: the moments of its events, in ms
    after `began_ms`, by their kind."""

    def __init__(self, dispatcher: Dispatcher, recorder: Recorder, began_ms: int) -> None:
        self.signatures: set[int] = set()
        self.moments: dict[str, list[int]] = {}
        self._dispatcher = dispatcher
        self._partitions = recorder.partitions
        self._began_ms = began_ms
        self._last: dict[str, str] = {}
        """The kind of the last event, by its subject."""
        self._cluster = ""
        """The kind of the last event of all."""

    def attach(self) -> None:
        """Begin to watch the notes of the run."""
        self._dispatcher.note_sinks = (*self._dispatcher.note_sinks, self._on_note)

    def _on_note(self, note: Note) -> None:
        event = note.event
        if isinstance(event, _OTHERS):
            return
        kind, subject = event.kind, event.subject
        times = self.moments.setdefault(kind, [])
        if len(times) < MAX_MOMENTS and note.at_ms >= self._began_ms:
            times.append(note.at_ms - self._began_ms)
        where = "internal" if event.is_internal else ""
        self._add(where, kind, self._last.get(subject, ""), *_reasons(event))
        self._last[subject] = kind
        if kind != self._cluster:
            self._add(self._cluster, kind)
            self._cluster = kind
        if isinstance(event, PartitionEvent):
            for partition in self._partitions.values():
                if partition.topic == event.topic and partition.partition == event.partition:
                    self._look(kind, partition)
        else:
            for partition in self._partitions.values():
                self._look(kind, partition)

    def _look(self, kind: str, partition: ObservedPartition) -> None:
        registration = partition.registration
        if registration is None:
            return
        leader = registration.leader
        end = max((each.log_end_offset for each in partition.replicas.values()), default=0)
        replicas = []
        for broker in registration.replicas:
            state = self._state(broker)
            replica = partition.replicas.get(broker)
            seen = () if replica is None else _seen(replica, registration.leader_epoch, end)
            replicas.append((broker == leader, broker in registration.isr, state, seen))
        where = "internal" if has_internal_prefix(partition.topic) else ""
        self._add(where, leader >= 0, len(registration.elr), *sorted(replicas))

    def _state(self, broker: int) -> int:
        process = self._dispatcher.processes.get(broker)
        return 0 if process is None else _STATES.get(process.state, 0)

    def _add(self, *parts: object) -> None:
        self.signatures.add(crc32(repr(parts).encode()))


_STATES: Final = {state: at for at, state in enumerate(ProcessState)}


def _seen(replica: ObservedReplica, epoch: int, end: int) -> tuple[object, ...]:
    """A replica's state: its role, how far its epoch is behind the controller's, whether it has all
    records, whether all of its records are committed."""
    behind = min(max(epoch - replica.leader_epoch, 0), MAX_EPOCHS)
    is_committed = replica.high_watermark == replica.log_end_offset
    return (replica.role.name, behind, replica.log_end_offset == end, is_committed)


def _reasons(event: object) -> list[str]:
    """The values of an event's fields that are one of a few: why it happened, and how."""
    fields = getattr(event, "__struct_fields__", ())
    values = [getattr(event, name) for name in fields]
    return [
        str(value) if isinstance(value, Enum) else type(value).__name__
        for value in values
        if isinstance(value, Enum) or hasattr(value, "__struct_fields__")
    ]
