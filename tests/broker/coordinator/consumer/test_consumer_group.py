"""Consumer groups (KIP-848): joining, reconciling, leaving, failing, in time to the millisecond."""

from __future__ import annotations

from kcluster.broker.coordinator.consumer.group import ConsumerGroup, ConsumerGroupState
from kcluster.events.words import text_of
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.consumer.consumer_members import ModernMember, owned_by, settle
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker, restarted

ALL = [0, 1, 2, 3, 4, 5]


def group_of(broker: GroupBroker) -> ConsumerGroup:
    group = broker.coordinator.group("g")
    assert isinstance(group, ConsumerGroup), group
    return group


def test_consumer_group__the_first_member_gets_everything_at_once() -> None:
    broker = fresh_broker()
    a = ModernMember(broker, "a")
    assert a.join() is ErrorCode.NONE
    assert (a.epoch, a.owned) == (2, {"orders": ALL})
    assert group_of(broker).state is ConsumerGroupState.STABLE


def test_consumer_group__a_partition_moves_only_after_it_is_revoked() -> None:
    broker = fresh_broker()
    a, b = ModernMember(broker, "a"), ModernMember(broker, "b")
    a.join()
    broker.at(1_000)
    b.join()
    assert (b.epoch, b.owned) == (3, {})
    assert group_of(broker).state is ConsumerGroupState.RECONCILING
    b.beat()
    assert b.owned == {}, "a has them still"
    a.beat()
    assert (a.epoch, a.owned) == (2, {"orders": [0, 1, 2]}), "asked to revoke, in its old epoch"
    b.beat()
    assert b.owned == {}, "a has not said that it has revoked them"
    a.beat()
    assert a.epoch == 3
    b.beat()
    assert b.owned == {"orders": [3, 4, 5]}
    assert group_of(broker).state is ConsumerGroupState.STABLE


def test_consumer_group__is_the_same_after_a_failover() -> None:
    first = fresh_broker()
    a, b = ModernMember(first, "a"), ModernMember(first, "b")
    a.join()
    b.join()
    settle(a, b)
    before = group_of(first)
    broker = a.broker = b.broker = restarted(first)
    after = group_of(broker)
    assert (after.members, after.targets) == (before.members, before.targets)
    assert (after.epoch, after.target_epoch) == (before.epoch, before.target_epoch)
    assert [a.beat(), b.beat()] == [ErrorCode.NONE] * 2
    assert owned_by(a, b) == [[0, 1, 2], [3, 4, 5]]


def test_consumer_group__a_refused_write_changes_nothing() -> None:
    broker = fresh_broker()
    a, b = ModernMember(broker, "a"), ModernMember(broker, "b")
    a.join()
    broker.drop_follower()
    assert b.join() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    group = group_of(broker)
    assert (list(group.members), group.epoch) == (["a"], 2)
    broker.resume_follower()
    assert b.join() is ErrorCode.NONE
    assert list(group.members) == ["a", "b"]


def test_consumer_group__a_heartbeat_is_answered_when_what_it_wrote_is_committed() -> None:
    broker = fresh_broker()
    a = ModernMember(broker, "a")
    broker.pause_follower()
    joining = broker.post(a.heartbeat(rebalance_timeout_ms=1, subscribed_topic_names=["orders"]), 1)
    again = broker.post(a.heartbeat(rebalance_timeout_ms=1, subscribed_topic_names=["orders"]), 1)
    assert (broker.answer(joining), broker.answer(again)) == (None, None)
    broker.resume_follower()
    assert broker.answer(joining).member_epoch == broker.answer(again).member_epoch == 2


def test_consumer_group__a_silent_member_is_fenced_when_its_session_is_over() -> None:
    broker = fresh_broker()
    a, b = ModernMember(broker, "a"), ModernMember(broker, "b")
    a.join()
    b.join()
    settle(a, b)
    broker.at(40_000)
    b.beat()
    broker.at(46_000)
    assert list(group_of(broker).members) == ["b"]
    assert a.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    settle(b)
    assert b.owned == {"orders": ALL}


def test_consumer_group__a_member_that_does_not_revoke_in_time_is_fenced() -> None:
    broker = fresh_broker()
    a, b = ModernMember(broker, "a", rebalance_timeout_ms=10_000), ModernMember(broker, "b")
    a.join()
    broker.at(1_000)
    b.join()
    a.beat()
    kept = {"orders": ALL}
    for _ in range(3):
        a.owned = kept
        assert a.beat() is ErrorCode.NONE
        broker.at(broker.now_ms + 3_000)
    broker.at(11_000)
    assert list(group_of(broker).members) == ["b"]


def test_consumer_group__what_happens_to_it_is_noted() -> None:
    broker = fresh_broker()
    a = ModernMember(broker, "a", instance_id="one", rebalance_timeout_ms=2_000)
    a.join()
    a.leave(-2)
    back = ModernMember(broker, "a2", instance_id="one", rebalance_timeout_ms=2_000)
    back.join()
    broker.at(1_000)
    b = ModernMember(broker, "b")
    b.join()
    back.beat()
    broker.at(3_000)
    b.leave()
    assert [text_of(one) for one in broker.events if one.kind.startswith("group_")] == [
        "member a of client c joined",
        "generation 2: orders-0,1,2,3,4,5 to a",
        "member a removed: the same static member joined under another id",
        "member a2 of client c joined",
        "member b of client c joined",
        "generation 3: orders-0,1,2 to a2; orders-3,4,5 to b",
        "member a2 removed: it did not revoke its partitions within the rebalance timeout",
        "member b left",
    ]


def test_consumer_group__one_that_leaves_hands_over_at_once() -> None:
    broker = fresh_broker()
    a, b = ModernMember(broker, "a"), ModernMember(broker, "b")
    a.join()
    b.join()
    settle(a, b)
    assert a.leave() is ErrorCode.NONE
    assert a.epoch == -1
    settle(b)
    assert b.owned == {"orders": ALL}
    b.leave()
    assert group_of(broker).state is ConsumerGroupState.EMPTY
