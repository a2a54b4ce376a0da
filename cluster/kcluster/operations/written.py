"""Moments inside brokers: a leader has appended records, and has sent nothing yet.

Owns: the kinds of these moments, their recognition in logs.  Never: acts at a moment, reads a
record's value.  Kafka: no counterpart; between ReplicaManager.appendToLocalLog and the purgatory
that answers.

A watch looks at the logs of a node after each of its steps, and `Dispatcher.interject` acts before
anything of the step leaves the node: no other replica has the records, and no client was answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct as Layout
from struct import error as LayoutError
from typing import Final

from kcluster.partition.replica import Replica
from kcluster.protocol.names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kcluster.protocol.records.batches import Batch, InvalidRecords
from kcluster.protocol.records.records import read_records
from kcluster.runtime.dispatch import Dispatcher
from kcluster.runtime.process import Process
from kcluster.structs import Frozen

APPEND: Final = "append"
MARKER_WRITTEN: Final = "marker_written"
COMMIT_WRITTEN: Final = "commit_written"
GROUP_WRITTEN: Final = "group_written"
TRANSACTION_WRITTEN: Final = "transaction_written"
SHARE_WRITTEN: Final = "share_state_written"
BROKERS_MOMENTS: Final = {
    APPEND: "a leader has appended a producer's records",
    MARKER_WRITTEN: "a leader has appended the marker that ends a transaction",
    COMMIT_WRITTEN: "a coordinator has written a commit of a group",
    GROUP_WRITTEN: "a coordinator has written the members, the epoch or the assignment of a group",
    TRANSACTION_WRITTEN: "a coordinator has written the state of a transaction",
    SHARE_WRITTEN: "a coordinator has written the state of a share partition",
}
"""The kinds of moments inside brokers, with their meanings.  In all of them, no other replica has
what was written, and no client was answered."""

_KEY_HEAD: Final = Layout(">hh")
"""A coordinator's key: its version, and the length of its first field, the group or the
transactional id."""
_MAX_COMMIT_VERSION: Final = 1
"""The highest version of keys in __consumer_offsets that are commits: OffsetCommitKey."""
_MAX_BYTES: Final = 1 << 30


class Written(Frozen, frozen=True):
    """Something that was appended.  `names`: what it may be called by; the first is its subject."""

    kind: str
    names: tuple[str, ...]


class WrittenWatch:
    """Sees what leaders append from now on, until `end`.  `on_written`: called with each batch's
    meanings, after the step that appended it, as a step sink of the dispatcher."""

    def __init__(self, dispatcher: Dispatcher, on_written: Callable[[Written], None]) -> None:
        self._dispatcher = dispatcher
        self._on_written = on_written
        self._is_over = False
        self._ends: dict[tuple[int, bytes, int], int] = {}
        """The log ends after each broker's last step, by (broker, topic id, partition)."""
        for process in dispatcher.processes.values():
            for replica in _replicas(process):
                self._ends[_key(replica)] = replica.log.log_end_offset
        dispatcher.step_sinks = (*dispatcher.step_sinks, self._after_step)

    def end(self) -> None:
        """See no more."""
        self._is_over = True
        dispatcher = self._dispatcher
        dispatcher.step_sinks = tuple(x for x in dispatcher.step_sinks if x != self._after_step)

    def _after_step(self, process: Process) -> None:
        for replica in _replicas(process):
            key, end = _key(replica), replica.log.log_end_offset
            before = self._ends.get(key, end)
            self._ends[key] = end
            if replica.is_leader and before < end:
                self._report(replica, before)

    def _report(self, replica: Replica, offset: int) -> None:
        log = replica.log
        for batch in log.read(max(offset, log.log_start_offset), _MAX_BYTES, log.log_end_offset):
            for written in meanings(replica.topic, replica.partition, batch):
                if not self._is_over:
                    self._on_written(written)


def _replicas(process: Process) -> tuple[Replica, ...]:
    node = process.broker
    return () if node is None else tuple(node.replicas.all())


def _key(replica: Replica) -> tuple[int, bytes, int]:
    return replica.broker_id, replica.topic_id, replica.partition


def meanings(topic: str, partition: int, batch: Batch) -> Iterator[Written]:
    """What a batch of a partition means, each once."""
    names = (f"{topic}-{partition}", topic)
    if batch.is_control:
        yield Written(MARKER_WRITTEN, names)
    elif topic not in _KINDS:
        yield Written(APPEND, names)
    else:
        yield from dict.fromkeys(_of_coordinator(topic, batch))


def _of_coordinator(topic: str, batch: Batch) -> Iterator[Written]:
    try:
        records = read_records(batch)
    except InvalidRecords:
        return
    for record in records:
        if record.key is None or record.value is None:  # a tombstone
            continue
        try:
            version, length = _KEY_HEAD.unpack_from(record.key)
        except LayoutError:
            continue
        name = bytes(record.key[_KEY_HEAD.size : _KEY_HEAD.size + length]).decode(errors="replace")
        is_commit = topic == GROUP_METADATA_TOPIC and version <= _MAX_COMMIT_VERSION
        yield Written(COMMIT_WRITTEN if is_commit else _KINDS[topic], (name,))


_KINDS: Final = {
    GROUP_METADATA_TOPIC: GROUP_WRITTEN,
    TRANSACTION_STATE_TOPIC: TRANSACTION_WRITTEN,
    SHARE_GROUP_STATE_TOPIC: SHARE_WRITTEN,
}
