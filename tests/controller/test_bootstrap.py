from __future__ import annotations

from kcluster.config.topology.specs import TopicSpec
from kcluster.controller.topics.new_partitions import MAX_PARTITIONS_PER_REQUEST
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import Controller

ORDERS = TopicSpec("orders", partitions=3, replication_factor=3, config={"retention.ms": "5"})
BY_HAND = TopicSpec("by-hand", assignment=((3, 1), (1, 2)))


def test_bootstrap__topics_come_with_the_last_expected_broker() -> None:
    t = Controller(brokers=2, topics=[TopicSpec("orders", replication_factor=2), BY_HAND])
    assert list(t.node.image.topics) == ["orders"], "the other topic needs an unexpected broker"
    t.start(3)
    assert t.partition("by-hand", 0).replicas == (3, 1)


def test_bootstrap__configs_and_assignments() -> None:
    t = Controller(topics=[ORDERS, BY_HAND])
    image = t.follow(1)
    assert [len(topic.partitions) for topic in image.topics.values()] == [3, 2]
    assert image.topic_configs("orders") == {"retention.ms": "5"}


def test_bootstrap__without_all_brokers_after_a_session_timeout() -> None:
    t = Controller(brokers=2, topics=[TopicSpec("two", replication_factor=2), ORDERS])
    assert t.node.log.pending_topics is not None
    t.node.log.pending_topics.expected_brokers = (1, 2, 3)
    t.run(9_000)
    assert list(t.node.image.topics) == ["two"]
    t.start(3)
    assert list(t.node.image.topics) == ["two", "orders"], "as soon as it can be placed"


def test_bootstrap__more_partitions_than_a_request_may_create() -> None:
    big = MAX_PARTITIONS_PER_REQUEST // 2 + 1
    t = Controller(
        brokers=1,
        topics=[
            TopicSpec("a", partitions=big, replication_factor=1),
            TopicSpec("b", partitions=big, replication_factor=1),
            TopicSpec("orders", replication_factor=1),
        ],
    )
    topics = t.node.image.topics
    assert {name: len(topic.partitions) for name, topic in topics.items()} == {
        "a": big,
        "b": big,
        "orders": 1,
    }


def test_bootstrap__a_topic_that_needs_several_requests() -> None:
    count = 2 * MAX_PARTITIONS_PER_REQUEST + 1
    placed = TopicSpec("placed", partitions=count, replication_factor=1)
    by_hand = TopicSpec("by-hand", assignment=((1,),) * count)
    t = Controller(brokers=1, topics=[placed, by_hand])
    for topic in t.node.image.topics.values():
        assert [one.partition for one in topic.partitions] == list(range(count))


def test_bootstrap__a_refused_topic_stays_pending_with_the_reason() -> None:
    t = Controller(topics=[TopicSpec("elsewhere", assignment=((9,),)), BY_HAND])
    pending = t.node.log.pending_topics
    assert pending is not None
    assert list(t.node.image.topics) == ["by-hand"]
    assert [spec.name for spec in pending.topics] == ["elsewhere"]
    assert pending.refused["elsewhere"].code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
