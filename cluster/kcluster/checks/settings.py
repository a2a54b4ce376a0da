"""The settings that allow an anomaly, and faults that no setting prevents, by a verdict's names.

Owns: the enumeration, which the verdict, the audit and charts use. Never: decides which setting
applies.  Kafka: its names of configs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from kcluster.evidence.causes import Cause

ACKS_PREFIX: Final = "acks="
ACKS_ALL: Final = -1


class Setting(StrEnum):
    """A setting or a fault that allows an anomaly."""

    NONE = ""
    """Nothing allows the anomaly: it is a bug."""
    UNCLEAN = "unclean.leader.election.enable=true"
    UNCLEAN_REQUESTED = "an unclean election requested by the operator"
    DISK_LOST = "a disk lost"
    UNFLUSHED = "power lost before a flush"
    NOT_IDEMPOTENT = "enable.idempotence=false"
    ACKS_0 = "acks=0"
    ACKS_1 = "acks=1"
    UNVERIFIED = "transaction.partition.verification.enable=false"
    BEFORE_KIP_101 = "before KIP-101"
    TRANSACTIONS_V1 = "a client with transactions of version 1"
    EPOCH_BUMP = "an idempotent producer's new epoch"
    SHARE_RESET = "share.auto.offset.reset=latest"
    DELIVERY_LIMIT = "group.share.delivery.count.limit"
    TASKS_SENT_ONCE = "a lost answer with a streams member's tasks"
    DEPOSED_COORDINATOR = "an answer of a deposed coordinator"
    MADE_CLASSIC = "a consumer group made classic before a member had revoked"
    REVIVED = "uncommitted records of a leader that came back"
    TOO_FEW_BROKERS = "an internal topic with more replicas than brokers"
    REMOVED_IN_ELR = "an ELR of removed replicas alone"
    ELR_CLEARED = "min.insync.replicas changed in an outage"
    OFFSETS_RESET = "offsets reset by an administrator"
    GROUP_DELETED = "a group deleted by an administrator"
    RECREATED = "a deleted topic of the same name"
    DELAYED_COMMIT = "a commit delayed by a fault rule"
    OVERTAKEN_COMMIT = "a commit overtaken by the client's next one"
    COPIED = "records copied by a fault rule"
    ALTERED = "fetched records altered by a fault rule"


CAUSES: Final[dict[Setting, Cause]] = {
    Setting.UNCLEAN: Cause.UNCLEAN_ENABLED,
    Setting.UNCLEAN_REQUESTED: Cause.UNCLEAN_ELECTION,
    Setting.DISK_LOST: Cause.DISK_LOSS,
    Setting.UNFLUSHED: Cause.POWER_LOSS,
    Setting.NOT_IDEMPOTENT: Cause.NOT_IDEMPOTENT,
    Setting.ACKS_0: Cause.ACKS_0,
    Setting.ACKS_1: Cause.ACKS_1,
    Setting.UNVERIFIED: Cause.UNVERIFIED,
    Setting.BEFORE_KIP_101: Cause.BEFORE_KIP_101,
    Setting.TRANSACTIONS_V1: Cause.TRANSACTIONS_V1,
    Setting.EPOCH_BUMP: Cause.EPOCH_BUMP,
    Setting.SHARE_RESET: Cause.SHARE_RESET,
    Setting.DELIVERY_LIMIT: Cause.DELIVERY_LIMIT,
    Setting.TASKS_SENT_ONCE: Cause.TASKS_SENT_ONCE,
    Setting.DEPOSED_COORDINATOR: Cause.DEPOSED_COORDINATOR,
    Setting.MADE_CLASSIC: Cause.MADE_CLASSIC,
    Setting.REVIVED: Cause.REVIVED,
    Setting.TOO_FEW_BROKERS: Cause.TOO_FEW_BROKERS,
    Setting.REMOVED_IN_ELR: Cause.REMOVED_IN_ELR,
    Setting.ELR_CLEARED: Cause.ELR_CLEARED,
    Setting.OFFSETS_RESET: Cause.OFFSETS_RESET,
    Setting.GROUP_DELETED: Cause.GROUP_DELETED,
    Setting.RECREATED: Cause.RECREATED,
    Setting.DELAYED_COMMIT: Cause.FAULT_RULE,
    Setting.OVERTAKEN_COMMIT: Cause.OVERTAKEN,
    Setting.COPIED: Cause.FAULT_RULE,
    Setting.ALTERED: Cause.FAULT_RULE,
}
"""The setting as a cause of the anomaly that it allows."""


def acks_setting(acks: int) -> Setting:
    """The setting for an acks value, `acks=0` or `acks=1`; acks=all allows nothing."""
    return Setting.NONE if acks == ACKS_ALL else Setting(f"{ACKS_PREFIX}{acks}")


def retry_setting(is_idempotent: bool) -> Setting:
    """The setting that allows a retry to append a batch twice, or after a later one."""
    return Setting.NONE if is_idempotent else Setting.NOT_IDEMPOTENT
