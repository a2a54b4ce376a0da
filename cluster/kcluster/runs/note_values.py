"""The form of an event on pages: its lane, its mood and its words, as values for JSON.

Owns: the lane that shows an event, and the event's colour.  Never: makes a sentence (events/words/
does), draws, knows the place of a lane.  Kafka: no counterpart.

Lanes: `actions` has faults and the acts of administrators, `control` the controller and groups,
`b<id>` a broker, `p:<topic>-<n>` a partition.  An event without a lane is shown by another one: a
link that is cut with others by the event of all of them, the start of a cluster by the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kcluster.contract import CONTROLLER_ID, Event
from kcluster.events.brokers import (
    BrokerDown,
    BrokerEvent,
    BrokerFenced,
    BrokerPaused,
    BrokerResumed,
    BrokerStarted,
    BrokerUnfenced,
    ControllerDown,
    ControllerElected,
    DiskFull,
    DiskReplaced,
    RecordsLost,
)
from kcluster.events.network import (
    LinkCut,
    LinkHealed,
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
    IsrExpanded,
    IsrShrunk,
    LeaderElected,
    LogTruncated,
    PartitionEvent,
    PartitionOffline,
    ReassignmentStarted,
)
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
    TopicCreated,
    TopicDeleted,
)
from kcluster.events.words import short_text, text_after_subject, text_of
from kcluster.json_types import JsonObject
from kcluster.runs.record import NoteRow

OUTSIDE: Final = -1
"""The node id in the notes of faults and other actions from outside the cluster."""
ACTIONS: Final = "actions"
CONTROL: Final = "control"
NO_LANE: Final = ""
_BY_ADMINISTRATORS: Final = (
    TopicCreated, TopicDeleted, PartitionsAdded, ConfigChanged, FeatureChanged, ReassignmentStarted,
    AclsChanged,
)  # fmt: skip
_REFUSALS: Final = (AuthenticationFailed, AuthorizationDenied, TlsHandshakeFailed)
_OF_NODES: Final = (*_REFUSALS, AclsApplied, CredentialsApplied)
"""Events of security that happen at the node which notes them."""
_HARMS: Final = (
    BrokerDown, BrokerPaused, BrokerFenced, DiskFull, DiskReplaced, ControllerDown, NetworkCut,
    LinkCut, NetworkShaped, RuleAdded, RecordsLost, PartitionOffline, LogTruncated, IsrShrunk,
    RuleHit, NodeRuleAdded, NodeRuleHit, *_REFUSALS,
)  # fmt: skip
_REPAIRS: Final = (
    BrokerStarted, BrokerResumed, BrokerUnfenced, NetworkHealed, LinkHealed, RuleRemoved,
    IsrExpanded, ControllerElected,
)  # fmt: skip


def notes_values(notes: Sequence[NoteRow], began_ms: int = 0) -> list[JsonObject]:
    """`note_values` of each event, in order; links that are cut or healed together have no lane."""
    sets = sets_among(notes)
    found = [note_values(note, began_ms) for note in notes]
    for note, values in zip(notes, found, strict=True):
        if isinstance(note.event, LinkCut | LinkHealed) and note.at_ms in sets:
            values["lane"] = NO_LANE
    return found


def sets_among(notes: Iterable[NoteRow]) -> set[int]:
    """The times at which a set of links was cut or healed."""
    return {note.at_ms for note in notes if isinstance(note.event, NetworkCut | NetworkHealed)}


def note_values(note: NoteRow, began_ms: int = 0) -> JsonObject:
    """An event as a page shows it: `id`, `at_ms`, `kind`, `lane`, `subject`, `text` (that follows
    the subject), `cause`, `mood` (bad, good, plain), `short` (for an action, else ""), `sentence`
    (for a line that names the subject elsewhere) and `event`, its fields.  `began_ms`: the
    beginning of the run; earlier events are its start, not actions."""
    event, lane = note.event, lane_of(note, began_ms)
    return {
        "id": note.id,
        "at_ms": note.at_ms,
        "kind": event.kind,
        "lane": lane,
        "subject": event.subject,
        "text": text_after_subject(event),
        "cause": note.cause,
        "mood": mood_of(event),
        "short": short_text(event) if lane == ACTIONS else "",
        "sentence": text_of(event),
        "event": msgspec.to_builtins(event),
    }


def lane_of(note: NoteRow, began_ms: int) -> str:
    """The lane of an event; a link is taken to be cut or healed alone."""
    event = note.event
    if isinstance(event, LinkCut | LinkHealed):
        return ACTIONS
    if isinstance(event, PartitionEvent) and not isinstance(event, ReassignmentStarted):
        return f"p:{event.topic}-{event.partition}"
    began = note.at_ms <= began_ms
    if note.id[0] == OUTSIDE and not isinstance(event, RuleHit | NodeRuleHit):
        return NO_LANE if began and isinstance(event, BrokerStarted) else ACTIONS
    if isinstance(event, _BY_ADMINISTRATORS):
        return CONTROL if began or event.is_internal else ACTIONS
    if isinstance(event, _OF_NODES) and note.id[0] != CONTROLLER_ID:
        return f"b{note.id[0]}"
    return f"b{event.broker}" if isinstance(event, BrokerEvent) else CONTROL


def mood_of(event: Event) -> str:
    """The colour of an event on the page: `bad`, `good` or `plain`."""
    match event:
        case NetworkShaped(undone=True, remaining=()):
            return "good"
        case LeaderElected(clean=False):
            return "bad"
    return (
        "bad" if isinstance(event, _HARMS) else "good" if isinstance(event, _REPAIRS) else "plain"
    )
