"""Members that are evicted, and rebalances, through a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from kcluster.events.clients import (
    GroupDeleted,
    MembersEvicted,
    OffsetSpec,
    OffsetsReset,
    PartitionOffset,
    RebalanceRequested,
)
from kcluster.operations.group_calls import GroupCallRefused
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.proxy.upstream import UpstreamError
from tests.proxy.test_upstream import secured_cluster
from tests.rig.proxied import PlainClient, Proxied, proxied, proxy_before

JOIN_VERSION: Final = 9


class ClassicMember:
    """A member of a classic group, alone in it.  `instance_id`: for a static member."""

    def __init__(self, found: Proxied, group: str, instance_id: str | None = None) -> None:
        self.group = group
        self.client = PlainClient(coordinator(found, group), "joiner")
        joining = m.JoinGroupRequest(
            group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000,
            group_instance_id=instance_id, protocol_type="consumer",
            protocols=[m.JoinGroupRequest.JoinGroupRequestProtocol("range", b"")],
        )  # fmt: skip
        answer = self.client.ask(joining, JOIN_VERSION)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            joining.member_id = answer.member_id
            answer = self.client.ask(joining, JOIN_VERSION)
        assert not answer.error_code
        self.member_id, self.generation_id = answer.member_id, answer.generation_id
        given = m.SyncGroupRequest.SyncGroupRequestAssignment(self.member_id, b"")
        synced = m.SyncGroupRequest(
            group_id=group, generation_id=self.generation_id, member_id=self.member_id,
            group_instance_id=instance_id, protocol_type="consumer", protocol_name="range",
            assignments=[given],
        )  # fmt: skip
        assert not self.client.ask(synced, 5).error_code

    def heartbeat(self) -> int:
        """The error of a heartbeat."""
        beat = m.HeartbeatRequest(self.group, self.generation_id, self.member_id)
        return int(self.client.ask(beat, 4).error_code)


class ModernMember:
    """A member of a group of the protocol of KIP-848."""

    def __init__(self, found: Proxied, group: str) -> None:
        self.group = group
        self.client = PlainClient(coordinator(found, group), "joiner")
        joining = m.ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=f"{group}-member", member_epoch=0,
            rebalance_timeout_ms=30_000, subscribed_topic_names=["orders"], topic_partitions=[],
        )  # fmt: skip
        answer = self.client.ask(joining, 1)
        assert not answer.error_code, answer
        self.member_id, self.epoch = answer.member_id, answer.member_epoch

    def heartbeat(self) -> int:
        """The error of a heartbeat."""
        beat = m.ConsumerGroupHeartbeatRequest(self.group, self.member_id, self.epoch)
        answer = self.client.ask(beat, 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
        return int(answer.error_code)


def coordinator(found: Proxied, group: str) -> tuple[str, int]:
    """The proxy's address of a group's coordinator."""
    with found.client() as client:
        while True:  # the coordinator of a new cluster is loading
            answer = client.ask(m.FindCoordinatorRequest(coordinator_keys=[group]), 4)
            (place,) = answer.coordinators
            if not place.error_code:
                return place.host, place.port


def evict(found: Proxied, group: str, name: str) -> None:
    found.running.call(lambda proxy: proxy.groups.evict(group, name))


def rebalance(found: Proxied, group: str) -> None:
    found.running.call(lambda proxy: proxy.groups.rebalance(group))


@pytest.fixture(scope="module")
def one() -> Iterator[Proxied]:
    with proxied(1, **{"group.initial.rebalance.delay.ms": 0}) as found:
        yield found


def evicts_classic_members(found: Proxied) -> None:
    for group, instance_id, name in (
        ("evicted", None, "joiner"),
        ("evicted-static", "till-1", "till-1"),
        ("evicted-all", None, "all"),
    ):
        member = ClassicMember(found, group, instance_id)
        assert not member.heartbeat()
        before = len(found.rows.events)
        evict(found, group, name)
        assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert found.rows.events[before:] == [MembersEvicted(group, name, (member.member_id,))]
        member.client.socket.close()


def rebalances_a_classic_group(found: Proxied) -> None:
    member = ClassicMember(found, "rebalanced")
    rebalance(found, "rebalanced")
    assert member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert found.rows.events[-1] == RebalanceRequested("rebalanced")
    member.client.socket.close()


def evicts_and_rebalances_modern_members(found: Proxied) -> None:
    member = ModernMember(found, "modern")
    assert not member.heartbeat()
    before = member.epoch
    rebalance(found, "modern")
    while member.epoch <= before:  # the coordinator may collect changes for a second (KIP-1263)
        assert not member.heartbeat()
    evict(found, "modern", member.member_id)
    assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    member.client.socket.close()


def test_groups__members_of_classic_groups_are_evicted(one: Proxied) -> None:
    evicts_classic_members(one)


def test_groups__a_classic_group_rebalances(one: Proxied) -> None:
    rebalances_a_classic_group(one)


def test_groups__members_of_modern_groups_are_evicted_and_rebalanced(one: Proxied) -> None:
    evicts_and_rebalances_modern_members(one)


def test_groups__offsets_are_reset_and_the_group_is_deleted(one: Proxied) -> None:
    one.upstream.create_topic("parcels", partitions=2, replication_factor=1)
    member = ClassicMember(one, "packing")
    with pytest.raises(GroupCallRefused, match="group packing has members: it must be inactive"):
        one.running.call(lambda proxy: proxy.groups.reset_offsets("packing", "parcels", None, 0))
    with pytest.raises(GroupCallRefused, match="NON_EMPTY_GROUP"):
        one.running.call(lambda proxy: proxy.groups.delete_group("packing"))
    evict(one, "packing", "all")
    before = len(one.rows.events)
    one.running.call(
        lambda proxy: proxy.groups.reset_offsets("packing", "parcels", None, OffsetSpec.LATEST)
    )
    one.running.call(lambda proxy: proxy.groups.delete_group("packing"))
    offsets = (PartitionOffset(0, 0), PartitionOffset(1, 0))
    reset = OffsetsReset("packing", "parcels", offsets, OffsetSpec.LATEST)
    assert one.rows.events[before:] == [reset, GroupDeleted("packing")]
    with pytest.raises(GroupCallRefused, match="there is no group packing"):
        evict(one, "packing", "all")
    member.client.socket.close()


def test_groups__an_unknown_group_or_member_is_refused_with_the_nearest_name(one: Proxied) -> None:
    member = ClassicMember(one, "billing")
    for group, name, why in (
        ("biling", "all", "there is no group biling; did you mean billing?"),
        ("billing", "joinre", "did you mean joiner?"),
    ):
        with pytest.raises(GroupCallRefused, match=why):
            evict(one, group, name)
    assert not member.heartbeat()
    member.client.socket.close()


def test_groups__a_proxy_without_a_login_says_that_the_broker_closed() -> None:
    with (
        secured_cluster() as cluster,
        proxy_before(cluster.bootstrap) as found,
        pytest.raises(UpstreamError, match="closed the connection without an answer"),
    ):
        evict(found, "billing", "all")
