"""FindCoordinator: the broker it names, and the creation of __consumer_offsets."""

from __future__ import annotations

from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker


def test_find_coordinator__creates_the_topic_on_first_use() -> None:
    broker = GroupBroker(offsets_topic_num_partitions=4)
    request = m.FindCoordinatorRequest(key="g")
    for _ in range(2):
        assert broker.call(request, 0).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (question,) = broker.asked
    (topic,) = question.message.body.topics
    assert (topic.name, topic.num_partitions) == ("__consumer_offsets", 4)
    assert ("cleanup.policy", "compact") in [(c.name, c.value) for c in topic.configs]
    broker.at(broker.config.request_timeout_ms)
    assert broker.call(request, 0).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(broker.asked) == 2, "the first was lost"
    broker.create_offsets_topic()
    answer = broker.call(request, 3)
    assert (answer.error_code, answer.node_id) == (0, 1)
    assert (answer.host, answer.port) == ("127.0.0.1", 9091)


def test_find_coordinator__many_keys_and_other_types() -> None:
    broker = fresh_broker()
    answer = broker.call(m.FindCoordinatorRequest(coordinator_keys=["a", "b"]), 4)
    assert [(c.key, c.node_id, c.error_code) for c in answer.coordinators] == [
        ("a", 1, 0),
        ("b", 1, 0),
    ]

    def error(key_type: int, version: int) -> int:
        request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=["t"])
        return int(broker.call(request, version).coordinators[0].error_code)

    assert error(1, 4) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error(2, 5) == error(2, 6) == error(3, 6) == ErrorCode.INVALID_REQUEST
