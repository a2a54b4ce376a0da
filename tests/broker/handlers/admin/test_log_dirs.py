"""DescribeLogDirs, AlterReplicaLogDirs: where a broker's logs are."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.partition.disk import CAPACITY_BYTES
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import TOPIC, OneBroker, broker_records, leader, topic_id, topic_records
from tests.rig.requests import batch

TWO_DIRS = "/a,/b"


def describe(one: OneBroker, topics: Any = None, version: int = 5) -> dict[str, Any]:
    """By directory, by topic: partition -> (size, lag)."""
    Topic = m.DescribeLogDirsRequest.DescribableLogDirTopic
    requested = None if topics is None else [Topic(name, list(at)) for name, at in topics.items()]
    body = m.DescribeLogDirsRequest(topics=requested)
    response = one.ask(ApiKey.DESCRIBE_LOG_DIRS, version, body)
    return {
        result.log_dir: {
            topic.name: {
                p.partition_index: (p.partition_size, p.offset_lag) for p in topic.partitions
            }
            for topic in result.topics
        }
        for result in response.results
    }


def move(one: OneBroker, *to: tuple[str, str, list[int]]) -> dict[tuple[str, int], str]:
    """Moves of (directory, topic, partitions); each partition's error."""
    Dir, Topic = (
        m.AlterReplicaLogDirsRequest.AlterReplicaLogDir,
        m.AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic,
    )
    dirs = [Dir(path, [Topic(name, partitions)]) for path, name, partitions in to]
    response = one.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, m.AlterReplicaLogDirsRequest(dirs))
    return {
        (topic.topic_name, partition.partition_index): ErrorCode(partition.error_code).name
        for topic in response.results
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_log_dirs__has_the_size_of_each_log(version: int) -> None:
    one = leader(2)
    one.produce(batch(b"v"))
    (log_dir,) = one.broker.disk.dirs
    size_bytes = len(batch(b"v"))
    assert describe(one, version=version) == {log_dir: {TOPIC: {0: (size_bytes, 0), 1: (0, 0)}}}


def test_log_dirs__null_is_everything_and_empty_is_nothing() -> None:
    one = leader()
    (log_dir,) = one.broker.disk.dirs
    assert log_dir == "/tmp/kafka-logs"
    assert describe(one) == {log_dir: {TOPIC: {0: (0, 0)}}}
    assert describe(one, {}) == {log_dir: {}}
    assert describe(one, {TOPIC: [], "none": [0]}) == {log_dir: {}}
    assert describe(one, {TOPIC: [0, 7, 0, -1]}) == {log_dir: {TOPIC: {0: (0, 0)}}}


def test_log_dirs__usable_bytes_shrink_as_logs_grow() -> None:
    one = leader()
    one.produce(batch(b"v"))
    response = one.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, m.DescribeLogDirsRequest(topics=[]))
    (result,) = response.results
    assert result.total_bytes == CAPACITY_BYTES
    assert result.usable_bytes == CAPACITY_BYTES - len(batch(b"v"))


def test_log_dirs__new_logs_go_to_the_directory_with_the_fewest() -> None:
    one = leader(3, log_dirs=TWO_DIRS)
    assert {path: list(topics[TOPIC]) for path, topics in describe(one).items()} == {
        "/a": [0, 2],
        "/b": [1],
    }


def test_alter_log_dirs__moves_a_log() -> None:
    one = leader(2, log_dirs=TWO_DIRS)
    assert move(one, ("/b", TOPIC, [0])) == {(TOPIC, 0): "NONE"}
    assert {path: list(topics.get(TOPIC, ())) for path, topics in describe(one).items()} == {
        "/a": [],
        "/b": [0, 1],
    }


def test_alter_log_dirs__each_partition_has_its_error() -> None:
    one = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1,), (2,)), log_dirs=TWO_DIRS)
    assert move(one, ("/b", TOPIC, [0, 1, 7]), ("/b/", "none", [0]), ("/a", "none", [1])) == {
        (TOPIC, 0): "NONE",
        (TOPIC, 1): "REPLICA_NOT_AVAILABLE",
        (TOPIC, 7): "UNKNOWN_TOPIC_OR_PARTITION",
        ("none", 0): "LOG_DIR_NOT_FOUND",
        ("none", 1): "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_alter_log_dirs__the_last_directory_of_a_partition_applies() -> None:
    one = leader(log_dirs=TWO_DIRS)
    assert move(one, ("/b", TOPIC, [0]), ("/none", TOPIC, [0])) == {(TOPIC, 0): "LOG_DIR_NOT_FOUND"}
    assert one.broker.disk.dir_of((topic_id(TOPIC), 0)) == "/a"


def test_alter_log_dirs__a_future_replica_is_created_in_the_chosen_directory() -> None:
    one = OneBroker(broker_records(1, 2), topic_records(TOPIC, (2,)), log_dirs=TWO_DIRS)
    assert move(one, ("/b", TOPIC, [0])) == {(TOPIC, 0): "REPLICA_NOT_AVAILABLE"}
    added = topic_records(TOPIC, (2, 1), isr=(2,))[1:]
    one.apply(added, one.now_ms)
    assert one.broker.disk.dir_of((topic_id(TOPIC), 0)) == "/b"
