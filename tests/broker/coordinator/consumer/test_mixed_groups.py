"""Classic and consumer members in one group: upgrade, life together, downgrade."""

from __future__ import annotations

from typing import Any

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec
from kcluster.protocol.consumer_protocol import ASSIGNMENT, decode_consumer_message
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.consumer.consumer_members import ModernMember
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker, restarted
from tests.broker.coordinator.members import Consumer, committed
from tests.broker.coordinator.members import settle as settle_classic

ALL = [0, 1, 2, 3, 4, 5]


def subscription(**owned: list[int]) -> bytes:
    """A subscription to `orders`, version 1, with owned partitions."""
    entry = m.ConsumerProtocolSubscription.TopicPartition
    body = m.ConsumerProtocolSubscription(
        topics=["orders"],
        owned_partitions=[entry(topic=name, partitions=some) for name, some in owned.items()],
    )
    return b"\0\1" + record_codec("ConsumerProtocolSubscription", 1).encode(body)


def assignment(*partitions: int) -> bytes:
    entry = m.ConsumerProtocolAssignment.TopicPartition
    body = m.ConsumerProtocolAssignment([entry(topic="orders", partitions=list(partitions))])
    return b"\0\1" + record_codec(ASSIGNMENT, 1).encode(body)


class ClassicMember(Consumer):
    """A member that revokes what it must and joins again, as a cooperative client does."""

    owned: list[int]

    def rejoin(self) -> ErrorCode:
        """Join with what it owns; then sync."""
        self.protocols = {"range": subscription(orders=self.owned)}
        joined = self.join().joined
        if joined.error_code != ErrorCode.NONE:
            return ErrorCode(joined.error_code)
        return self.take()

    def take(self, **sent: Any) -> ErrorCode:
        """Sync and keep what comes."""
        synced = self.sync(**sent).synced
        if synced.error_code == ErrorCode.NONE:
            body = decode_consumer_message(ASSIGNMENT, synced.assignment)
            self.owned = sorted(one for part in body.assigned_partitions for one in part.partitions)
        return ErrorCode(synced.error_code)


def classic_group(broker: GroupBroker, **more: Any) -> ClassicMember:
    """A stable classic group of one member that has everything."""
    member = ClassicMember(broker, protocols={"range": subscription()}, name="old", **more)
    member.owned = []
    member.join()
    broker.at(broker.now_ms + 3_000)
    assert member.joined.error_code == ErrorCode.NONE
    assert member.take(assignment={member.member_id: assignment(*ALL)}) is ErrorCode.NONE
    assert member.owned == ALL
    return member


def group_of(broker: GroupBroker) -> Any:
    return broker.coordinator.group("g")


def settle(classic: ClassicMember, modern: ModernMember) -> None:
    """Both obey the answers until nothing changes."""
    broker = modern.broker
    broker.at(broker.now_ms + 1_000)
    for _ in range(8):
        before = (classic.generation, classic.owned, modern.epoch, modern.owned)
        if classic.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS:
            assert classic.rejoin() is ErrorCode.NONE
        assert modern.beat() is ErrorCode.NONE
        if (classic.generation, classic.owned, modern.epoch, modern.owned) == before:
            return
    raise AssertionError("the group does not settle")


def test_upgrade__a_consumer_member_joins_a_classic_group() -> None:
    broker = fresh_broker()
    old = classic_group(broker)
    old.commit(42)
    new = ModernMember(broker, "new")
    assert new.join() is ErrorCode.NONE
    group = group_of(broker)
    assert isinstance(group, ConsumerGroup)
    assert (new.epoch, new.owned, group.epoch) == (2, {}, 2)
    assert group.members[old.member_id].is_classic
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    settle(old, new)
    assert (old.owned, new.owned) == ([0, 1, 2], {"orders": [3, 4, 5]})
    assert group_of(broker).state_name == "Stable"
    assert committed(broker, "g") == 42
    request = m.ConsumerGroupDescribeRequest(group_ids=["g"])
    (described,) = broker.call(request).groups
    assert [one.member_type for one in described.members] == [0, 1]


def test_upgrade__survives_a_failover() -> None:
    first = fresh_broker()
    old = classic_group(first)
    new = ModernMember(first, "new")
    new.join()
    settle(old, new)
    broker = old.broker = new.broker = restarted(first)
    assert group_of(broker).members == group_of(first).members
    settle(old, new)
    assert (old.owned, new.owned) == ([0, 1, 2], {"orders": [3, 4, 5]})


def test_upgrade__requests_that_wait_are_answered_with_a_rebalance() -> None:
    broker = fresh_broker()
    classic_group(broker)
    waiting = ClassicMember(broker, protocols={"range": subscription()}).join()
    assert waiting.is_joining
    ModernMember(broker, "new").join()
    assert waiting.joined.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_upgrade__a_refused_write_leaves_the_classic_group() -> None:
    broker = fresh_broker()
    old = classic_group(broker)
    broker.drop_follower()
    assert ModernMember(broker, "new").join() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.resume_follower()
    assert isinstance(group_of(broker), ClassicGroup)
    assert old.heartbeat() is ErrorCode.NONE


