"""Offsets as clients of before KIP-211, and of ZooKeeper's time, commit and fetch them."""

from __future__ import annotations

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.releases import releases
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker
from tests.broker.coordinator.members import Consumer, committed, settle
from tests.rig.requests import commit_request


def broker_of(version: str) -> GroupBroker:
    return fresh_broker(release=releases()[version])


def fetched_v0(broker: GroupBroker, topic: str = "orders") -> tuple[int, int, str | None]:
    asked = m.OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
    answer = broker.call(m.OffsetFetchRequest(group_id="g", topics=[asked]), 0)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.committed_offset, found.metadata


def test_v0__commits_without_membership_and_later_versions_read_it() -> None:
    broker = broker_of("2.8")
    member = Consumer(broker, name="a").join()
    broker.at(3_000)
    settle(member)
    answer = broker.call(commit_request("g", 7, metadata="x"), 0)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert committed(broker, "g") == 7
    assert fetched_v0(broker) == (ErrorCode.NONE, 7, "")


def test_v0__a_partition_without_an_offset_is_unknown() -> None:
    assert fetched_v0(broker_of("0.11")) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, "")


@pytest.mark.parametrize(
    ("version", "error"), [("3.2", ErrorCode.NONE), ("3.3", ErrorCode.UNSUPPORTED_VERSION)]
)
def test_v0__is_served_only_by_releases_with_zookeeper(version: str, error: ErrorCode) -> None:
    broker = broker_of(version)
    answer = broker.call(commit_request("g", 7), 0)
    assert answer.topics[0].partitions[0].error_code == error
    assert fetched_v0(broker)[0] == error
    assert committed(broker, "g") == (-1 if error else 7)


def test_v1__uses_the_timestamp_of_the_commit() -> None:
    broker = broker_of("2.8")
    for timestamp, stored_ms in ((5, 5), (-1, broker.now_ms)):
        request = commit_request("g", 7)
        request.topics[0].partitions[0].commit_timestamp = timestamp
        broker.call(request, 1)
        shard = broker.coordinator.shard_for("g")
        assert not isinstance(shard, ErrorCode)
        offset = shard.offsets.get("g", "orders", 0)
        assert offset is not None
        assert offset.commit_timestamp_ms == stored_ms
