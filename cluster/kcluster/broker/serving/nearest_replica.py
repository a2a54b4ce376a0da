"""The replica that a consumer should read from: the one in its rack (KIP-392).

Owns: the leader's choice, and the answer that sends a consumer to a follower.  Never: reads a log
(reading.py), or decides what a follower serves (the same rules as for a leader).
Kafka: ReplicaManager.findPreferredReadReplica, RackAwareReplicaSelector, ReplicaView.comparator.

Kafka loads any class that replica.selector.class names; here only its own one exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kcluster.broker.serving.reading import NO_EPOCH, NO_ERROR, Bounds, PartitionRead
from kcluster.broker.serving.sessions import SessionPartition
from kcluster.metadata.image import MetadataImage
from kcluster.partition.replica import Replica

LEADER: Final = -1
"""The choice of a consumer that goes on to read from the leader."""


class ReadableReplica(NamedTuple):
    """A follower that has the records from the requested offset on.  The greater, the better."""

    log_end_offset: int
    caught_up_ms: int
    """The last time at which it had all of the leader's records."""
    broker_id: int


def most_caught_up(followers: Iterable[ReadableReplica]) -> int:
    """The follower with the most records; of equals, the one that was caught up last; LEADER if
    there is none."""
    best = max(followers, default=None)
    return LEADER if best is None else best.broker_id


def redirection(
    image: MetadataImage, replica: Replica, wanted: SessionPartition, rack: str, listener: str
) -> PartitionRead | None:
    """The answer that sends a consumer in `rack` to a follower there, without records; None if it
    reads from this replica, or may not read at all."""
    asked_epoch = max(NO_EPOCH, wanted.current_leader_epoch)
    if not replica.is_leader or replica.check_epoch(asked_epoch):
        return None
    if _is_in_rack(image, replica.broker_id, rack, listener):
        return None
    chosen = most_caught_up(
        ReadableReplica(follower.log_end_offset, replica.caught_up_ms(follower), follower.broker_id)
        for follower in replica.followers.values()
        if follower.broker_id in replica.isr
        and follower.log_start_offset <= wanted.fetch_offset <= follower.log_end_offset
        and _is_in_rack(image, follower.broker_id, rack, listener)
    )
    if chosen == LEADER:
        return None
    log = replica.log
    read = PartitionRead(
        wanted, NO_ERROR, replica.high_watermark, log.log_start_offset, is_urgent=True
    )
    read.preferred_read_replica = chosen
    if replica.last_stable_offset != replica.high_watermark:
        read.bounds = Bounds(replica.last_stable_offset, [], is_cut=False)
    return read


def _is_in_rack(image: MetadataImage, broker_id: int, rack: str, listener: str) -> bool:
    """Whether a broker is up, in `rack`, and reachable by this listener's clients."""
    broker = image.brokers.get(broker_id)
    return (
        broker is not None
        and not broker.fenced
        and broker.rack == rack
        and broker.endpoint(listener) is not None
    )
