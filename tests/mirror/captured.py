"""The metadata log of a run of Apache Kafka 4.4.0, as the controller sent it: no tests.

Three brokers; orders has 2 partitions of 2 replicas.  Broker 2 was killed and started, made the
leader of orders-0, shut down cleanly and started; topic more was created, got a partition and was
deleted; orders-1 moved from brokers 3, 1 to 3, 2; retention.ms of orders was set.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kcluster.controller.metadata_log import MetadataLog
from kcluster.controller.partitions.partition_index import PartitionIndex
from kcluster.metadata.image import MetadataImage
from kcluster.mirror.metadata_records import KafkaRecord, read_batch
from kcluster.mirror.metadata_state import MetadataState, ShownChange
from kcluster.protocol.records.batches import parse_batches

LOG = (Path(__file__).parent / "metadata.log").read_bytes()


def batches() -> Iterator[list[KafkaRecord]]:
    return (list(read_batch(batch)) for batch in parse_batches(LOG))


def new_state() -> MetadataState:
    return MetadataState(MetadataImage(), PartitionIndex(), MetadataLog())


def applied() -> tuple[MetadataState, list[ShownChange]]:
    """The state after the whole log, and all changes."""
    state = new_state()
    return state, [change for records in batches() for change in state.take(records).changes]
