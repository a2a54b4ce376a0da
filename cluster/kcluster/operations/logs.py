"""The logs of partitions' replicas at this moment, as values; how many disks have what is
committed.

Owns: ReplicaLog, PartitionLogs, and filling them.  Never: reads a record, changes anything.
Kafka: kafka-dump-log on each broker, with kafka-topics --describe beside it.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.events.standing import label_of, standing_of
from kcluster.metadata.records import PartitionRegistration
from kcluster.operations.controller import controller_image
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher


class ReplicaLog(Struct, frozen=True):
    """One replica's log.  `standing`: its state in words: `leader`, `in sync`, `down, 50 ahead`.
    `high_watermark`: None while the process is down.  `epochs`: (leader epoch, first offset),
    oldest first."""

    broker: int
    standing: str
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    epochs: tuple[tuple[int, int], ...]


class PartitionLogs(Struct, frozen=True):
    """The logs of a partition's replicas.  `leader`: None for an offline partition."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: list[ReplicaLog]


def partition_logs(plan: Plan, dispatcher: Dispatcher, topic: str, partition: int) -> PartitionLogs:
    """The logs of a partition that exists, between two dispatches; brokers without a log of it are
    left out."""
    found = controller_image(dispatcher).topics[topic].partitions[partition]
    key = (found.topic_id, found.partition)
    logs = {
        broker: log
        for broker in sorted(found.replicas)
        if (log := plan.disks[broker].logs.get(key)) is not None
    }
    leader_log = logs.get(found.leader)
    replicas = []
    for broker, log in logs.items():
        process = dispatcher.processes[broker]
        replica = dispatcher.replica(broker, *key)
        standing = standing_of(
            broker,
            leader=found.leader,
            isr=found.isr,
            elr=found.elr,
            process=process.state,
            log_end_offset=log.log_end_offset,
            leader_end_offset=None if leader_log is None else leader_log.log_end_offset,
        )
        replicas.append(
            ReplicaLog(
                broker=broker,
                standing=label_of(standing),
                log_start_offset=log.log_start_offset,
                log_end_offset=log.log_end_offset,
                high_watermark=None if replica is None else replica.high_watermark,
                epochs=tuple(log.epochs.entries),
            )
        )
    return PartitionLogs(
        topic=topic,
        partition=partition,
        leader=found.leader if found.leader >= 0 else None,
        leader_epoch=found.leader_epoch,
        isr=tuple(found.isr),
        replicas=replicas,
    )


def fewest_copies(plan: Plan, dispatcher: Dispatcher) -> int:
    """The number of disks whose log reaches what is committed, of the partition that has fewest; 0
    without a partition."""
    topics = controller_image(dispatcher).topics.values()
    found = [partition for topic in topics for partition in topic.partitions]
    return min((_copies(plan, dispatcher, each) for each in found), default=0)


def _copies(plan: Plan, dispatcher: Dispatcher, partition: PartitionRegistration) -> int:
    key = partition.topic_id, partition.partition
    nodes = [dispatcher.processes[broker].last_broker for broker in partition.replicas]
    replicas = [node.replicas.get(*key) for node in nodes if node is not None]
    committed = max((each.high_watermark for each in replicas if each is not None), default=0)
    logs = [plan.disks[broker].logs.get(key) for broker in partition.replicas]
    return sum(log is not None and log.log_end_offset >= committed for log in logs)
