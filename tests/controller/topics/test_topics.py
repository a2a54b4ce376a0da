from __future__ import annotations

import time
from typing import Any

import pytest

from kcluster.events.topics import TopicCreated
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import Controller


def test_topics__create_places_and_leads() -> None:
    t = Controller()
    result = t.create("orders", partitions=6, factor=3, retention_ms="1000")
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert (result.num_partitions, result.replication_factor) == (6, 3)
    image = t.follow(2)
    assert image.topics["orders"].topic_id == result.topic_id
    for p in image.topics["orders"].partitions:
        assert p.leader == p.replicas[0]
        assert p.isr == p.replicas
    assert {p.leader for p in image.topics["orders"].partitions} == {1, 2, 3}
    configs = {config.name: (config.value, config.config_source) for config in result.configs}
    assert configs["retention.ms"] == ("1000", 1)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert image.topic_configs("orders") == {"retention.ms": "1000"}


def test_topics__validate_only_changes_nothing() -> None:
    t = Controller()
    end = t.node.end_offset
    assert t.create("orders", validate_only=True).error_code == ErrorCode.NONE
    assert t.node.end_offset == end
    assert t.texts(TopicCreated) == []


def test_topics__minus_one_means_the_brokers_defaults() -> None:
    t = Controller(num_partitions=5, default_replication_factor=2)
    result = t.create("orders", partitions=-1, factor=-1)
    assert (result.num_partitions, result.replication_factor) == (5, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"name": "old"}, ErrorCode.TOPIC_ALREADY_EXISTS, "'old' already exists"),
        ({"name": "a_b"}, ErrorCode.INVALID_TOPIC_EXCEPTION, "collides with existing topic: a.b"),
        ({"name": "a b"}, ErrorCode.INVALID_TOPIC_EXCEPTION, "other than ASCII alphanumerics"),
        ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION, "the empty string is not allowed"),
        ({"name": ".."}, ErrorCode.INVALID_TOPIC_EXCEPTION, "'..' is not allowed"),
        ({"name": "x" * 250}, ErrorCode.INVALID_TOPIC_EXCEPTION, "max allowed length 249"),
        ({"name": "__cluster_metadata"}, ErrorCode.INVALID_REQUEST, "prohibited"),
        ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS, "non-positive"),
        ({"factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0, or -1"),
        ({"factor": 4}, ErrorCode.INVALID_REPLICATION_FACTOR, "4 time(s)"),
        ({"partitions": 10_001}, ErrorCode.POLICY_VIOLATION, "Excessively large number"),
        ({"retention_ms": "x"}, ErrorCode.INVALID_CONFIG, "Not a number of type LONG"),
        ({"nope": "1"}, ErrorCode.INVALID_CONFIG, "nope"),
        ({"retention_ms": None}, ErrorCode.INVALID_CONFIG, "Null value not supported"),
        ({"assignment": [[1, 2], [1]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not consistent"),
        ({"assignment": [[9]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no such broker"),
    ],
)
def test_topics__refused(arguments: dict[str, Any], error: ErrorCode, text: str) -> None:
    t = Controller()
    t.create("old")
    t.create("a.b")
    result = t.create(**{"name": "orders", **arguments})
    assert ErrorCode(result.error_code) is error
    assert text in result.error_message
    assert result.configs == []
    assert list(t.node.image.topics) == ["old", "a.b"]


def test_topics__manual_assignment_to_fenced_brokers_only() -> None:
    t = Controller()
    t.die(3)
    assert t.create("orders", [[3]]).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    t.create("orders", [[3, 1]])
    p = t.partition("orders")
    assert (p.replicas, p.isr, p.leader) == ((3, 1), (1,), 1)


def test_topics__named_twice_in_one_request() -> None:
    t = Controller()
    topic = m.CreateTopicsRequest.CreatableTopic
    names = ("a", "twice", "twice")
    request = m.CreateTopicsRequest(
        topics=[topic(name=name, num_partitions=1, replication_factor=1) for name in names]
    )
    results = [(r.name, ErrorCode(r.error_code).name) for r in t.ask(1, request).topics]
    assert results == [("a", "NONE"), ("twice", "INVALID_REQUEST")]


def delete(t: Controller, *topics: tuple[str | None, bytes]) -> list[tuple[str | None, str]]:
    state = m.DeleteTopicsRequest.DeleteTopicState
    request = m.DeleteTopicsRequest(topics=[state(name=n, topic_id=i) for n, i in topics])
    return [(r.name, ErrorCode(r.error_code).name) for r in t.ask(1, request).responses]


def test_topics__delete_by_name_and_by_id() -> None:
    t = Controller()
    t.create("a", retention_ms="1")
    b = t.create("b").topic_id
    assert delete(t, ("a", bytes(16)), (None, b)) == [("a", "NONE"), ("b", "NONE")]
    image = t.follow(1)
    assert (image.topics, image.configs.get((2, "a"))) == ({}, None)
    assert not t.node.partitions.index.in_isr[1], "nothing left behind"
    t.create("a")
    assert t.partition("a").leader_epoch == 0


def test_topics__delete_refused() -> None:
    t = Controller()
    a = t.create("a").topic_id
    none = bytes(16)
    assert delete(t, ("zz", none), (None, b"x" * 16)) == [
        ("zz", "UNKNOWN_TOPIC_OR_PARTITION"),
        (None, "UNKNOWN_TOPIC_ID"),
    ]
    assert delete(t, (None, none), ("a", a)) == [
        (None, "INVALID_REQUEST"),
        ("a", "INVALID_REQUEST"),
    ]
    assert delete(t, ("a", none), ("a", none)) == [("a", "INVALID_REQUEST")]
    assert delete(t, ("a", none), (None, a)) == [("a", "INVALID_REQUEST")]
    assert "a" in t.node.image.topics


def test_topics__delete_by_name_in_old_versions() -> None:
    t = Controller()
    t.create("a")
    response = t.ask(1, m.DeleteTopicsRequest(topic_names=["a"]))
    assert [r.error_code for r in response.responses] == [ErrorCode.NONE]


def test_topics__deletion_can_be_disabled() -> None:
    t = Controller(delete_topic_enable=False)
    t.create("a")
    assert delete(t, ("a", bytes(16))) == [("a", "TOPIC_DELETION_DISABLED")]


def test_topics__ten_thousand_partitions_take_well_under_a_second() -> None:
    t = Controller()
    start = time.process_time()
    assert t.create("big", partitions=10_000).error_code == ErrorCode.NONE
    assert time.process_time() - start < 1
