"""What a run reached: states of partitions, brokers and coordinators, orders of events, reasons,
errors; and when.

Owns: the signatures of a run, the moments of its events.  Never: judges, changes anything in the
cluster.  Kafka: no counterpart; the coverage of fuzzers such as AFL, of states instead of lines.

A signature is a number that is equal in all processes.  It leaves out ids and offsets, so equal
states of different brokers are one.
"""

from __future__ import annotations

from enum import Enum
from typing import Final
from zlib import crc32

from kcluster.contract import CONTROLLER_ID, Note, Reply
from kcluster.deaths import ProcessState
from kcluster.events.clients import GroupEvent
from kcluster.events.network import LinkEvent, RuleEvent
from kcluster.events.partitions import PartitionEvent
from kcluster.events.steps import StepSkipped
from kcluster.events.transactions import TransactionEvent
from kcluster.evidence.recorder import Recorder
from kcluster.invariants.observed import ObservedPartition, ObservedReplica
from kcluster.protocol.names import has_internal_prefix
from kcluster.runtime.dispatch import Dispatcher

MAX_MOMENTS: Final = 100
"""The number of moments that are kept of each kind of event."""
MAX_EPOCHS: Final = 2
"""Epochs that are farther apart than this count as this far apart."""

SOON_MS: Final = 200
"""An event this soon after a fault is one of that fault."""
_OTHERS: Final = (LinkEvent, RuleEvent, StepSkipped)
"""The events of faults themselves."""


class Coverage:
    """The signatures of one run, from `attach` on.  `moments`: the moments of its events, in ms
    after `began_ms`, by their kind."""

    def __init__(self, dispatcher: Dispatcher, recorder: Recorder, began_ms: int) -> None:
        self.signatures: dict[int, int] = {}
        """The moment at which each was first reached, in ms after `began_ms`."""
        self.moments: dict[str, list[int]] = {}
        self._dispatcher = dispatcher
        self._partitions = recorder.partitions
        self._began_ms = began_ms
        self._known: set[tuple[object, ...]] = set()
        """The parts of `signatures`, which are faster to compare than to number."""
        self._last: dict[str, str] = {}
        """The kind of the last event, by its subject."""
        self._now_ms = 0
        self._fault = ""
        """The kind of the last fault, and the time since when it counts."""
        self._fault_ms = 0
        self._cluster = ""
        """The kind of the last event of all."""

    def attach(self) -> None:
        """Begin to watch the notes and the answers of the run."""
        dispatcher = self._dispatcher
        dispatcher.note_sinks = (*dispatcher.note_sinks, self._on_note)
        dispatcher.reply_sinks = (*dispatcher.reply_sinks, self._on_reply)

    def _on_reply(self, _node_id: int, reply: Reply, now_ms: int) -> None:
        """An error of an API, by the last event of all: which answer meets which state."""
        error = getattr(reply.body, "error_code", 0)
        if error:
            self._now_ms = now_ms
            self._add("answer", reply.request.api_key, int(error), self._cluster)

    def _on_note(self, note: Note) -> None:
        event = note.event
        self._now_ms = note.at_ms
        if isinstance(event, _OTHERS):
            self._fault, self._fault_ms = event.kind, note.at_ms
            return
        kind, subject = event.kind, event.subject
        times = self.moments.setdefault(kind, [])
        if len(times) < MAX_MOMENTS and note.at_ms >= self._began_ms:
            times.append(note.at_ms - self._began_ms)
        where = "internal" if event.is_internal else ""
        self._add(where, kind, self._last.get(subject, ""), *_reasons(event))
        if note.at_ms - self._fault_ms <= SOON_MS:
            self._add(where, kind, "after", self._fault)
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
        if isinstance(event, GroupEvent | TransactionEvent):
            self._look_at_coordinators(kind)

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
        pending = self._pending(partition, leader)
        self._add(where, leader >= 0, len(registration.elr), pending, *sorted(replicas))

    def _look_at_coordinators(self, kind: str) -> None:
        """The states of all groups and transactions, each with the event that came last: a broker
        that was replaced may still have some."""
        for process in self._dispatcher.processes.values():
            node = process.last_broker
            if node is None:
                continue
            for shard in node.coordinator.shards.values():
                for group in shard.groups.values():
                    self._add("group", kind, type(group).__name__, group.state_name)
            for transactional in node.transactions.shards.values():
                for transaction in transactional.transactions.values():
                    is_pending = transaction.transactional_id in transactional.pending
                    self._add("transaction", kind, transaction.state.name, is_pending)

    def _pending(self, partition: ObservedPartition, leader: int) -> int:
        """What a leader has proposed and the controller not decided: 1: a larger ISR, -1: a smaller
        one, 0: nothing."""
        process = self._dispatcher.processes.get(leader)
        node = None if process is None else process.last_broker
        replica = None if node is None else node.replicas.get(*partition.key)
        if replica is None or replica.proposal is None:
            return 0
        return 1 if len(replica.proposal.isr) > len(replica.isr) else -1

    def _state(self, broker: int) -> tuple[int, bool]:
        """The state of a broker's process, and whether the active controller fences it."""
        processes = self._dispatcher.processes
        process, controller = processes.get(broker), processes[CONTROLLER_ID].last_controller
        registration = None if controller is None else controller.image.brokers.get(broker)
        is_fenced = registration is None or registration.fenced
        return 0 if process is None else _STATES.get(process.state, 0), is_fenced

    def _add(self, *parts: object) -> None:
        if parts in self._known:
            return
        self._known.add(parts)
        signature = crc32(repr(parts).encode())
        self.signatures.setdefault(signature, max(0, self._now_ms - self._began_ms))


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
