"""The replicas of a broker that a message may have moved.

Owns: the choice, for each kind of message.  Never: looks at a replica.  Kafka: no counterpart.
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
    """The replicas that another node's message may have moved: for a fetch, the replicas that it
    names; none for a message without news; all for any other message."""
    kind = type(body)
    if kind is _FetchRequest:
        topics = body.topics
        if len(topics) == 1 and len(topics[0].partitions) == 1:
            replica = replicas.get(topics[0].topic_id, topics[0].partitions[0].partition)
            return _NONE if replica is None else (replica,)
        return [
            replica
            for topic in topics
            for partition in topic.partitions
            if (replica := replicas.get(topic.topic_id, partition.partition)) is not None
        ]
    if kind is _FetchResponse:
        topics = body.responses
        if len(topics) == 1 and len(topics[0].partitions) == 1:
            replica = replicas.get(topics[0].topic_id, topics[0].partitions[0].partition_index)
            return _NONE if replica is None else (replica,)
        return [
            replica
            for topic in topics
            for partition in topic.partitions
            if (replica := replicas.get(topic.topic_id, partition.partition_index)) is not None
        ]
    if (kind is MetadataFetchResponse and not body.delta.records) or kind is _HeartbeatResponse:
        return _NONE
    return replicas.all()


def written_by(
    replicas: Replicas, topics: Sequence[m.ProduceRequest.TopicProduceData]
) -> list[Replica]:
    """The replicas that a Produce names, by topic id or name."""
    written = []
    for topic in topics:
        for data in topic.partition_data:
            replica = replicas.get(topic.topic_id, data.index)
            if replica is None:
                replica = replica_of(replicas, topic.name, data.index)
            if replica is not None:
                written.append(replica)
    return written


def replica_of(replicas: Replicas, topic: str, partition: int) -> Replica | None:
    """A broker's replica of a partition, by the topic's name; None if it has none."""
    replica = replicas.find(topic, partition)
    return replica if isinstance(replica, Replica) else None
