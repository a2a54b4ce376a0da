"""Lines made of the words: whole sentences, and short texts for actions on a cluster.

Owns: the choice whether a text names its subject, the short texts.  Never: decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kcluster.contract import CONTROLLER_ID, Event
from kcluster.deaths import DeathKind
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    BrokerReaddressed,
    BrokerRegistered,
    BrokerResumed,
    BrokerStarted,
    BrokerUnfenced,
    ControlledShutdown,
    ControllerDown,
    ControllerElected,
    DiskFull,
    DiskReplaced,
    RecordsLost,
)
from kcluster.events.clients import TelemetryPushed
from kcluster.events.network import (
    NetworkCut,
    NetworkHealed,
    NetworkShaped,
    NodeRuleAdded,
    RuleAdded,
    RuleRemoved,
)
from kcluster.events.partitions import (
    BecameFollower,
    BecameLeader,
    LogTruncated,
    ReassignmentStarted,
)
from kcluster.events.reasons import AnyReason, Fenced
from kcluster.events.security import (
    AclsApplied,
    AclsChanged,
    AuthenticationFailed,
    AuthorizationDenied,
    CredentialsApplied,
    TlsHandshakeFailed,
)
from kcluster.events.topics import (
    ConfigChanged,
    FeatureChanged,
    PartitionsAdded,
    ResourceType,
    TopicCreated,
    TopicDeleted,
)
from kcluster.events.words.base import text_of
from kcluster.events.words.network import effect_text, shape_text


def sentence_of(event: Event) -> str:
    """The text of an event, preceded by its subject unless the text names it."""
    text = text_of(event)
    return text if isinstance(event, _NAMES_ITS_SUBJECT) else f"{event.subject}: {text}"


def text_after_subject(event: Event) -> str:
    """The text of an event for a line that has just named the subject, which is not named again."""
    text, subject = text_of(event), event.subject
    for beginning in (f"{subject} ", f"{subject}: ", f"topic {subject} ", f"topic {subject}: "):
        if text.startswith(beginning):
            return text.removeprefix(beginning)
    if isinstance(event, LogTruncated):
        return text.replace(f" of {subject}", "", 1)
    return text


_NAMES_ITS_SUBJECT: Final = (
    BrokerRegistered, BrokerFenced, BrokerUnfenced, ControlledShutdown, BecameLeader,
    BecameFollower, LogTruncated, ControllerElected, TopicCreated, TopicDeleted, PartitionsAdded,
    ConfigChanged, FeatureChanged, TelemetryPushed, AclsApplied, AclsChanged, AuthenticationFailed,
    AuthorizationDenied, CredentialsApplied, TlsHandshakeFailed,
)  # fmt: skip


def is_said_by(event: Event, cause: Event) -> bool:
    """Whether the text of `event` already contains the whole text of its cause."""
    if not isinstance(cause, BrokerFenced):
        return False
    reason: AnyReason | None = getattr(event, "reason", None)
    return isinstance(reason, Fenced) and reason.broker == cause.broker


_STATES_AFTER: Final = {
    DeathKind.CLEAN: "stopped", DeathKind.KILL: "killed", DeathKind.POWER: "lost power",
    DeathKind.WIPE: "wiped",
}  # fmt: skip
_SHORT: Final[dict[type[Event], str]] = {
    BrokerStarted: "{} started", BrokerPaused: "{} paused", BrokerResumed: "{} resumed",
    DiskFull: "{}: disk full", DiskReplaced: "{}: disk replaced",
    BrokerReaddressed: "{} readdressed", RecordsLost: "{} lost records",
    ControllerDown: "{} down", NetworkHealed: "{} healed", RuleRemoved: "{} removed",
    TopicCreated: "{} created", TopicDeleted: "{} deleted", PartitionsAdded: "{} expanded",
    ConfigChanged: "{} configured", AclsChanged: "{} changed", ReassignmentStarted: "{} reassigned",
}  # fmt: skip


def short_text(event: Event) -> str:
    """An action on the cluster in a few words: `broker 1 killed`."""
    match event:
        case BrokerDown(how=how):
            return f"{event.subject} {_STATES_AFTER[how]}"
        case NetworkCut(nodes=nodes):
            return f"{counted_nodes(nodes)} cut off"
        case NetworkShaped():
            return shape_text(event)
        case ConfigChanged(resource_type=ResourceType.USER):
            return f"{event.subject}: password"
        case RuleAdded(effect=effect) | NodeRuleAdded(effect=effect):
            return f"{event.subject}: {effect_text(effect)}"
    words = _SHORT.get(type(event))
    return words.format(event.subject) if words else f"{event.subject} {_spaced(event)}"


def _spaced(event: Event) -> str:
    return event.kind.replace("_", " ")


def counted_nodes(nodes: Iterable[int]) -> str:
    """Nodes of the network in words: `broker 1, controller, 2 clients`."""
    chosen = sorted(nodes)
    count = sum(node > CONTROLLER_ID for node in chosen)
    words = [f"broker {node}" for node in chosen if node < CONTROLLER_ID]
    words += ["controller"] if CONTROLLER_ID in chosen else []
    words += [f"{count} client{'s' if count > 1 else ''}"] if count else []
    return ", ".join(words)
