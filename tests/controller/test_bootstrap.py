from __future__ import annotations

from kcluster.config.topology.specs import TopicSpec
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
