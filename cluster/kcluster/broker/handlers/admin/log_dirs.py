"""DescribeLogDirs (API 35, v1-5), AlterReplicaLogDirs (API 34, v1-2): the directories of logs.

Owns: both answers.  Never: moves a byte (partition/disk.py knows which directory has which log).
Kafka: ReplicaManager.describeLogDirs, alterReplicaLogDirs; KIP-113, KIP-827.

DIFFERS: a log that is moved is in its new directory at once.  Kafka copies it first, and meanwhile
lists the copy with is_future_key and its lag.  DIFFERS: entries are in the order of the request, or
by name; Kafka's are in the order of a hash map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcluster.broker.broker import Broker
from kcluster.broker.registry import handles
from kcluster.contract import Request
from kcluster.partition.disk import CAPACITY_BYTES
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    LogDirsTopic = m.DescribeLogDirsResponse.DescribeLogDirsTopic


@handles(ApiKey.DESCRIBE_LOG_DIRS, versions=(1, 5))
def describe_log_dirs(broker: Broker, request: Request, now_ms: int) -> m.DescribeLogDirsResponse:
    """Every log directory with the sizes of the logs in it.

    Behaviour:
    - null topics: all logs here; partitions that are not here are not listed;
    - the lag is the number of committed records that the log lacks.
    Versions:
    - v3: error code
    - v4: bytes of the volume (KIP-827)
    - v5: is_cordoned (KIP-1066)
    Not done: cordoned.log.dirs.
    """
    replicas = _asked_for(broker, request.body)
    disk = broker.disk
    return m.DescribeLogDirsResponse(
        results=[
            m.DescribeLogDirsResponse.DescribeLogDirsResult(
                log_dir=log_dir,
                topics=_topics([r for r in replicas if disk.dir_of(r.key) == log_dir]),
                total_bytes=CAPACITY_BYTES,
                usable_bytes=disk.usable_bytes,
            )
            for log_dir in disk.dirs
        ]
    )


def _asked_for(broker: Broker, body: m.DescribeLogDirsRequest) -> list[Replica]:
    if body.topics is None:
        return sorted(broker.replicas.all(), key=lambda replica: (replica.topic, replica.partition))
    names = dict.fromkeys(
        (topic.topic, partition) for topic in body.topics for partition in topic.partitions
    )
    replicas = [broker.replicas.find(*name) for name in names]
    return [replica for replica in replicas if isinstance(replica, Replica)]


def _topics(replicas: list[Replica]) -> list[LogDirsTopic]:
    topics: dict[str, LogDirsTopic] = {}
    for replica in replicas:
        if replica.topic not in topics:
            topics[replica.topic] = m.DescribeLogDirsResponse.DescribeLogDirsTopic(
                name=replica.topic
            )
        lag = replica.high_watermark - replica.log.log_end_offset
        topics[replica.topic].partitions.append(
            m.DescribeLogDirsResponse.DescribeLogDirsPartition(
                partition_index=replica.partition,
                partition_size=replica.log.size_bytes,
                offset_lag=max(lag, 0),
            )
        )
    return list(topics.values())


@handles(ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(1, 2))
def alter_replica_log_dirs(
    broker: Broker, request: Request, now_ms: int
) -> m.AlterReplicaLogDirsResponse:
    """Move replicas to other directories of this broker.

    Behaviour:
    - LOG_DIR_NOT_FOUND for a directory that is not in log.dirs (compared as text), for any
      partition;
    - REPLICA_NOT_AVAILABLE for a partition that is not here; if it is assigned later, it is created
    there;
    - of two directories for one partition the last one is used.
    """
    wanted = {
        (topic.name, partition): wanted_dir.path
        for wanted_dir in request.body.dirs
        for topic in wanted_dir.topics
        for partition in topic.partitions
    }
    results: dict[str, m.AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = {}
    for (topic_name, partition), path in wanted.items():
        if topic_name not in results:
            results[topic_name] = m.AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(
                topic_name=topic_name
            )
        results[topic_name].partitions.append(
            m.AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(
                partition_index=partition, error_code=_move(broker, topic_name, partition, path)
            )
        )
    return m.AlterReplicaLogDirsResponse(results=list(results.values()))


def _move(broker: Broker, topic: str, partition: int, path: str) -> ErrorCode:
    if path not in broker.disk.dirs:
        return ErrorCode.LOG_DIR_NOT_FOUND
    registration = broker.image.partition(topic, partition)
    if registration is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    replica = broker.replicas.find(topic, partition)
    if not isinstance(replica, Replica):
        broker.disk.prefer((registration.topic_id, partition), path)
        return ErrorCode.REPLICA_NOT_AVAILABLE
    broker.disk.move(replica.key, path)
    return ErrorCode.NONE
