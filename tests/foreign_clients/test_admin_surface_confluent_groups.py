"""confluent-kafka's admin client: groups, the cluster, users and access, as Kafka 4.3.1 answers.

Its other methods: test_admin_surface_confluent.py.  These tests passed against three real brokers.
"""

from __future__ import annotations

from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from kcluster.handle.cluster import Cluster
from tests.foreign_clients.conftest import MakeTopic
from tests.foreign_clients.real_clients import (
    KEPT,
    LIMIT_S,
    comes_to,
    confluent_consumer,
    confluent_filled,
    confluent_outcomes,
    confluent_result,
    confluent_settings,
    confluent_take,
)

KE = ck.KafkaError
EMPTY, STABLE = ck.ConsumerGroupState.EMPTY, ck.ConsumerGroupState.STABLE
CLASSIC, CONSUMER = ck.ConsumerGroupType.CLASSIC, ck.ConsumerGroupType.CONSUMER
BROKERS = (1, 2, 3)
RECORDS = 10
NOBODY = "nobody's"


@pytest.fixture
def filled(shared: Cluster, make_topic: MakeTopic) -> str:
    """Records in the first of two partitions."""
    return confluent_filled(shared.bootstrap, make_topic(2, **KEPT), RECORDS)


def alter(admin: AdminClient, group: str, *at: tuple[str, int, int]) -> dict[tuple[str, int], Any]:
    """Error code, or None, for each altered offset (topic, partition, offset)."""
    parts = [ck.TopicPartition(topic, partition, offset, "m") for topic, partition, offset in at]
    wanted = [ck.ConsumerGroupTopicPartitions(group, parts)]
    answer = confluent_result(admin.alter_consumer_group_offsets(wanted))
    return {
        (part.topic, part.partition): part.error and part.error.code()
        for part in answer.topic_partitions
    }


def committed(admin: AdminClient, group: str, *at: tuple[str, int], **more: Any) -> dict[Any, Any]:
    """Offset and metadata of these partitions, or of all."""
    parts = [ck.TopicPartition(*place) for place in at] or None
    request = [ck.ConsumerGroupTopicPartitions(group, parts)]
    answer = confluent_result(admin.list_consumer_group_offsets(request, **more))
    assert not any(part.error for part in answer.topic_partitions)
    return {
        (part.topic, part.partition): (part.offset, part.metadata)
        for part in answer.topic_partitions
    }


# ------------------------------------------------------------------------------------- groups


def test_admin_surface__offsets_of_a_group_without_members(
    admin: AdminClient, filled: str, group: str
) -> None:
    one, other, unknown = (filled, 0), (filled, 1), ("nowhere", 0)
    assert alter(admin, group, (*one, 3), (*other, 0), (*unknown, 1)) == {
        one: None,
        other: None,
        unknown: KE.UNKNOWN_TOPIC_OR_PART,
    }
    assert committed(admin, group) == {one: (3, "m"), other: (0, "m")}
    assert committed(admin, group, one, require_stable=True) == {one: (3, "m")}
    assert committed(admin, group, unknown) == {unknown: (ck.OFFSET_INVALID, None)}
    assert alter(admin, group, (*one, RECORDS + 9)) == {one: None}
    assert committed(admin, group, one) == {one: (RECORDS + 9, "m")}
    assert committed(admin, NOBODY) == {}
    gone = admin.delete_consumer_groups([group, NOBODY])
    assert confluent_outcomes(gone) == {group: None, NOBODY: KE.GROUP_ID_NOT_FOUND}
    assert committed(admin, group) == {}


