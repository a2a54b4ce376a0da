"""The state that a real metadata log gives."""

from __future__ import annotations

from kcluster.metadata.records import TOPIC_RESOURCE
from tests.mirror.captured import LOG, applied, batches, new_state


def test_state__is_the_cluster_at_the_end_of_the_log() -> None:
    state, _ = applied()
    image = state.image
    assert list(image.topics) == ["orders"]
    assert sorted(image.brokers) == [1, 2, 3]
    assert all(not broker.fenced for broker in image.brokers.values())
    first, second = image.topics["orders"].partitions
    assert sorted(first.isr) == [2, 3]
    assert sorted(second.replicas) == [2, 3], "orders-1 has moved"
    assert image.configs[TOPIC_RESOURCE, "orders"] == {"retention.ms": "60000"}
    assert image.features["metadata.version"] > 0


def test_state__the_index_has_what_the_image_has() -> None:
    state, _ = applied()
    led = sum(map(len, state.index.led_by.values()))
    assert led == 2
    assert not state.index.leaderless
    assert not any(state.index.out_of_sync.values())


def test_state__names_the_active_controller_and_the_next_offset() -> None:
    state, _ = applied()
    assert (state.leader, state.log.epoch) == (3000, 1)
    assert (
        state.next_offset
        == state.image.offset + 1
        == 1 + max(record.offset for records in batches() for record in records)
    )


def test_state__the_first_records_of_a_new_cluster_are_no_events() -> None:
    _, changes = applied()
    kinds = [change.event.kind for change in changes]
    assert "feature_changed" not in kinds
    assert kinds.count("config_changed") == 1


def test_state__times_are_those_of_the_controller() -> None:
    _, changes = applied()
    times = [change.at_ms for change in changes]
    assert times == sorted(times)
    assert times[0] > 1_700_000_000_000, "ms since 1970"


def test_state__a_topic_that_is_gone_is_named_by_its_id() -> None:
    state = new_state()
    taken = [state.take(records) for records in batches()]
    removed = [topic_id for each in taken for topic_id in each.removed]
    created = {topic for each in taken for topic, _ in each.partitions}
    assert len(removed) == 1
    assert created == {"orders", "more"}
    assert len(LOG) < 10_000
