"""Migration between classic groups and consumer groups, while members stay.

Owns: the permission, and the members of the new group.  Never: changes a group.  Kafka:
ConsumerGroupMigrationPolicy, ConsumerGroup.fromClassicGroup, ClassicGroup.fromConsumerGroup,
validateOnlineUpgrade, validateOnlineDowngrade*; KIP-848.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.classic_members import ClassicMember, Roster
from kcluster.broker.coordinator.consumer.member import (
    ClassicMetadata,
    ClassicProtocol,
    ConsumerMember,
)
from kcluster.broker.coordinator.group_log import ClassicGroupRecord
from kcluster.broker.coordinator.interface import RequestRefused
from kcluster.broker.coordinator.modern.topics import Assignment
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.metadata.image import MetadataImage
from kcluster.protocol import messages as m
from kcluster.protocol.consumer_protocol import (
    ASSIGNMENT,
    CONSUMER_PROTOCOL_TYPE,
    SUBSCRIPTION,
    decode_consumer_message,
    encode_assignment,
)
from kcluster.protocol.errors import ErrorCode


class MigrationPolicy(StrEnum):
    """The values of group.consumer.migration.policy."""

    DISABLED = "disabled"
    DOWNGRADE = "downgrade"
    UPGRADE = "upgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


def policy_of(config: BrokerConfig) -> MigrationPolicy:
    return MigrationPolicy(config.group_consumer_migration_policy.lower())


# ----------------------------------------------------------------------------------------- upgrade


def upgraded_members(
    classic: ClassicGroup, image: MetadataImage, config: BrokerConfig
) -> list[ConsumerMember] | RequestRefused:
    """The members of a classic group as members of a consumer group, each with its partitions, in
    the epoch of the generation."""
    refused = _refuse_upgrade(classic, config)
    if refused is not None:
        return _not_upgraded(classic, refused)
    members = []
    for one in classic.roster.members.values():
        member = _upgraded_member(classic.roster, one, image)
        if isinstance(member, str):
            return _not_upgraded(classic, member)
        members.append(member)
    return members


def _not_upgraded(classic: ClassicGroup, why: str) -> RequestRefused:
    message = f"classic group {classic.group_id} cannot become a consumer group: {why}"
    return RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _refuse_upgrade(classic: ClassicGroup, config: BrokerConfig) -> str | None:
    if not policy_of(config).allows_upgrade:
        return f"group.consumer.migration.policy is {config.group_consumer_migration_policy}"
    if not classic.roster.are_consumers:
        return f"its protocol type is {classic.roster.protocol_type}"
    size, limit = len(classic.roster.members), config.group_consumer_max_size
    if size > limit:
        return f"it has {size} members, more than {limit} (group.consumer.max.size)"
    return None


def _upgraded_member(
    roster: Roster, member: ClassicMember, image: MetadataImage
) -> ConsumerMember | str:
    """The member in a consumer group, or the reason why its bytes prevent that."""
    protocol = roster.protocol_name or roster.elect_protocol()
    subscription = decode_consumer_message(SUBSCRIPTION, member.protocols.get(protocol, b""))
    assigned: Assignment = {}
    if member.assignment:
        assignment = decode_consumer_message(ASSIGNMENT, member.assignment)
        if assignment is None:
            return f"the assignment of member {member.member_id} cannot be decoded"
        if assignment.user_data:
            return f"member {member.member_id} uses an assignor that adds user data"
        assigned = assignment_by_id(assignment.assigned_partitions, image)
    if subscription is None:
        return f"the subscription of member {member.member_id} cannot be decoded"
    epoch = roster.generation
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=getattr(subscription, "rack_id", None) or None,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topics=tuple(sorted(set(subscription.topics))),
        classic=classic_metadata(member.session_timeout_ms, member.protocols),
        epoch=epoch,
        previous_epoch=epoch,
        assigned={
            topic_id: dict.fromkeys(sorted(partitions), epoch)
            for topic_id, partitions in assigned.items()
        },
    )


def classic_metadata(session_timeout_ms: int, protocols: Mapping[str, bytes]) -> ClassicMetadata:
    """The part of a classic member's JoinGroup that a consumer group keeps."""
    return ClassicMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[ClassicProtocol(name, data) for name, data in protocols.items()],
    )


def assignment_by_id(
    assigned: Iterable[m.ConsumerProtocolAssignment.TopicPartition], image: MetadataImage
) -> Assignment:
    """Partitions by topic id, for existing topics."""
    return {
        image.topics[one.topic].topic_id: frozenset(one.partitions)
        for one in assigned
        if one.topic in image.topics and one.partitions
    }


# --------------------------------------------------------------------------------------- downgrade


def can_downgrade(
    members: Iterable[ConsumerMember], leavers: Iterable[ConsumerMember], config: BrokerConfig
) -> bool:
    """Whether only classic members remain without `leavers`, and may form a classic group."""
    gone = {member.member_id for member in leavers}
    rest = [member for member in members if member.member_id not in gone]
    return (
        bool(rest)
        and all(member.is_classic for member in rest)
        and policy_of(config).allows_downgrade
        and len(rest) <= config.group_max_size
    )


def downgraded(
    group_id: str,
    epoch: int,
    members: Iterable[ConsumerMember],
    targets: Mapping[str, Assignment],
    image: MetadataImage,
    now_ms: int,
) -> ClassicGroupRecord:
    """The classic group of these members, each with its part of the target assignment."""
    roster = Roster(generation=epoch, protocol_type=CONSUMER_PROTOCOL_TYPE)
    for member in members:
        assert member.classic is not None, member
        roster.add(
            ClassicMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.classic.session_timeout_ms,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocols=protocols_of(member),
            )
        )
    roster.protocol_name = roster.elect_protocol()
    assignment = {
        member.member_id: encoded_assignment(
            targets.get(member.member_id, {}),
            member.protocols.get(roster.protocol_name, b""),
            image,
        )
        for member in roster.members.values()
    }
    return ClassicGroupRecord(group_id, roster.saved(assignment, now_ms))


def protocols_of(member: ConsumerMember) -> dict[str, bytes]:
    """A classic member's protocols, in its order of preference."""
    classic = member.classic
    assert classic is not None, member
    return {one.name: bytes(one.metadata) for one in classic.supported_protocols}


def encoded_assignment(target: Assignment, subscription: bytes, image: MetadataImage) -> bytes:
    """Partitions encoded for SyncGroup, in the version of the member's subscription."""
    named = {
        image.topic_names[topic_id]: sorted(partitions)
        for topic_id, partitions in target.items()
        if topic_id in image.topic_names
    }
    return encode_assignment(named, subscription)
