"""Whatever members of a consumer group do, of either protocol and in whatever order: what the
coordinator knows is what its log holds, and no partition has two owners."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.consumer.group import ConsumerGroup, ConsumerGroupState
from kcluster.broker.coordinator.group import Group
from kcluster.protocol import messages as m
from tests.broker.coordinator.consumer.consumer_members import ModernMember
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker, restarted
from tests.broker.coordinator.members import Consumer, subscription

TOPICS = (("orders",), ("orders", "bills"), ("bills",), ())
REGEXES = (None, "", "ord.*", ".*", "(a")
STEPS = 120


def check(broker: GroupBroker) -> None:
    """What always holds in a group."""
    group = broker.coordinator.group("g")
    if not isinstance(group, ConsumerGroup):
        return
    owners = Counter(
        (topic_id, partition)
        for member in group.members.values()
        for assigned in (member.assigned, member.revoking)
        for topic_id, partitions in assigned.items()
        for partition in partitions
    )
    assert set(owners.values()) <= {1}, "a partition of two members"
    assert set(owners) == set(group._owners)
    members = group.members.values()
    assert group.topic_counts == Counter(name for one in members for name in one.topics)
    assert group.regex_counts == Counter(one.regex for one in members if one.regex)
    named = {one.instance_id: one.member_id for one in members if one.instance_id}
    assert group.static_members == named
    assert group.target_epoch <= group.epoch
    for member in members:
        assert member.epoch <= group.epoch
        assert ("group", "g", "member", member.member_id) in broker.timers, member


def facts(group: Group | object) -> object:
    """What a group is, to compare it with what is loaded from its log."""
    if isinstance(group, ConsumerGroup):
        members = dict(sorted(group.members.items()))
        targets = dict(sorted(group.targets.items()))
        return (group.epoch, group.target_epoch, group.metadata_hash, members, targets,
                group.regexes)  # fmt: skip
    return type(group) if isinstance(group, ClassicGroup) else group


def one_step(
    rng: Random, broker: GroupBroker, modern: list[ModernMember], classic: list[Consumer]
) -> None:
    member = rng.choice(modern)
    match rng.randrange(12):
        case 0 | 1:
            more = {"subscribed_topic_regex": rng.choice(REGEXES)} if rng.random() < 0.3 else {}
            if rng.random() < 0.2:
                more["server_assignor"] = rng.choice(("range", "uniform"))
            member.post_join(subscribed_topic_names=list(rng.choice(TOPICS)), **more)
        case 2 | 3 | 4 | 5:
            if rng.random() < 0.15:
                member.epoch += rng.choice((-1, 1))
            if rng.random() < 0.15:
                member.owned = {"orders": sorted(rng.sample(range(6), 2))}
            changes = {}
            if rng.random() < 0.2:
                changes["subscribed_topic_names"] = list(rng.choice(TOPICS))
            member.post(**changes)
        case 6:
            epoch = -2 if member.more.get("instance_id") and rng.random() < 0.5 else -1
            member.epoch = epoch
            member.post()
        case 7:
            one = rng.choice(classic)
            one.join(9)
        case 8:
            one = rng.choice(classic)
            if one.joining is not None and one.joined is not None:
                one.sync({one.member_id: b""})
                one.post_heartbeat()
        case 9:
            broker.at(broker.now_ms + rng.choice((1, 500, 1_500, 7_000, 50_000)))
        case 10:
            broker.post(m.DeleteGroupsRequest(groups_names=["g"]))
        case _:
            if broker.follower_fetches:
                rng.choice((broker.pause_follower, broker.drop_follower))()
            else:
                broker.resume_follower()


@pytest.mark.parametrize("seed", range(12))
def test_any_order__the_coordinator_knows_what_its_log_holds(seed: int) -> None:
    rng = Random(seed)
    broker = fresh_broker()
    broker.create_topic("bills", 2)
    modern = [
        ModernMember(broker, "a"),
        ModernMember(broker, "b", rebalance_timeout_ms=5_000),
        ModernMember(broker, "c", instance_id="one"),
        ModernMember(broker, "d", instance_id="one"),
    ]
    classic = [
        Consumer(broker, protocols={"range": subscription("orders")}),
        Consumer(broker, protocols={"range": subscription("bills")}, instance_id="two"),
    ]
    for step in range(STEPS):
        one_step(rng, broker, modern, classic)
        check(broker)
        if step % 40 == 39:
            before = broker.coordinator.group("g")
            broker = restarted(broker, group_initial_rebalance_delay_ms=0)
            assert facts(broker.coordinator.group("g")) == facts(before)
            for member in modern:
                member.broker = broker
            for consumer in classic:
                consumer.broker = broker
                consumer.joining = consumer.syncing = None
            check(broker)
    settle_all(broker, modern[:3])


def settle_all(broker: GroupBroker, members: list[ModernMember]) -> None:
    """All else leaves; who joins again gets all partitions."""
    broker.resume_follower()
    broker.at(broker.now_ms + 100_000)
    for member in members:
        member.join(subscribed_topic_names=["orders"], subscribed_topic_regex="")
    for _ in range(8):
        broker.at(broker.now_ms + 2_000)
        for member in members:
            member.beat()
    group = broker.coordinator.group("g")
    assert isinstance(group, ConsumerGroup)
    assert group.state is ConsumerGroupState.STABLE
    assert sorted(one for member in members for one in member.owned["orders"]) == list(range(6))
