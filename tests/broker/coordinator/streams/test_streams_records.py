"""Records of a streams group: ours are byte for byte those of Apache Kafka 4.3.1."""

from __future__ import annotations

from struct import unpack_from

import pytest

from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.modern.records import READERS
from kcluster.broker.coordinator.streams.group import StreamsGroup
from kcluster.broker.coordinator.streams.reconciliation import StreamsMemberState
from kcluster.broker.coordinator.streams.tasks import Task
from tests.broker.coordinator.group_broker import fresh_broker

GROUP = "000d72656331373935333336323937"
CONFIGS = "1902156e756d2e7374616e6462792e7265706c69636173023000"
SEEN = {
    "a member with all its details": (
        f"0013{GROUP}000161",
        "0000000372310461736b0b2f3132372e302e302e310000ea60000000000370310102680050000302620232000"
        "27a02310000",
    ),
    "a topology": (
        f"0017{GROUP}",
        "0000000000000302300203696e01021a726563313739353333363239372d732d6368616e67656c6f6700000000"
        "0000020f636c65616e75702e706f6c69637908636f6d7061637400000210726563313739353333363239372d72"
        "0101000231010101010210726563313739353333363239372d720000000000010100020101020000000000",
    ),
    "a group whose topology is not validated": (
        f"0011{GROUP}",
        f"000000000002 4fc228baceb41a79 01 01 {CONFIGS}",
    ),
    "a group whose topology is validated": (
        f"0011{GROUP}",
        f"000000000003 b2e1cd5b0ea4fe3d 02 000400000000 01 {CONFIGS}",
    ),
    "a member that has nothing yet": (f"0016{GROUP}000161", "000000000001000000000101010101010100"),
    "a target": (f"0015{GROUP}000161", "0000030230030000000000000002000231020000000100010100"),
    "the epoch of the target": (f"0014{GROUP}", "000000000004010008000001a20261e84b"),
    "a member that has to give tasks back": (
        f"0016{GROUP}000161",
        "000000000004000000040203023002000000000100050200000004023102000000010100050200000004010102"
        "023002000000020100050200000004010100",
    ),
    "a deleted member": (f"0013{GROUP}000162", None),
}
"""As read from a real broker's partition."""


def read(name: str) -> LogRecord:
    key, value = SEEN[name]
    encoded_key = bytes.fromhex(key)
    (kind,) = unpack_from(">h", encoded_key)
    return READERS[kind](encoded_key, None if value is None else bytes.fromhex(value))


@pytest.mark.parametrize("name", SEEN)
def test_streams_records__read_and_write_what_kafka_wrote(name: str) -> None:
    record = read(name)
    key, value = SEEN[name]
    assert record.encode() == (bytes.fromhex(key), None if value is None else bytes.fromhex(value))


def group_of(*names: str) -> StreamsGroup:
    """A group that has replayed these records."""
    shard = next(iter(fresh_broker().coordinator.shards.values()))
    group = StreamsGroup(bytes.fromhex(GROUP)[2:].decode(), shard)
    for name in names:
        group.replay(read(name))
    return group


def test_streams_records__say_what_they_say() -> None:
    group = group_of(*SEEN)
    assert (group.epoch, group.validated_topology_epoch, group.target_epoch) == (3, 0, 4)
    assert group.assignment_configs == (("num.standby.replicas", "0"),)
    assert group.topology is not None
    assert [each.subtopology_id for each in group.topology.subtopologies] == ["0", "1"]
    assert group.targets["a"].active == {Task("0", 0), Task("0", 2), Task("1", 1)}
    assert list(group.members) == ["a"]
    member = group.members["a"]
    assert member.client_tags == (("b", "2"), ("z", "1"))
    progress = member.progress
    assert progress.state is StreamsMemberState.UNREVOKED_TASKS
    assert progress.assigned.active == {Task("0", 0): 4, Task("1", 1): 4}
    assert progress.pending_revocation.active == {Task("0", 2): 4}


def test_streams_records__a_group_writes_what_it_has_read() -> None:
    group = group_of(*SEEN)
    member = group.members["a"]
    assert group.topology is not None
    assert group.epoch_record(3, group.metadata_hash) == read("a group whose topology is validated")
    assert group.member_record(member) == read("a member with all its details")
    assert group.current_record(member) == read("a member that has to give tasks back")
    assert group.target_record("a", group.targets["a"]) == read("a target")
    assert group.topology_record(group.topology) == read("a topology")


def test_streams_records__without_epochs_a_task_has_the_epoch_of_its_member() -> None:
    # A record of Kafka 4.2 or older: tagged field 0 of each entry is missing.
    key = bytes.fromhex(f"0016{GROUP}000161")
    value = bytes.fromhex("0000 00000004 00000003 01 02 0230 02 00000000 00 01 01 01 01 01 00")
    group = group_of("a member with all its details")
    group.replay(READERS[22](key, value))
    assert group.members["a"].progress.assigned.active == {Task("0", 0): 4}
