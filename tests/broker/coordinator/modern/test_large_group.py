"""Large groups: how soon a consumer group settles (KIP-848), what a classic group's joins cost."""

from __future__ import annotations

import pytest

from kcluster.broker.coordinator.consumer.group import ConsumerGroup, ConsumerGroupState
from kcluster.config.kafka.broker import BrokerConfig
from tests.broker.coordinator.consumer.consumer_members import ModernMember
from tests.broker.coordinator.group_broker import fresh_broker
from tests.broker.coordinator.members import Consumer, settle
from tests.rig.counting import calls_of

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


def calls_of_a_classic_group(size: int) -> tuple[int, int]:
    """(calls while all members join, calls while all join again)."""
    broker = fresh_broker()
    members = [
        Consumer(broker, name=f"m{number}", session_timeout_ms=60_000) for number in range(size)
    ]

    def join_all() -> None:
        for member in members:
            member.join()
        broker.at(broker.now_ms + 10_000)
        settle(*members)

    return calls_of(join_all), calls_of(join_all)


@pytest.mark.pure_python  # compiled functions are not counted
def test_large_classic_group__joins_and_rebalances_in_linear_time() -> None:
    small, large = calls_of_a_classic_group(40), calls_of_a_classic_group(160)
    assert large[0] <= 4 * small[0]
    assert large[1] <= 4 * small[1]