def test_admin_surface__groups_are_listed_by_state_and_type(
    admin: AdminClient, filled: str, group: str
) -> None:
    alter(admin, group, (filled, 0, 1))

    def found(**filters: Any) -> list[tuple[Any, Any, bool]]:
        listed = admin.list_consumer_groups(**filters).result(LIMIT_S)
        assert listed.errors == []
        return [
            (at.state, at.type, at.is_simple_consumer_group)
            for at in listed.valid
            if at.group_id == group
        ]

    empty = [(EMPTY, CLASSIC, True)]
    assert found() == found(states={EMPTY}) == found(types={CLASSIC}) == empty
    assert found(states={STABLE}) == found(types={CONSUMER}) == []
    futures = admin.describe_consumer_groups([group, NOBODY], include_authorized_operations=True)
    described = futures[group].result(LIMIT_S)
    assert (described.state, described.members, described.partition_assignor) == (EMPTY, [], "")
    operations = {AclOperation(at).name for at in described.authorized_operations}
    assert operations == {"READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
    unknown = futures[NOBODY].result(LIMIT_S)
    assert (unknown.state, unknown.members) == (ck.ConsumerGroupState.DEAD, [])


def test_admin_surface__a_group_with_a_member_is_not_changed(
    shared: Cluster, admin: AdminClient, filled: str, group: str
) -> None:
    settings = {"group_id": group, "group_instance_id": "seat", "client_id": "me"}
    with confluent_consumer(shared.bootstrap, **settings) as consumer:
        consumer.subscribe([filled])
        confluent_take(consumer, RECORDS)
        found = confluent_result(admin.describe_consumer_groups([group]))
        assert (found.state, found.type, found.partition_assignor) == (STABLE, CLASSIC, "range")
        assert (found.is_simple_consumer_group, found.authorized_operations) == (False, None)
        assert found.coordinator.id in BROKERS
        (member,) = found.members
        assert (member.client_id, member.group_instance_id) == ("me", "seat")
        assert member.host.startswith("/127.0.0.1")
        assigned = [(at.topic, at.partition) for at in member.assignment.topic_partitions]
        assert assigned == [(filled, 0), (filled, 1)]
        with pytest.warns(DeprecationWarning, match="list_consumer_groups"):
            everyone: list[Any] = admin.list_groups(timeout=LIMIT_S)
        (listed,) = (at for at in everyone if at.id == group)
        assert (listed.id, listed.state, listed.error) == (group, "Stable", None)
        assert (listed.protocol_type, listed.protocol) == ("consumer", "range")
        assert listed.broker.id == found.coordinator.id
        assert [(it.id, it.client_id) for it in listed.members] == [(member.member_id, "me")]
        assert alter(admin, group, (filled, 0, 3)) == {(filled, 0): KE.UNKNOWN_MEMBER_ID}
        refused = admin.delete_consumer_groups([group])
        assert confluent_outcomes(refused) == {group: KE.NON_EMPTY_GROUP}


# ------------------------------------------------------------------------------------ cluster


def test_admin_surface__the_cluster_is_described(shared: Cluster, admin: AdminClient) -> None:
    found = admin.describe_cluster(include_authorized_operations=True).result(LIMIT_S)
    addresses = {f"{node.host}:{node.port}" for node in found.nodes}
    assert addresses == set(shared.bootstrap.split(","))
    assert sorted(node.id for node in found.nodes) == list(BROKERS)
    assert found.controller.id in BROKERS
    assert found.cluster_id == admin.cluster_id(timeout=LIMIT_S)
    assert {AclOperation(operation).name for operation in found.authorized_operations} == {
        "CREATE",
        "ALTER",
        "DESCRIBE",
        "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
    }
    assert admin.describe_cluster().result(LIMIT_S).authorized_operations is None


def test_admin_surface__statistics_arrive_with_a_poll(shared: Cluster) -> None:
    counted: list[str] = []
    settings = confluent_settings(shared.bootstrap, statistics_interval_ms=10)
    settings["stats_cb"] = counted.append
    admin = AdminClient(settings)
    admin.set_sasl_credentials("ann", "pw")  # unused: these listeners have no SASL
    assert admin.list_topics(timeout=LIMIT_S).brokers
    assert admin.poll(LIMIT_S) >= len(counted) > 0


# --------------------------------------------------------------------------- users and access


def test_admin_surface__credentials_of_users(admin: AdminClient) -> None:
    sha_256, sha_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512

    def infos(described: Any) -> list[tuple[ScramMechanism, int]]:
        return [(info.mechanism, info.iterations) for info in described.scram_credential_infos]

    def all_users() -> dict[str, list[tuple[ScramMechanism, int]]]:
        described: Any = admin.describe_user_scram_credentials()
        return {user: infos(at) for user, at in described.result(LIMIT_S).items()}

    def new(user: str, mechanism: ScramMechanism, iterations: int, *salt: bytes) -> Any:
        info = ScramCredentialInfo(mechanism, iterations)
        return UserScramCredentialUpsertion(user, info, b"pw", *salt)

    wanted = [
        new("ann", sha_256, 4096),
        new("ben", sha_512, 8192, b"salt"),
        new("cleo", sha_256, 9),
    ]
    assert confluent_outcomes(admin.alter_user_scram_credentials(wanted)) == {
        "ann": None,
        "ben": None,
        "cleo": KE.UNACCEPTABLE_CREDENTIAL,
    }
    comes_to(all_users, {"ann": [(sha_256, 4096)], "ben": [(sha_512, 8192)]})
    described: Any = admin.describe_user_scram_credentials(["ben", NOBODY])
    outcomes = confluent_outcomes(described)
    assert infos(outcomes["ben"]) == [(sha_512, 8192)]
    assert outcomes[NOBODY] == KE.RESOURCE_NOT_FOUND
    twice = admin.alter_user_scram_credentials([wanted[0], wanted[0]])
    assert confluent_outcomes(twice) == {"ann": KE.DUPLICATE_RESOURCE}
    old = UserScramCredentialDeletion
    gone: list[Any] = [old("ann", sha_256), old("ben", sha_512), old(NOBODY, sha_256)]
    assert confluent_outcomes(admin.alter_user_scram_credentials(gone)) == {
        "ann": None,
        "ben": None,
        NOBODY: KE.RESOURCE_NOT_FOUND,
    }
    comes_to(all_users, {})


def test_admin_surface__acls_are_refused_without_an_authorizer(admin: AdminClient) -> None:
    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    rule = AclBinding(
        ResourceType.TOPIC, "orders", literal, "User:ann", "*", AclOperation.READ, allow
    )
    anything: Any = None
    everything = AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert confluent_outcomes(admin.create_acls([rule])) == {rule: KE.SECURITY_DISABLED}
    assert admin.describe_acls(everything).result(LIMIT_S) == []  # librdkafka drops the error
    deleted = admin.delete_acls([everything])
    assert confluent_outcomes(deleted) == {everything: KE.SECURITY_DISABLED}