def test_upgrade__what_stands_against_it() -> None:
    broker = fresh_broker(group_consumer_migration_policy="downgrade")
    classic_group(broker)
    new = ModernMember(broker, "new")
    assert new.join() is ErrorCode.GROUP_ID_NOT_FOUND
    assert new.answer.error_message == (
        "classic group g cannot become a consumer group: "
        "group.consumer.migration.policy is downgrade"
    )
    broker = fresh_broker()
    member = Consumer(broker, protocol_type="connect").join()
    broker.at(3_000)
    assert member.joined.error_code == ErrorCode.NONE
    new = ModernMember(broker, "new")
    assert new.join() is ErrorCode.GROUP_ID_NOT_FOUND
    assert "its protocol type is connect" in new.answer.error_message


def test_classic_member__joins_a_consumer_group_and_leaves_it() -> None:
    broker = fresh_broker()
    new = ModernMember(broker, "new")
    new.join()
    broker.at(1_000)
    old = ClassicMember(broker, protocols={"range": subscription()}, name="old")
    old.owned = []
    assert old.join().joined.error_code == ErrorCode.NONE
    assert (old.generation, old.joined.leader) == (3, "")
    assert old.take() is ErrorCode.NONE
    settle(old, new)
    assert (old.owned, new.owned) == ([3, 4, 5], {"orders": [0, 1, 2]})
    assert old.commit(7) is ErrorCode.NONE
    assert old.heartbeat(generation=1) is ErrorCode.ILLEGAL_GENERATION
    assert old.leave() is ErrorCode.NONE
    assert list(group_of(broker).members) == ["new"]
    assert old.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_classic_member__is_fenced_if_it_does_not_join_again_in_time() -> None:
    broker = fresh_broker()
    old = classic_group(broker, rebalance_timeout_ms=9_000, session_timeout_ms=30_000)
    ModernMember(broker, "new").join()
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    broker.at(broker.now_ms + 9_000)
    assert list(group_of(broker).members) == ["new"]


def test_classic_member__is_refused_by_the_policy() -> None:
    broker = fresh_broker(group_consumer_migration_policy="Disabled")
    ModernMember(broker, "new").join()
    old = ClassicMember(broker, protocols={"range": subscription()})
    assert old.join().joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_downgrade__the_last_consumer_member_leaves() -> None:
    broker = fresh_broker()
    old = classic_group(broker)
    new = ModernMember(broker, "new")
    new.join()
    settle(old, new)
    assert new.leave() is ErrorCode.NONE
    group = group_of(broker)
    assert isinstance(group, ClassicGroup)
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    old.join()
    assert old.joined.error_code == ErrorCode.NONE
    assert old.joined.leader == old.member_id
    assert old.take(assignment={old.member_id: assignment(*ALL)}) is ErrorCode.NONE
    assert old.owned == ALL
    assert isinstance(group_of(restarted(broker)), ClassicGroup)


def test_downgrade__not_where_the_policy_forbids_it() -> None:
    broker = fresh_broker(group_consumer_migration_policy="upgrade")
    old = classic_group(broker)
    new = ModernMember(broker, "new")
    new.join()
    settle(old, new)
    new.leave()
    assert isinstance(group_of(broker), ConsumerGroup)
    broker.at(broker.now_ms + 1_000)
    again = ModernMember(broker, "again")
    assert again.join() is ErrorCode.NONE


def test_downgrade__a_static_member_comes_back_with_the_classic_protocol() -> None:
    broker = fresh_broker()
    new = ModernMember(broker, "new", instance_id="one")
    new.join()
    assert new.owned == {"orders": ALL}
    new.leave(-2)
    old = ClassicMember(broker, instance_id="one", protocols={"range": subscription()})
    old.owned = []
    assert old.join().joined.error_code == ErrorCode.NONE
    group = group_of(broker)
    assert isinstance(group, ClassicGroup)
    assert list(group.roster.members) == [old.member_id]
    assert old.take() is ErrorCode.NONE
    assert old.owned == ALL, "it has what the static member had, without a rebalance"


def test_empty_consumer_group__gives_way_to_a_classic_one() -> None:
    broker = fresh_broker()
    new = ModernMember(broker, "new")
    new.join()
    new.leave()
    old = classic_group(broker)
    old.commit(3)
    assert isinstance(group_of(broker), ClassicGroup)
    loaded = restarted(broker)
    assert isinstance(group_of(loaded), ClassicGroup)
    assert committed(loaded, "g") == 3
    settle_classic(old)
