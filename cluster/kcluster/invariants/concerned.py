"""Selects the replicas of a broker that a message may have changed, so that only they are checked.

Owns: the selection, by kind of message.  Never: reads a replica's state.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kcluster.broker.replication.replicas import Replicas
from kcluster.metadata.delta import MetadataFetchResponse
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m

_FetchRequest: Final = m.FetchRequest
_FetchResponse: Final = m.FetchResponse
_HeartbeatResponse: Final = m.BrokerHeartbeatResponse
_NONE: Final[tuple[Replica, ...]] = ()


def named_by_peer(replicas: Replicas, body: Any) -> Sequence[Replica]:
    """The replicas that a message from another node may have changed.  For a Fetch request or
    response: the replicas that it names; for a heartbeat response, or a metadata response without
    records: none; for any other message: all."""
    kind = type(body)
    if kind is _FetchRequest:
        places = [
            (topic.topic_id, one.partition) for topic in body.topics for one in topic.partitions
        ]
    elif kind is _FetchResponse:
        places = [
            (topic.topic_id, one.partition_index)
            for topic in body.responses
            for one in topic.partitions
        ]
    elif (kind is MetadataFetchResponse and not body.delta.records) or kind is _HeartbeatResponse:
        return _NONE
    else:
        return replicas.all()
    return [
        replica
        for topic_id, partition in places
        if (replica := replicas.get(topic_id, partition)) is not None
    ]


def written_by(
    replicas: Replicas, topics: Sequence[m.ProduceRequest.TopicProduceData]
) -> list[Replica]:
    """The replicas that a Produce request names, by topic id or by topic name."""
    return [
        replica
        for topic in topics
        for data in topic.partition_data
        if (replica := named_replica(replicas, topic.topic_id, topic.name, data.index)) is not None
    ]


def named_replica(
    replicas: Replicas, topic_id: bytes, topic: str, partition: int
) -> Replica | None:
    """A broker's replica of a partition, found by topic id, or else by topic name; None if the
    broker has none."""
    replica = replicas.get(topic_id, partition)
    return replica_of(replicas, topic, partition) if replica is None else replica


def replica_of(replicas: Replicas, topic: str, partition: int) -> Replica | None:
    """A broker's replica of a partition, found by topic name; None if the broker has none."""
    replica = replicas.find(topic, partition)
    return replica if isinstance(replica, Replica) else None
