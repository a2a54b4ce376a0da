"""Whatever clients do, in whatever order: every request gets one answer, groups stay sound."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from kcluster.broker.coordinator.classic_group import TRANSITIONS, ClassicGroup, ClassicGroupState
from kcluster.broker.coordinator.group import Group
from kcluster.protocol import messages as m
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker, restarted
from tests.broker.coordinator.members import Consumer, subscription

PROTOCOLS = (
    {"range": subscription("orders")},
    {"sticky": b"", "range": subscription("orders", "audit")},
    {"sticky": b""},
)


def check_group(broker: GroupBroker, group: Group) -> None:
    assert isinstance(group, ClassicGroup)
    timers, key = broker.timers, ("group", group.group_id)
    roster = group.roster
    members = roster.members
    assert (roster.leader in members) == bool(members)
    named = {x.instance_id: x.member_id for x in members.values() if x.is_static}
    assert named == roster.static_members
    assert not set(roster.pending) & set(members)
    assert roster.joined_count == sum(one.join is not None for one in members.values())
    assert roster.supporters == Counter(name for one in members.values() for name in one.protocols)
    for member_id in roster.pending:
        assert (*key, "member", member_id) in timers
    for member in members.values():
        waits = member.join is not None or member.sync is not None
        assert waits or (*key, "member", member.member_id) in timers, member
        assert member.join is None or group.state is ClassicGroupState.PREPARING_REBALANCE or waits
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        assert (*key, "join") in timers
    if group.state is ClassicGroupState.EMPTY:
        assert not members
    if group.state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
        assert members
        assert roster.protocol_name in roster.common_protocols()


def one_step(rng: Random, broker: GroupBroker, consumers: list[Consumer], sent: list[Any]) -> None:
    """One client does one thing, or time passes, or the follower stops or comes back."""
    consumer = rng.choice(consumers)
    match rng.randrange(12):
        case 0 | 1 | 2:
            consumer.protocols = rng.choice(PROTOCOLS[:2]) if rng.random() < 0.9 else PROTOCOLS[2]
            consumer.join(rng.choice((0, 3, 4, 5, 8, 9)) if consumer.instance_id is None else 9)
            sent.append(consumer.joining)
        case 3 | 4 | 5:
            if consumer.joining is not None and consumer.joined is not None:
                given = {member.member_id: b"x" for member in consumer.joined.members}
                consumer.sync(given, version=rng.choice((0, 4)))
                sent.append(consumer.syncing)
        case 6:
            sent.append(consumer.post_heartbeat())
        case 7:
            sent.append(broker.post(consumer.commit_request(rng.randrange(100)), 9))
        case 8:
            identity = m.LeaveGroupRequest.MemberIdentity(
                member_id=consumer.member_id if rng.random() < 0.8 else "",
                group_instance_id=consumer.instance_id,
            )
            sent.append(
                broker.post(m.LeaveGroupRequest(group_id=consumer.group, members=[identity]))
            )
        case 9:
            sent.append(broker.post(m.DeleteGroupsRequest(groups_names=["g"])))
            consumer.member_id = ""
        case 10:
            broker.at(broker.now_ms + rng.choice((1, 500, 3000, 7000, 30_000)))
        case _:
            if broker.follower_fetches:
                rng.choice((broker.pause_follower, broker.drop_follower))()
            else:
                if rng.random() < 0.25:
                    broker.at(broker.now_ms + broker.config.offsets_commit_timeout_ms)
                broker.resume_follower()


@pytest.mark.parametrize("seed", range(20))
def test_groups__keep_their_invariants_and_answer_every_request(seed: int) -> None:
    rng = Random(seed)
    broker = fresh_broker(group_max_size=4, group_initial_rebalance_delay_ms=1000)
    consumers = [
        Consumer(
            broker,
            instance_id=rng.choice((None, None, "i", "j")),
            name=f"c{number}",
            session_timeout_ms=rng.choice((6000, 20_000)),
        )
        for number in range(6)
    ]
    sent: list[Any] = []
    for _ in range(250):
        one_step(rng, broker, consumers, sent)
        for shard in broker.coordinator.shards.values():
            for group in shard.groups.values():
                check_group(broker, group)
    if rng.random() < 0.5:
        broker.resign()
        assert not len(broker.timers), "what it knew is forgotten"
    broker.resume_follower()
    broker.at(broker.now_ms + 600_000)
    unanswered = [request for request in sent if broker.answer(request) is None]
    assert not unanswered
    successor = restarted(broker)
    for shard in successor.coordinator.shards.values():
        for group in shard.groups.values():
            check_group(successor, group)
            assert group.state_name in (ClassicGroupState.EMPTY, ClassicGroupState.STABLE)


def test_transitions__every_state_can_become_dead_and_dead_is_final() -> None:
    assert set(TRANSITIONS) == set(ClassicGroupState)
    assert all(ClassicGroupState.DEAD in targets for targets in TRANSITIONS.values())
    assert TRANSITIONS[ClassicGroupState.DEAD] == (ClassicGroupState.DEAD,)
