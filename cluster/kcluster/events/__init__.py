"""The events of a cluster: one type per kind, and the words for them.

Owns: events as facts (base.py; brokers.py, topics.py, partitions.py, clients.py, transactions.py,
share_groups.py, security.py, network.py, programs.py), their reasons (reasons.py,
rebalance_reasons.py), the effects of rules (rule_effects.py), the union of all kinds (here); their
words (words/), notes and requests as lines and JSON (render.py), timelines (timeline.py).  Never:
decides, stores or prints anything.

To add a kind: a class in one of these modules, its name in `AnyEvent`, its words in words/.
"""

from __future__ import annotations

from typing import Final, get_args

from kcluster.events.base import TaggedEvent
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    BrokerReaddressed,
    BrokerRegistered,
    BrokerResumed,
    BrokerStarted,
    BrokerUnfenced,
    CertificateReplaced,
    ControlledShutdown,
    ControllerDown,
    ControllerElected,
    DiskFull,
    DiskReplaced,
    RecordsLost,
    RegistrationRefused,
)
from kcluster.events.clients import (
    ClientDown,
    ClientPaused,
    ClientResumed,
    ClientStarted,
    ClientThrottled,
    GroupAssigned,
    GroupDeleted,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
    GroupRebalanced,
    MembersEvicted,
    OffsetsReset,
    RebalanceRequested,
    TelemetryPushed,
)
from kcluster.events.network import (
    LinkCut,
    LinkHealed,
    LinkReset,
    NetworkCut,
    NetworkHealed,
    NetworkShaped,
    NodeRuleAdded,
    NodeRuleHit,
    RuleAdded,
    RuleHit,
    RuleRemoved,
)
from kcluster.events.partitions import (
    BecameFollower,
    BecameLeader,
    IsrExpanded,
    IsrShrunk,
    LeaderElected,
    LogTruncated,
    PartitionOffline,
    ReassignmentCancelled,
    ReassignmentCompleted,
    ReassignmentStarted,
    RecordsDeleted,
)
from kcluster.events.programs import ProgramKilled, ProgramPaused, ProgramResumed, ProgramStarted
from kcluster.events.security import (
    AclsApplied,
    AclsChanged,
    AuthenticationFailed,
    AuthorizationDenied,
    CredentialsApplied,
    SessionsEnded,
    TlsHandshakeFailed,
    TokensExpired,
)
from kcluster.events.share_groups import (
    DeadLettersDropped,
    DeadLettersWritten,
    ShareLocksExpired,
    SharePartitionLoaded,
)
from kcluster.events.steps import StepSkipped
from kcluster.events.topics import (
    ConfigChanged,
    FeatureChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from kcluster.events.transactions import TransactionCompleted, TransactionEnded

AnyEvent = (
    BrokerStarted
    | BrokerDown
    | BrokerReaddressed
    | CertificateReplaced
    | DiskFull
    | DiskReplaced
    | BrokerPaused
    | BrokerResumed
    | BrokerRegistered
    | RegistrationRefused
    | BrokerFenced
    | BrokerUnfenced
    | ControlledShutdown
    | ControllerDown
    | ControllerElected
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | ConfigChanged
    | FeatureChanged
    | AclsChanged
    | AclsApplied
    | AuthorizationDenied
    | TlsHandshakeFailed
    | CredentialsApplied
    | SessionsEnded
    | TokensExpired
    | LeaderElected
    | PartitionOffline
    | ReassignmentStarted
    | RecordsDeleted
    | ReassignmentCompleted
    | ReassignmentCancelled
    | IsrShrunk
    | IsrExpanded
    | BecameLeader
    | BecameFollower
    | LogTruncated
    | RecordsLost
    | ClientThrottled
    | AuthenticationFailed
    | TelemetryPushed
    | GroupMemberJoined
    | GroupMemberLeft
    | GroupMemberExpired
    | MembersEvicted
    | RebalanceRequested
    | GroupDeleted
    | OffsetsReset
    | GroupRebalanced
    | GroupAssigned
    | TransactionEnded
    | TransactionCompleted
    | SharePartitionLoaded
    | ShareLocksExpired
    | DeadLettersWritten
    | DeadLettersDropped
    | NodeRuleAdded
    | NodeRuleHit
    | RuleAdded
    | RuleHit
    | RuleRemoved
    | LinkCut
    | LinkHealed
    | LinkReset
    | NetworkCut
    | NetworkHealed
    | NetworkShaped
    | StepSkipped
    | ProgramKilled
    | ProgramPaused
    | ProgramResumed
    | ProgramStarted
    | ClientDown
    | ClientStarted
    | ClientPaused
    | ClientResumed
)
"""Every kind of event; msgspec decodes a record of one into its type."""

EVENT_TYPES: Final[tuple[type[TaggedEvent], ...]] = get_args(AnyEvent)
KINDS: Final = tuple(str(each.__struct_config__.tag) for each in EVENT_TYPES)
"""The names of all kinds, in the order of AnyEvent: `broker_started`, `broker_down`, ..."""


def kind(event_type: type[TaggedEvent]) -> str:
    """The name of the kind of a type of event."""
    return str(event_type.__struct_config__.tag)


__all__ = [
    "EVENT_TYPES",
    "KINDS",
    "AclsApplied",
    "AclsChanged",
    "AnyEvent",
    "AuthenticationFailed",
    "AuthorizationDenied",
    "BecameFollower",
    "BecameLeader",
    "BrokerDown",
    "BrokerFenced",
    "BrokerPaused",
    "BrokerReaddressed",
    "BrokerRegistered",
    "BrokerResumed",
    "BrokerStarted",
    "BrokerUnfenced",
    "CertificateReplaced",
    "ClientDown",
    "ClientPaused",
    "ClientResumed",
    "ClientStarted",
    "ClientThrottled",
    "ConfigChanged",
    "ControlledShutdown",
    "ControllerDown",
    "ControllerElected",
    "CredentialsApplied",
    "DeadLettersDropped",
    "DeadLettersWritten",
    "DiskFull",
    "DiskReplaced",
    "FeatureChanged",
    "GroupAssigned",
    "GroupDeleted",
    "GroupMemberExpired",
    "GroupMemberJoined",
    "GroupMemberLeft",
    "GroupRebalanced",
    "IsrExpanded",
    "IsrShrunk",
    "LeaderElected",
    "LinkCut",
    "LinkHealed",
    "LinkReset",
    "LogTruncated",
    "MembersEvicted",
    "NetworkCut",
    "NetworkHealed",
    "NetworkShaped",
    "NodeRuleAdded",
    "NodeRuleHit",
    "OffsetsReset",
    "PartitionOffline",
    "PartitionsAdded",
    "ProgramKilled",
    "ProgramPaused",
    "ProgramResumed",
    "ProgramStarted",
    "ReassignmentCancelled",
    "ReassignmentCompleted",
    "ReassignmentStarted",
    "RebalanceRequested",
    "RecordsDeleted",
    "RecordsLost",
    "RegistrationRefused",
    "RuleAdded",
    "RuleHit",
    "RuleRemoved",
    "SessionsEnded",
    "ShareLocksExpired",
    "SharePartitionLoaded",
    "StepSkipped",
    "TlsHandshakeFailed",
    "TokensExpired",
    "TopicCreated",
    "TopicDeleted",
    "TransactionCompleted",
    "TransactionEnded",
    "kind",
]  # fmt: skip
