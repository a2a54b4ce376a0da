"""New partitions, of a new topic or of one that grows: their replicas, their ISR, their records.

Owns: turning an assignment, by the controller or by the client, into partitions.  Never: chooses
brokers (placement.py), builds a PartitionRegistration (elections.py). Kafka: the common part of
ReplicationControlManager.{createTopic, createPartitions}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kcluster.contract import NoteId, Rng
from kcluster.controller.outcome import ApiError
from kcluster.controller.partitions.elections import new_partition
from kcluster.controller.partitions.placement import Replicas, UsableBroker, check_manual, place
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import MetadataRecord, PartitionRecord
from kcluster.protocol.errors import ErrorCode

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
"""Kafka: QuorumController.MAX_RECORDS_PER_USER_OP."""


class NewPartition(Struct, frozen=True, gc=False):
    """The brokers of a new partition: all its replicas, and the active ones among them."""

    replicas: Replicas
    isr: Replicas


def place_new(
    image: MetadataImage, rng: Rng, count: int, factor: int
) -> list[NewPartition] | ApiError:
    """Place `count` new partitions on the registered brokers."""
    brokers = [
        UsableBroker(broker.broker_id, broker.rack, broker.fenced)
        for _, broker in sorted(image.brokers.items())
        if not broker.in_controlled_shutdown
    ]
    placed = place(brokers, count, factor, rng)
    if isinstance(placed, ApiError):
        return placed
    active = {broker.broker_id for broker in brokers if not broker.fenced}
    return [
        NewPartition(replicas, tuple(broker for broker in replicas if broker in active))
        for replicas in placed
    ]


def place_by_hand(
    image: MetadataImage, partition: int, broker_ids: Sequence[int], factor: int | None
) -> NewPartition | ApiError:
    """Place a partition on the brokers that the client has chosen.  `factor`: the number of
    replicas of the earlier partitions; None for the first."""
    error = check_manual(broker_ids, image.brokers, factor)
    if error is not None:
        return error
    isr = tuple(broker for broker in broker_ids if image.is_active(broker))
    if not isr:
        return ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for partition "
            f"{partition} are fenced or in controlled shutdown.",
        )
    return NewPartition(tuple(broker_ids), isr)


def partition_records(
    topic_id: bytes, first: int, partitions: Sequence[NewPartition], cause: NoteId
) -> list[MetadataRecord]:
    """The records of new partitions, numbered from `first` on."""
    return [
        PartitionRecord(new_partition(topic_id, first + i, new.replicas, new.isr), cause)
        for i, new in enumerate(partitions)
    ]
