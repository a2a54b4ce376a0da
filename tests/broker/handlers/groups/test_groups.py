"""Describing, listing and deleting groups."""

from __future__ import annotations

from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.group_broker import fresh_broker
from tests.broker.coordinator.members import Consumer, settle, subscription
from tests.rig.requests import commit_request


def stable(instance_id: str | None) -> list[Consumer]:
    """Group `g` with one member."""
    member = Consumer(fresh_broker(), instance_id=instance_id, name="m0").join()
    member.broker.at(3000)
    settle(member)
    return [member]


def test_describe__shows_state_members_and_metadata() -> None:
    (a,) = stable("i1")
    answer = a.broker.call(
        m.DescribeGroupsRequest(groups=["g", "none"], include_authorized_operations=True)
    )
    group, none = answer.groups
    (member,) = group.members
    assert (group.group_state, group.protocol_type, group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    assert (member.group_instance_id, member.client_id) == ("i1", "m0")
    assert member.client_host == "/127.0.0.1"
    assert member.member_metadata == subscription("orders")
    assert member.member_assignment == b"part of m0"
    assert (none.group_state, none.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    old = a.broker.call(m.DescribeGroupsRequest(groups=["none"]), 5).groups[0]
    assert (old.group_state, old.error_code) == ("Dead", ErrorCode.NONE)


def test_list__filters_by_state_and_type() -> None:
    (a,) = stable(None)
    a.broker.call(commit_request("simple", 3), 2)

    def listed(**filters: list[str]) -> list[tuple[str, str, str, str]]:
        answer = a.broker.call(m.ListGroupsRequest(**filters))
        return sorted(
            (g.group_id, g.group_state, g.protocol_type, g.group_type) for g in answer.groups
        )

    g = ("g", "Stable", "consumer", "classic")
    simple = ("simple", "Empty", "", "classic")
    assert listed() == [g, simple]
    assert listed(states_filter=["STABLE"]) == [g]
    assert listed(states_filter=["Empty", "Dead"]) == [simple]
    assert listed(types_filter=["Classic"]) == [g, simple]
    assert listed(types_filter=["consumer"]) == []


def test_delete__only_groups_without_members() -> None:
    (a,) = stable(None)
    a.commit(7)

    def delete(*names: str) -> list[int]:
        answer = a.broker.call(m.DeleteGroupsRequest(groups_names=list(names)))
        return [one.error_code for one in answer.results]

    assert delete("g", "none") == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
    a.leave()
    assert delete("g") == [ErrorCode.NONE]
    assert delete("g") == [ErrorCode.GROUP_ID_NOT_FOUND]
