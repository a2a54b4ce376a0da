"""A consumer group of a thousand members settles within three heartbeat intervals (KIP-848)."""

from __future__ import annotations

from kcluster.broker.coordinator.consumer.group import ConsumerGroup, ConsumerGroupState
from kcluster.config.kafka.broker import BrokerConfig
from tests.broker.coordinator.group_broker import fresh_broker
from tests.broker.coordinator.modern_members import ModernMember

MEMBERS = 1_000
FAST = BrokerConfig.resolve("fast")
INTERVAL_MS = FAST.group_consumer_heartbeat_interval_ms
SLICES = 10
"""The members' heartbeats are spread evenly over the interval, in this many slices."""


def beat_all(members: list[ModernMember], first_ms: int) -> None:
    """One heartbeat of each member, spread over one interval."""
    broker = members[0].broker
    size = len(members) // SLICES
    for index in range(SLICES):
        broker.at(first_ms + index * INTERVAL_MS // SLICES)
        for member in members[index * size : (index + 1) * size]:
            member.beat() if member.epoch else member.join()
    broker.at(first_ms + INTERVAL_MS)


def test_large_group__settles_within_three_heartbeat_intervals() -> None:
    broker = fresh_broker(
        group_consumer_assignment_interval_ms=FAST.group_consumer_assignment_interval_ms,
        group_consumer_heartbeat_interval_ms=INTERVAL_MS,
        group_consumer_session_timeout_ms=FAST.group_consumer_session_timeout_ms,
    )
    broker.create_topic("large", MEMBERS)
    members = [ModernMember(broker, f"m{index:04}", topics=("large",)) for index in range(MEMBERS)]
    broker.at(1_000)
    group: ConsumerGroup | None = None
    intervals = 0
    while group is None or group.state is not ConsumerGroupState.STABLE:
        beat_all(members, broker.now_ms)
        intervals += 1
        assert intervals <= 1 + 3, "one interval in which they join, three in which they settle"
        found = broker.coordinator.group("g")
        assert isinstance(found, ConsumerGroup)
        group = found
    owned = sorted(one for member in members for one in member.owned["large"])
    assert owned == list(range(MEMBERS))
    assert {len(member.owned["large"]) for member in members} == {1}
