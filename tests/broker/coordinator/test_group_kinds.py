"""The interface of groups: a kind that the shard does not know works through the tables alone."""

from __future__ import annotations

import pytest

from kcluster.broker.coordinator import shard
from kcluster.broker.coordinator.classic_group import (
    ClassicGroup,
    ClassicGroupState,
    IllegalTransitionError,
)
from kcluster.broker.coordinator.group import Committer, Group
from kcluster.broker.coordinator.group_log import ClassicGroupRecord, LogRecord
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.group_broker import fresh_broker, restarted
from tests.broker.coordinator.members import Consumer, committed, settle
from tests.rig.requests import commit_request


class OtherGroup(Group):
    """Stands for a kind to come: it has no members, and refuses what it is asked."""

    kind = "other"
    is_empty = False

    @property
    def state_name(self) -> str:
        return "Reconciling"

    @property
    def protocol_type(self) -> str:
        return "others"

    def described(self) -> None:
        return None

    @property
    def is_unused(self) -> bool:
        return self.is_empty

    def check_deletion(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def tombstones(self) -> list[LogRecord]:
        return [ClassicGroupRecord(self.group_id, None)]

    def admit_commit(self, committer: Committer, now_ms: int) -> ErrorCode:
        return ErrorCode.NONE if committer.generation == 5 else ErrorCode.STALE_MEMBER_EPOCH

    def check_offset_deletion(self) -> ErrorCode:
        return ErrorCode.NONE

    def is_subscribed_to(self, topic: str) -> bool:
        return topic == "orders"

    def retention_starts_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    def replay(self, record: LogRecord) -> bool:
        assert isinstance(record, ClassicGroupRecord)
        return record.value is not None

    def resume(self, now_ms: int) -> None:
        self.resumed_ms = now_ms

    def unload(self, now_ms: int) -> None:
        self.unloaded_ms = now_ms

    def abandon(self) -> None:
        pass


def test_group__another_kind_is_loaded_and_asked_by_its_interface(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = fresh_broker()
    Consumer(first)._send_join(9)
    monkeypatch.setattr(shard, "KIND_OF_RECORD", {ClassicGroupRecord: OtherGroup})
    broker = restarted(first)
    group = broker.coordinator.group("g")
    assert isinstance(group, OtherGroup)
    assert group.resumed_ms == broker.now_ms
    (listed,) = broker.call(m.ListGroupsRequest(types_filter=["Other"])).groups
    assert (listed.group_id, listed.group_type) == ("g", "other")
    assert (listed.protocol_type, listed.group_state) == ("others", "Reconciling")
    (described,) = broker.call(m.DescribeGroupsRequest(groups=["g"])).groups
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND

    stranger = Consumer(broker)
    assert stranger.join().joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stranger.member_id = "m"
    assert stranger.join().joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert stranger.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert broker.coordinator.group("g") is group

    def commit(epoch: int) -> int:
        answer = broker.call(commit_request("g", 3, generation=epoch, member_id="m"), 9)
        return int(answer.topics[0].partitions[0].error_code)

    assert [commit(4), commit(5)] == [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.NONE]
    assert committed(broker, "g") == 3

    def delete() -> int:
        return int(broker.call(m.DeleteGroupsRequest(groups_names=["g"])).results[0].error_code)

    assert delete() == ErrorCode.NON_EMPTY_GROUP
    group.is_empty = True
    assert delete() == ErrorCode.NONE
    assert broker.coordinator.group("g") is ErrorCode.GROUP_ID_NOT_FOUND
    assert committed(broker, "g") == -1


def test_group__is_unloaded_with_its_shard() -> None:
    broker = fresh_broker()
    partition = broker.coordinator.partition_for("g")
    home = broker.coordinator.shards[partition]
    group = home.groups["g"] = OtherGroup("g", home)
    broker.at(77)
    broker.resign()
    assert group.unloaded_ms == 77
    assert broker.coordinator.group("g") is ErrorCode.NOT_COORDINATOR


def test_classic_group__illegal_transition_names_group_state_and_target() -> None:
    member = Consumer(fresh_broker(), group="billing").join()
    member.broker.at(3000)
    settle(member)
    group = member.broker.coordinator.group("billing")
    assert isinstance(group, ClassicGroup)
    with pytest.raises(IllegalTransitionError, match=r"billing.* from Stable to Empty"):
        group._transition_to(ClassicGroupState.EMPTY, 0)
    assert group.state is ClassicGroupState.STABLE


def test_classic_group__failed_deletion_leaves_no_pending_member_for_ever() -> None:
    pending = Consumer(fresh_broker())
    broker = pending.broker
    pending.member_id = broker.answer(pending._send_join(9)).member_id
    broker.drop_follower()
    (deleted,) = broker.call(m.DeleteGroupsRequest(groups_names=["g"])).results
    assert deleted.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.resume_follower()
    broker.at(broker.now_ms + pending.session_timeout_ms)
    group = broker.coordinator.group("g")
    assert isinstance(group, ClassicGroup)
    assert group.is_unused
