"""kafka-python's admin client: groups, the cluster, users and access, as Apache Kafka 4.3.1 does.

Its other methods: test_admin_surface_python.py.  These tests passed against three real brokers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import kafka
import kafka.errors as ke
import pytest
from kafka import OffsetAndMetadata, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    MemberToRemove,
    OffsetSpec,
    OffsetTimestamp,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from kcluster.handle.cluster import Cluster
from tests.foreign_clients.conftest import MakeTopic
from tests.foreign_clients.real_clients import (
    KEPT,
    comes_to,
    python_consumer,
    python_filled,
    python_poll,
    until,
)

BROKERS = (1, 2, 3)
RECORDS = 10
NOBODY = "nobody"

Admin: TypeAlias = kafka.KafkaAdminClient


@pytest.fixture
def filled(shared: Cluster, make_topic: MakeTopic) -> TopicPartition:
    """Records 0 to 9, stamped 1000, 2000 … ms, in the first of two partitions."""
    return python_filled(shared.bootstrap, make_topic(2, **KEPT), RECORDS)


def at(offset: int, metadata: str = "") -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, metadata, -1)


# ------------------------------------------------------------------------------------- groups


def test_admin_surface__offsets_of_a_group_without_members(
    python: Admin, filled: TopicPartition, group: str
) -> None:
    other, unknown = filled._replace(partition=1), TopicPartition("nowhere", 0)
    done = python.alter_group_offsets(group, {filled: at(3, "m"), other: at(0), unknown: at(1)})
    assert done == {filled: ke.NoError, other: ke.NoError, unknown: ke.UnknownTopicOrPartitionError}
    requested = {group: [filled], NOBODY: None}
    assert python.list_group_offsets(requested) == {group: {filled: at(3, "m")}, NOBODY: {}}
    assert python.list_group_offsets([group]) == {group: {filled: at(3, "m"), other: at(0)}}
    targets: list[tuple[Any, int]] = [
        (OffsetSpec.LATEST, RECORDS),
        (OffsetSpec.EARLIEST, 0),
        (OffsetTimestamp(3_500), 3),
        (OffsetTimestamp(99_000), RECORDS),
        (7, 7),
        (77, RECORDS),
    ]
    for target, offset in targets:
        reset = python.reset_group_offsets(group, {filled: target})
        assert reset == {filled: {"error": ke.NoError, "offset": offset}}
        assert python.list_group_offsets(requested)[group] == {filled: at(offset, "m")}
    gone = python.delete_group_offsets(group, [filled, unknown])
    assert gone == {filled: ke.NoError, unknown: ke.UnknownTopicOrPartitionError}
    assert python.list_group_offsets(group) == {group: {other: at(0)}}
    with pytest.raises(ke.GroupIdNotFoundError):
        python.delete_group_offsets(NOBODY, [filled])
    assert python.delete_groups([group, NOBODY]) == {group: "OK", NOBODY: "GroupIdNotFoundError"}


def test_admin_surface__groups_are_listed_by_state_type_and_broker(
    python: Admin, filled: TopicPartition, group: str
) -> None:
    python.alter_group_offsets(group, {filled: at(1)})

    def found(**filters: Any) -> list[tuple[str, str]]:
        listed = python.list_groups(**filters)
        return [(it["group_state"], it["group_type"]) for it in listed if it["group_id"] == group]

    empty = [("Empty", "classic")]
    assert found() == found(states_filter=["Empty"]) == found(types_filter=["classic"]) == empty
    assert found(states_filter=["Stable"]) == found(types_filter=["consumer"]) == []
    assert sorted(len(found(broker_ids=[broker])) for broker in BROKERS) == [0, 0, 1]
    described = python.describe_groups([group, NOBODY])
    assert (described[group]["group_state"], described[group]["error"]) == ("Empty", None)
    assert {"READ", "DELETE"} <= set(described[group]["authorized_operations"])
    assert described[NOBODY]["group_state"] == "Dead"
    assert "GroupIdNotFoundError" in described[NOBODY]["error"]


def test_admin_surface__a_group_with_a_member_is_not_changed_until_it_is_removed(
    shared: Cluster, python: Admin, filled: TopicPartition, group: str
) -> None:
    settings = {"group_id": group, "group_instance_id": "seat", "client_id": "me"}
    with python_consumer(shared.bootstrap, filled.topic, **settings) as consumer:
        until(lambda: python_poll(consumer) and consumer.assignment(), "assignment")
        found = python.describe_groups([group])[group]
        assert (found["group_state"], found["protocol_data"]) == ("Stable", "range")
        (member,) = found["members"]
        assert (member["client_id"], member["group_instance_id"]) == ("me", "seat")
        assert member["member_metadata"]["topics"] == [filled.topic]
        (assigned,) = member["member_assignment"]["assigned_partitions"]
        assert assigned == {"topic": filled.topic, "partitions": [0, 1]}
        refused = {filled: ke.UnknownMemberIdError}
        assert python.alter_group_offsets(group, {filled: at(3)}) == refused
        reset = python.reset_group_offsets(group, {filled: 2})
        assert reset == {filled: {"error": ke.UnknownMemberIdError, "offset": 2}}
        subscribed = {filled: ke.GroupSubscribedToTopicError}
        assert python.delete_group_offsets(group, [filled]) == subscribed
        assert python.delete_groups([group]) == {group: "NonEmptyGroupError"}
        leaving = [
            MemberToRemove(group_instance_id="seat", reason="by an operator"),
            MemberToRemove(member_id="stranger"),
        ]
        removed = python.remove_group_members(group, leaving)
        assert removed == {"seat": ke.NoError, "stranger": ke.UnknownMemberIdError}
        found = python.describe_groups([group])[group]
        assert (found["group_state"], found["members"]) == ("Empty", [])
        consumer.close(autocommit=False)
    assert python.delete_groups([group]) == {group: "OK"}


# ------------------------------------------------------------------------------------ cluster


def test_admin_surface__the_cluster_is_described(shared: Cluster, python: Admin) -> None:
    found = python.describe_cluster()
    addresses = [f"{broker['host']}:{broker['port']}" for broker in found["brokers"]]
    assert addresses == shared.bootstrap.split(",")
    assert [broker["broker_id"] for broker in found["brokers"]] == list(BROKERS)
    assert not any(broker["is_fenced"] for broker in found["brokers"])
    assert found["controller_id"] in BROKERS
    assert "IDEMPOTENT_WRITE" in found["authorized_operations"]


def test_admin_surface__the_quorum_has_a_leader_that_all_brokers_follow(python: Admin) -> None:
    (topic,) = python.describe_metadata_quorum()["topics"]
    (log,) = topic["partitions"]
    assert (topic["topic_name"], log["error"]) == ("__cluster_metadata", None)
    assert log["leader_id"] in {voter["replica_id"] for voter in log["current_voters"]}
    all_replicas = log["current_voters"] + log["observers"]
    assert set(BROKERS) <= {replica["replica_id"] for replica in all_replicas}
    ends = {replica["log_end_offset"] for replica in all_replicas}
    assert 0 < log["high_watermark"] <= max(ends)


def test_admin_surface__versions_are_those_of_the_newest_release(python: Admin) -> None:
    found = python.get_broker_version_data(1)
    assert found.broker_version == (4, 3)  # it knows nothing newer
    with pytest.raises(ke.UnknownBrokerIdError):
        python.get_broker_version_data(9)
    assert (found.api_versions[1], found.api_versions[93]) == ((4, 18), (0, 0))
    with pytest.raises(ValueError, match="93 is not a valid ApiKey"):
        python.api_versions()  # kafka-python 3.0.12: so it does with a real 4.4.0


def test_admin_surface__features_are_described_and_invalid_updates_refused(python: Admin) -> None:
    found = python.describe_features()
    assert found["metadata.version"]["finalized"] == (33, 33)
    assert found["group.version"]["supported"] == (0, 1)
    by_controller = python.describe_features(send_request_to_controller=True)
    assert by_controller["group.version"]["finalized"] == found["group.version"]["finalized"]
    assert python.update_features({"group.version": 1}, validate_only=True) == {
        "group.version": "OK"
    }
    wrong: list[dict[str, Any]] = [
        {"group.version": 99},
        {"none.version": 1},
        {"metadata.version": ("SAFE_DOWNGRADE", 7)},
    ]
    for update in wrong:
        with pytest.raises(ke.InvalidUpdateVersionError):
            python.update_features(update, validate_only=True)


def test_admin_surface__log_directories(python: Admin, filled: TopicPartition) -> None:
    topic = filled.topic
    brokers = python.describe_log_dirs({topic: [0]})
    assert sorted(broker["broker"] for broker in brokers) == list(BROKERS)
    for broker in brokers:
        (directory,) = broker["log_dirs"]
        ((found,),) = [each["partitions"] for each in directory["topics"]]
        assert found["partition_size"] > RECORDS
        assert (found["offset_lag"], found["is_future_key"]) == (0, False)
        assert 0 < directory["usable_bytes"] <= directory["total_bytes"]
    (second,) = python.describe_log_dirs([topic], brokers=[2])
    parts = second["log_dirs"][0]["topics"][0]["partitions"]
    assert sorted(part["partition_index"] for part in parts) == [0, 1]
    path = second["log_dirs"][0]["log_dir"]
    here, away = (topic, 0, 2), ("nowhere", 0, 2)
    assert python.alter_replica_log_dirs({here: path, away: path}) == {
        here: ke.NoError,
        away: ke.UnknownTopicOrPartitionError,
    }
    assert python.alter_replica_log_dirs({here: "/no/such"}) == {here: ke.LogDirNotFoundError}


# --------------------------------------------------------------------------- users and access


def test_admin_surface__credentials_of_users(python: Admin) -> None:
    def credentials(*users: str) -> dict[str, list[tuple[int, int]]]:
        return {
            user: [(info["mechanism"], info["iterations"]) for info in at["credential_infos"]]
            for user, at in python.describe_user_scram_credentials(list(users) or None).items()
        }

    alter: Callable[[list[Any]], dict[str, Any]] = python.alter_user_scram_credentials
    new = UserScramCredentialUpsertion
    wanted = [new("ann", "SCRAM-SHA-256", "pw"), new("ben", "SCRAM-SHA-512", "pw", 8192)]
    assert alter(wanted) == {"ann": None, "ben": None}
    comes_to(credentials, {"ann": [(1, 4096)], "ben": [(2, 8192)]})
    comes_to(lambda: credentials("ben", NOBODY), {"ben": [(2, 8192)], NOBODY: []})
    assert python.describe_user_scram_credentials([NOBODY])[NOBODY]["error"]
    assert alter([new("ann", "SCRAM-SHA-256", "pw", 100)])["ann"]
    assert alter(wanted + wanted[:1])["ann"]
    old = UserScramCredentialDeletion
    gone = alter([old("ann", 1), old("ben", 2), old(NOBODY, 1)])
    assert {user: bool(error) for user, error in gone.items()} == {
        "ann": False,
        "ben": False,
        NOBODY: True,
    }
    comes_to(credentials, {})


def test_admin_surface__acls_are_refused_without_an_authorizer(python: Admin) -> None:
    any_of = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    everything = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, any_of)
    pattern = ResourcePattern(ResourceType.TOPIC, "orders")
    rule = ACL("User:ann", "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)
    created = python.create_acls([rule])
    assert created == {"succeeded": [], "failed": [ke.SecurityDisabledError]}
    with pytest.raises(ke.SecurityDisabledError):
        python.describe_acls(everything)
    assert python.delete_acls([everything]) == [(everything, [], ke.SecurityDisabledError)]
