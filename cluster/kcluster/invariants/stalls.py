"""High watermarks that stand still, although all replicas that may hold them back have more
records.

Owns: the definition of a stall, and the longest stall of each partition.  Never: sets the limit
(checks/ does), changes anything.  Kafka: Partition.maybeIncrementLeaderHW; KAFKA-15021 reports such
a stall.

The high watermark may wait for the members of the ISR, for replicas that the leader has proposed,
and for any active replica that is about to join.  If each of them has more records than the high
watermark, its process runs, and nothing impairs its links with the leader, then its next fetch
moves the high watermark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kcluster.deaths import ProcessState
from kcluster.invariants.facts import Stall
from kcluster.invariants.observed import PartitionKey, effective_min_isr
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.partition.replica import Replica
from kcluster.runtime.dispatch import Dispatcher

LOOK_EVERY_MS: Final = 2_000
SLOW_US: Final = 1_000_000
"""The latency above which a link counts as impaired."""


class Stalls:
    """The stalls of one run.  `look` is called about every LOOK_EVERY_MS."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._fabric = dispatcher.fabric
        self._present: dict[PartitionKey, Stall] = {}
        self._longest: dict[PartitionKey, Stall] = {}

    def look(self, now_ms: int, image: MetadataImage) -> None:
        """Compare each leader's high watermark with its value at the last look."""
        for topic in image.topics.values():
            for registration in topic.partitions:
                key = (registration.topic_id, registration.partition)
                leader = self._held_back(registration, image)
                if leader is None:
                    self._present.pop(key, None)
                else:
                    self._note(key, leader, now_ms)

    def longer_than(self, limit_ms: int) -> Iterator[tuple[PartitionKey, Stall]]:
        """The longest stall of each partition, if it is longer; each is returned once."""
        for key, stall in tuple(self._longest.items()):
            if stall.duration_ms > limit_ms:
                del self._longest[key]
                yield key, stall

    def _note(self, key: PartitionKey, leader: Replica, now_ms: int) -> None:
        stall = self._present.get(key)
        if (
            stall is None
            or stall.high_watermark != leader.high_watermark
            or stall.leader_epoch != leader.leader_epoch
        ):
            self._present[key] = Stall(
                topic=leader.topic,
                leader=leader.broker_id,
                leader_epoch=leader.leader_epoch,
                high_watermark=leader.high_watermark,
                log_end_offset=leader.log.log_end_offset,
                since_ms=now_ms,
                until_ms=now_ms,
            )
            return
        self._present[key] = stall = replace(stall, until_ms=now_ms)
        longest = self._longest.get(key)
        if longest is None or longest.duration_ms < stall.duration_ms:
            self._longest[key] = stall

    def _held_back(
        self, registration: PartitionRegistration, image: MetadataImage
    ) -> Replica | None:
        """The leader, if its high watermark should move at the next fetches."""
        leader = self._replica(registration.leader, registration)
        if (
            leader is None
            or leader.high_watermark >= leader.log.log_end_offset
            or not leader.is_leader
            or leader.leader_epoch != registration.leader_epoch
            or len(leader.isr) < effective_min_isr(leader)
        ):
            return None
        node = self._dispatcher.broker(registration.leader)
        if node is None or node.image.offset != image.offset:
            return None
        waited_for = {**dict.fromkeys(leader.maximal_isr), **dict.fromkeys(registration.isr)}
        for broker in registration.replicas:
            if broker == leader.broker_id:
                continue
            if (broker in waited_for or image.is_active(broker)) and not self._can_advance(
                leader, broker, registration
            ):
                return None
        return leader

    def _can_advance(
        self, leader: Replica, broker: int, registration: PartitionRegistration
    ) -> bool:
        """Whether this follower has more than the committed records, and can fetch from the
        leader."""
        follower = self._replica(broker, registration)
        if follower is None or follower.log.log_end_offset <= leader.high_watermark:
            return False
        fabric, gate = self._fabric, self._dispatcher.node_gate
        if gate is not None and gate.impairs(broker, leader.broker_id):
            return False
        if fabric.is_unimpaired:
            return True
        for source, destination in ((broker, leader.broker_id), (leader.broker_id, broker)):
            if (
                fabric.is_cut(source, destination)
                or fabric.shapes_of(source, destination)
                or fabric.latency_us(source, destination) > SLOW_US
            ):
                return False
        return True

    def _replica(self, broker: int, registration: PartitionRegistration) -> Replica | None:
        """A replica on a broker whose process runs."""
        process = self._dispatcher.processes.get(broker)
        if process is None or process.state is not ProcessState.UP:
            return None
        return self._dispatcher.replica(broker, registration.topic_id, registration.partition)
