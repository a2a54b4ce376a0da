"""The words for events: the one place where a fact becomes a sentence.

Owns: the text of every kind of event, for terminals, pages and verdicts.  Never: decides anything.
No code may decide by what it returns (tests/test_tidy.py): facts are read from fields.
Kafka: the messages of its logs, e.g. state.change.logger.

`text_of`: the change and its reason, for a line that already names the subject.
`text_after_subject`: the same, without naming the subject again.
`sentence_of`: the same, for a line that does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch
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
    RecordsLost,
)
from kcluster.events.clients import (
    ClientThrottled,
    Departure,
    GroupAssigned,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
    GroupRebalanced,
    TelemetryPushed,
)
from kcluster.events.network import (
    ANY_CLIENT,
    LinkCut,
    LinkHealed,
    LinkReset,
    NetworkCut,
    NetworkHealed,
    NetworkShaped,
    RuleAdded,
    RuleHit,
    RuleRemoved,
)
from kcluster.events.partitions import (
    BecameFollower,
    BecameLeader,
    IsrChange,
    LeaderElected,
    LogTruncated,
    PartitionOffline,
    ReassignmentCancelled,
    ReassignmentCompleted,
    ReassignmentStarted,
)
from kcluster.events.reasons import (
    AnyReason,
    CaughtUp,
    ConfigUpdated,
    ElectionKind,
    Fenced,
    Fencing,
    OutOfSync,
    PeriodicCheck,
    ReassignmentDone,
    ReassignmentReverted,
    Recovered,
    Requested,
    Restarted,
    ShuttingDown,
    Unfenced,
)
from kcluster.events.rebalance_reasons import (
    AnyRebalanceReason,
    AssignmentNotStored,
    GroupOverCapacity,
    HeartbeatExpired,
    LeaderRejoined,
    MemberAdded,
    MembersLeft,
    MetadataUpdated,
    PendingSyncExpired,
    ProtocolChanged,
)
from kcluster.events.rule_effects import (
    AnswerError,
    AnyEffect,
    Close,
    Delay,
    Drop,
    Reorder,
    StaleMetadata,
    ThrottleClient,
)
from kcluster.events.share_groups import ShareLocksExpired, SharePartitionLoaded
from kcluster.events.topics import (
    ConfigChanged,
    FeatureChanged,
    PartitionsAdded,
    ResourceType,
    TopicCreated,
    TopicDeleted,
)
from kcluster.events.transactions import AbortReason, TransactionCompleted, TransactionEnded

_BY_OPERATOR: Final = "requested by the operator"
_DEATHS: Final = {
    DeathKind.CLEAN: "process stopped after a controlled shutdown",
    DeathKind.KILL: "process killed; written data survives",
    DeathKind.POWER: "power lost; unflushed writes are lost",
    DeathKind.WIPE: "process killed; disk wiped",
}
_FENCINGS: Final = {
    Fencing.REQUESTED: "fenced at its own request",
    Fencing.SHUTDOWN_COMPLETE: "fenced: controlled shutdown complete",
    Fencing.UNREGISTERED: "unregistered",
}
_ELECTIONS: Final = {
    ElectionKind.PREFERRED: "the preferred leader",
    ElectionKind.IN_SYNC: "first active replica in the ISR",
    ElectionKind.ELIGIBLE: "ISR empty, first active replica in the ELR",
    ElectionKind.LAST_KNOWN_LEADER: "ISR and ELR empty, last known leader",
    ElectionKind.UNCLEAN: "first active replica, out of sync (unclean)",
}
_PERIODIC: Final = {
    "preferred": "periodic check: the preferred leader is in sync again",
    "unclean": "periodic check: no leader, and the topic allows unclean elections",
}


@singledispatch
def text_of(event: Event) -> str:
    """What happened and why, in one line."""
    raise TypeError(f"no words for {type(event).__name__}")


def sentence_of(event: Event) -> str:
    """As `text_of`, preceded by the subject unless the text names it."""
    text = text_of(event)
    return text if isinstance(event, _NAMES_ITS_SUBJECT) else f"{event.subject}: {text}"


def text_after_subject(event: Event) -> str:
    """As `text_of`, for a line in which the subject stands just before it: not named again."""
    text, subject = text_of(event), event.subject
    for beginning in (f"{subject} ", f"topic {subject} ", f"topic {subject}: "):
        if text.startswith(beginning):
            return text.removeprefix(beginning)
    if isinstance(event, LogTruncated):
        return text.replace(f" of {subject}", "", 1)
    return text


_NAMES_ITS_SUBJECT: Final = (
    BrokerRegistered, BrokerFenced, BrokerUnfenced, ControlledShutdown, BecameLeader,
    BecameFollower, LogTruncated, ControllerElected, TopicCreated, TopicDeleted, PartitionsAdded,
    ConfigChanged, FeatureChanged, TelemetryPushed,
)  # fmt: skip


def is_said_by(event: Event, cause: Event) -> bool:
    """Whether the text of `event` already contains its whole cause."""
    if not isinstance(cause, BrokerFenced):
        return False
    reason: AnyReason | None = getattr(event, "reason", None)
    return isinstance(reason, Fenced) and reason.broker == cause.broker


# ----------------------------------------------------------------------------------- reasons


def reason_text(reason: AnyReason) -> str:
    """Why the controller changed a partition."""
    match reason:
        case Fenced(broker=broker, fencing=fencing, silent_ms=silent_ms):
            return _fenced(broker, fencing, silent_ms)
        case Unfenced(broker=broker):
            return f"broker {broker} unfenced"
        case Restarted(broker=broker):
            return _registered(broker, reason.previous_epoch, reason.clean)
        case ShuttingDown(broker=broker):
            return f"controlled shutdown of broker {broker}"
        case OutOfSync(leader=leader, brokers=brokers):
            return f"leader {leader} reports {_brokers(brokers)} out of sync"
        case CaughtUp(leader=leader, brokers=brokers):
            return f"leader {leader} reports {_brokers(brokers)} caught up"
        case Recovered(leader=leader):
            return f"leader {leader} has recovered"
        case Requested(election=election):
            return f"{election} election {_BY_OPERATOR}" if election else _BY_OPERATOR
        case PeriodicCheck(election=election):
            return _PERIODIC[election]
        case ConfigUpdated(config=config):
            return f"{config} changed"
        case ReassignmentDone():
            return "the reassignment is complete"
        case ReassignmentReverted():
            return "the reassignment was cancelled"


def _fenced(broker: int, fencing: Fencing, silent_ms: int) -> str:
    if fencing is Fencing.SESSION_EXPIRED:
        return f"broker {broker} fenced: no heartbeat for {silent_ms} ms"
    return f"broker {broker} {_FENCINGS[fencing]}"


def _registered(broker: int, previous_epoch: int | None, clean: bool) -> str:
    if previous_epoch is None:
        return f"broker {broker} registered for the first time"
    restart = "a clean" if clean else "an unclean"
    return f"broker {broker} registered after {restart} restart (previous epoch {previous_epoch})"


def _brokers(ids: tuple[int, ...]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def _counted(count: int, noun: str) -> str:
    """`1 link`, `4 links`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _leader(broker: int) -> str:
    return "none" if broker < 0 else str(broker)


# ---------------------------------------------------------------------- brokers, controller


@text_of.register
def _(event: BrokerStarted) -> str:
    return "process restarted" if event.restarted else "process started"


@text_of.register
def _(event: BrokerDown) -> str:
    return (
        f"process crashed on a simulator bug while handling {event.bug}"
        if event.bug
        else _DEATHS[event.how]
    )


@text_of.register
def _(event: BrokerReaddressed) -> str:
    return f"will listen on {event.host}:{event.port} from its next start"


@text_of.register
def _(_event: DiskFull) -> str:
    return "no space left in its only log directory; the broker halts"


@text_of.register
def _(_event: BrokerPaused) -> str:
    return "process paused"


@text_of.register
def _(_event: BrokerResumed) -> str:
    return "process resumed"


@text_of.register
def _(event: BrokerRegistered) -> str:
    return _registered(event.broker, event.previous_epoch, event.clean)


@text_of.register
def _(event: BrokerFenced) -> str:
    return _fenced(event.broker, event.fencing, event.silent_ms)


@text_of.register
def _(event: BrokerUnfenced) -> str:
    return (
        f"broker {event.broker} unfenced: caught up to its registration"
        f" at metadata offset {event.registration_offset}"
    )


@text_of.register
def _(event: ControlledShutdown) -> str:
    if event.leaders_to_move is None:
        return f"broker {event.broker} requests a controlled shutdown"
    leaders = _counted(event.leaders_to_move, "leader")
    return f"broker {event.broker} has {leaders} to move before it stops"


@text_of.register
def _(event: RecordsLost) -> str:
    return f"{_counted(event.records, 'unflushed record')} lost across all its logs"


@text_of.register
def _(_event: ControllerDown) -> str:
    return "the active controller's process ended"


@text_of.register
def _(event: ControllerElected) -> str:
    return f"controller {event.leader} became active, epoch {event.epoch}"


# --------------------------------------------------------------------------- topics, configs


@text_of.register
def _(event: TopicCreated) -> str:
    return (
        f"topic {event.topic} created: {_counted(event.partition_count, 'partition')},"
        f" replication factor {event.replication_factor}"
    )


@text_of.register
def _(event: TopicDeleted) -> str:
    return f"topic {event.topic} deleted"


@text_of.register
def _(event: PartitionsAdded) -> str:
    return f"topic {event.topic}: {event.old_partition_count} -> {event.partition_count} partitions"


@text_of.register
def _(event: ConfigChanged) -> str:
    shown = ", ".join(
        f"{config} removed" if value is None else f"{config}={value}"
        for config, value in event.configs.items()
    )
    of = "quotas of " if event.resource_type is ResourceType.QUOTA else ""
    return f"{of}{event.subject}: {shown}"


@text_of.register
def _(event: FeatureChanged) -> str:
    return f"{event.feature} changed from level {event.old_level} to {event.new_level}"


# -------------------------------------------------------------------------------- partitions


@text_of.register
def _(event: LeaderElected) -> str:
    unclean = "" if event.clean else ", UNCLEAN"
    return (
        f"leader {_leader(event.old_leader)} -> {event.new_leader}, epoch {event.leader_epoch}"
        f"{unclean}: {election_text(event)}"
    )


def election_text(event: LeaderElected) -> str:
    """Why there was an election, and why this leader."""
    choice = _ELECTIONS.get(event.election)
    return reason_text(event.reason) + (f"; {choice}" if choice else "")


@text_of.register
def _(event: PartitionOffline) -> str:
    if event.isr:
        nobody = f"no replica in the ISR {list(event.isr)} is active"
    elif event.elr:
        nobody = f"the ISR is empty and no replica in the ELR {list(event.elr)} is active"
    else:
        nobody = "ISR and ELR are empty"
    return f"leader {_leader(event.old_leader)} -> none: {reason_text(event.reason)}; {nobody}"


@text_of.register
def _(event: IsrChange) -> str:
    elr = f", ELR {list(event.elr)}" if event.elr else ""
    change = f"ISR {list(event.old_isr)} -> {list(event.isr)}{elr}"
    return f"{change}: {reason_text(event.reason)}"


@text_of.register
def _(event: ReassignmentStarted) -> str:
    instead = ", replacing the reassignment in progress" if event.replaced else ""
    moved = f"replicas {list(event.old_replicas)} -> {list(event.replicas)}"
    return f"{moved}: {_BY_OPERATOR}{instead}"


@text_of.register
def _(event: ReassignmentCompleted) -> str:
    moved = f"replicas {list(event.old_replicas)} -> {list(event.replicas)}"
    return f"{moved}: {reason_text(event.reason)}"


@text_of.register
def _(event: ReassignmentCancelled) -> str:
    moved = f"replicas {list(event.old_replicas)} -> {list(event.replicas)}"
    return f"{moved}: {_BY_OPERATOR}"


@text_of.register
def _(event: BecameLeader) -> str:
    return (
        f"broker {event.broker} leads {event.subject} in epoch {event.leader_epoch}"
        f" from offset {event.start_offset}"
    )


@text_of.register
def _(event: BecameFollower) -> str:
    return (
        f"broker {event.broker} no longer leads {event.subject}:"
        f" broker {event.leader} leads in epoch {event.leader_epoch}"
    )


@text_of.register
def _(event: LogTruncated) -> str:
    below = ", below its high watermark" if event.is_below_high_watermark else ""
    end = (
        f"the log of leader {event.leader} ends at offset {event.leader_end_offset}"
        if event.diverging_epoch is None
        else f"epoch {event.diverging_epoch} ends at offset {event.leader_end_offset}"
        f" on leader {event.leader}"
    )
    return (
        f"broker {event.broker} drops offsets {event.to_offset} to {event.from_offset - 1} of"
        f" {event.subject}{below}: {end}"
    )


# --------------------------------------------------------------------------- clients, groups


@text_of.register
def _(event: ClientThrottled) -> str:
    return (
        f"{entity_text(event.entity)}: {event.quota} {event.rate:.6g} exceeds {event.limit:.6g};"
        f" throttled for {event.throttle_ms} ms"
    )


def entity_text(entity: Iterable[tuple[str, str | None]]) -> str:
    """The entity that a quota limits: `user alice, client-id (default)`."""
    pairs = list(entity)
    shown = (f"{kind} {'(default)' if name is None else name}" for kind, name in reversed(pairs))
    return ", ".join(shown) or "nobody"


@text_of.register
def _(event: TelemetryPushed) -> str:
    return (
        f"client {event.subject} pushed {event.size_bytes} bytes of metrics"
        f" (push {event.pushes}, {event.total_bytes} bytes in total)"
    )


@text_of.register
def _(event: GroupRebalanced) -> str:
    members = _counted(len(event.members), "member") if event.members else "empty"
    return f"generation {event.generation}: {members}; {rebalance_text(event.trigger)}"


def rebalance_text(reason: AnyRebalanceReason) -> str:
    """Why a group rebalanced."""
    match reason:
        case MemberAdded(member=member, instance_id=None, client_reason=why):
            return f"new member {member} joined; {_client_reason(why)}"
        case MemberAdded(member=member, instance_id=instance_id, client_reason=why):
            return f"new static member {instance_id} joined as {member}; {_client_reason(why)}"
        case LeaderRejoined(member=member, client_reason=why):
            return f"leader {member} joined again; {_client_reason(why)}"
        case MetadataUpdated(member=member, instance_id=None, client_reason=why):
            return f"member {member} joined again with new metadata; {_client_reason(why)}"
        case MetadataUpdated(member=member, instance_id=instance_id, client_reason=why):
            return f"static member {instance_id} is back as {member}; {_client_reason(why)}"
        case ProtocolChanged(member=member, instance_id=instance_id, client_reason=why):
            back = f"static member {instance_id} is back as {member}"
            return f"{back} and changes the group's protocol; {_client_reason(why)}"
        case MembersLeft(leavers=leavers):
            return "; ".join(f"{x.member} left; {_client_reason(x.client_reason)}" for x in leavers)
        case HeartbeatExpired(member=member):
            return f"member {member} expired: no heartbeat for its session timeout"
        case PendingSyncExpired(members=members):
            return f"no SyncGroup came from {', '.join(members)}"
        case AssignmentNotStored(error=error):
            return f"the assignment was not stored: {error}"
        case GroupOverCapacity(size=size, max_size=max_size):
            return f"the loaded group has {size} members, group.max.size is {max_size}"


def _client_reason(text: str) -> str:
    return f"client reason: {text or 'not provided'}"


@text_of.register
def _(event: GroupMemberExpired) -> str:
    return f"member {event.member} sent no heartbeat for {event.session_timeout_ms} ms"


@text_of.register
def _(event: GroupMemberJoined) -> str:
    return f"member {member_name(event.member)} of client {event.client_id} joined"


@text_of.register
def _(event: GroupMemberLeft) -> str:
    return f"member {member_name(event.member)} {departure_text(event)}"


_DEPARTURES: Final = {
    Departure.NOT_JOINED: "removed: it sent no JoinGroup within the rebalance timeout",
    Departure.NOT_SYNCED: "removed: it sent no SyncGroup within the rebalance timeout",
    Departure.NOT_REVOKED: "removed: it did not revoke its partitions within the rebalance timeout",
    Departure.REPLACED: "removed: the same static member joined under another id",
}


def departure_text(event: GroupMemberLeft) -> str:
    """What a member did when it left, or why it was removed."""
    removed = _DEPARTURES.get(event.departure)
    if removed is not None:
        return removed
    return f"left ({event.client_reason})" if event.client_reason else "left"


def member_name(member_id: str) -> str:
    """A member's id, its UUID shortened to its first eight digits: `billing-9d6262f5`."""
    name, uuid = member_id[:-_UUID_CHARS], member_id[-_UUID_CHARS:]
    return f"{name}{uuid[:8]}" if uuid.count("-") == 4 else member_id


_UUID_CHARS: Final = 36


@text_of.register
def _(event: GroupAssigned) -> str:
    shown = "; ".join(
        f"{row.topic}-{','.join(map(str, row.partitions))} to {member_name(row.member)}"
        for row in event.assignments
    )
    return f"generation {event.generation}: {shown or 'no partitions assigned'}"


_ABORTED_BY = {
    AbortReason.PRODUCER: "by its producer",
    AbortReason.TIMEOUT: "its timeout has passed",
    AbortReason.NEW_PRODUCER: "a new producer has its transactional id",
}


@text_of.register
def _(event: TransactionEnded) -> str:
    who = f"producer {event.producer_id}, epoch {event.producer_epoch}"
    if event.abort_reason is None:
        return f"commit decided ({who})"
    return f"abort decided ({who}): {_ABORTED_BY[event.abort_reason]}"


@text_of.register
def _(event: TransactionCompleted) -> str:
    what = "committed" if event.committed else "aborted"
    return f"{what} in {_counted(event.marked_partitions, 'partition')}"


@text_of.register
def _(event: SharePartitionLoaded) -> str:
    in_flight = _counted(event.in_flight_records, "record")
    where = f"{event.topic}-{event.partition} from offset {event.start_offset}"
    return f"broker {event.broker} delivers {where}, {in_flight} in flight"


@text_of.register
def _(event: ShareLocksExpired) -> str:
    again = event.records - event.archived_records
    what = f"{_counted(event.records, 'record')} of {event.topic}-{event.partition}"
    fates = [f"{again} to be delivered again"] if again else []
    if event.archived_records:
        fates.append(f"{event.archived_records} archived after the last delivery allowed")
    return f"locks on {what} expired: {', '.join(fates)}"


# --------------------------------------------------------------------------- network, faults


@text_of.register
def _(_event: LinkCut) -> str:
    return "cut: messages are lost"


@text_of.register
def _(_event: LinkHealed) -> str:
    return "healed"


@text_of.register
def _(_event: LinkReset) -> str:
    return "a message was lost; the connection is reset when its sender times out"


@text_of.register
def _(event: NetworkCut) -> str:
    nodes, others = node_names(event.nodes, event.clients), node_names(event.others, event.clients)
    ways = f"from {nodes} to {others}" if event.one_way else f"between {nodes} and {others}"
    return f"no messages pass {ways}; {_sides(event)}"


@text_of.register
def _(event: NetworkHealed) -> str:
    return f"{_counted(len(event.links), 'link')} healed; {_sides(event)}"


def _sides(event: NetworkCut | NetworkHealed) -> str:
    """`sides: {1} | {2, 3, controller}`."""
    clients = event.clients
    sides = " | ".join(node_names(side, clients) for side in event.sides)
    bridged = f", bridged by {node_names(event.joint, clients)}" if event.joint else ""
    several = f"; on several sides: {node_names(event.astride, clients)}" if event.astride else ""
    return f"sides: {sides}{bridged}{several}"


@text_of.register
def _(event: NetworkShaped) -> str:
    if event.undone:
        return shape_text(event)
    nodes, others = node_names(event.nodes, event.clients), node_names(event.others, event.clients)
    if all(node in event.others for node in event.nodes):
        return f"all links {'from' if event.one_way else 'of'} {nodes}: {shape_text(event)}"
    return f"{nodes} {'to' if event.one_way else 'and'} {others}: {shape_text(event)}"


def shape_text(event: NetworkShaped) -> str:
    """The impairment that was added to links, or that it was removed."""
    if event.undone:
        other = ", except for other impairments" if event.remaining else ""
        return f"links restored{other}"
    if event.of_disk:
        return f"disk takes {event.latency_us / 1000:g} ms per write"
    return impairment_text(
        event.latency_us, event.jitter_us, event.distribution, event.loss, event.bytes_per_s
    )


def impairment_text(
    latency_us: int, jitter_us: int, distribution: str, loss: float, bytes_per_s: int
) -> str:
    """How a link impairs messages: `latency 30 ms, jitter 10 ms normal, 5% lost`."""
    words = []
    if latency_us or jitter_us:
        words.append(f"latency {latency_us / 1000:g} ms")
    if jitter_us:
        words.append(f"jitter {jitter_us / 1000:g} ms {distribution}")
    if loss:
        words.append(f"{loss * 100:g}% lost")
    if bytes_per_s:
        words.append(f"{bytes_per_s:,} bytes/s")
    return ", ".join(words)


def node_names(nodes: Iterable[int], clients: Mapping[int, str]) -> str:
    """`{1, 2, controller, client shop}`."""
    return "{" + ", ".join(_node(node, clients) for node in nodes) + "}"


def _node(node: int, clients: Mapping[int, str]) -> str:
    if node == CONTROLLER_ID:
        return "controller"
    name = clients.get(node)
    if name is None:
        return str(node)
    return "clients from outside" if name == ANY_CLIENT else f"client {name}"


@text_of.register
def _(event: RuleAdded) -> str:
    words = [" or ".join(event.apis) or "any request"]
    if event.topic is not None:
        words.append(f"for {event.topic}-{','.join(map(str, event.partitions)) or '*'}")
    if event.client != "*":
        words.append(f"from {event.client}")
    if event.brokers:
        words.append(f"to {_brokers(event.brokers)}")
    return f"{' '.join(words)}: {effect_text(event.effect)}"


@text_of.register
def _(event: RuleHit) -> str:
    last = "; further hits are counted but not logged" if event.is_last_noted else ""
    client = event.client_id or "a client"
    return f"{event.api} from {client} to broker {event.broker}: {effect_text(event.effect)}{last}"


def effect_text(effect: AnyEffect) -> str:
    """What a rule does to a request or to its reply."""
    match effect:
        case AnswerError(error=error, after=after):
            return f"answers {error}{' after serving the request' if after else ''}"
        case Delay(delay_ms=delay_ms, of=of, jitter_ms=jitter_ms):
            more = f" to {delay_ms + jitter_ms}" if jitter_ms else ""
            return f"delays the {of} by {delay_ms}{more} ms"
        case Drop(of=of, close=close):
            return f"drops the {of}{', closes the connection' if close else ''}"
        case Close(when=when):
            return f"closes the connection {when} the request is served"
        case ThrottleClient(throttle_ms=throttle_ms):
            return f"throttles for {throttle_ms} ms"
        case StaleMetadata():
            return "answers from old metadata"
        case Reorder(limit_ms=limit_ms):
            return f"lets another pass first, for {limit_ms} ms at most"


@text_of.register
def _(event: RuleRemoved) -> str:
    return f"removed; it applied to {event.hits} of {_counted(event.calls, 'matching request')}"


# ------------------------------------------------------------------------------- short texts

_STATES_AFTER: Final = {
    DeathKind.CLEAN: "stopped", DeathKind.KILL: "killed", DeathKind.POWER: "lost power",
    DeathKind.WIPE: "wiped",
}  # fmt: skip
_SHORT: Final[dict[type[Event], str]] = {
    BrokerStarted: "{} started", BrokerPaused: "{} paused", BrokerResumed: "{} resumed",
    DiskFull: "{}: disk full", BrokerReaddressed: "{} readdressed", RecordsLost: "{} lost records",
    ControllerDown: "{} down", NetworkHealed: "{} healed", RuleRemoved: "{} removed",
    TopicCreated: "{} created", TopicDeleted: "{} deleted", PartitionsAdded: "{} expanded",
    ConfigChanged: "{} configured", ReassignmentStarted: "{} reassigned",
}  # fmt: skip


def short_text(event: Event) -> str:
    """What was done to the cluster, in a few words: `broker 1 killed`."""
    match event:
        case BrokerDown(how=how):
            return f"{event.subject} {state_after(how)}"
        case NetworkCut(nodes=nodes):
            return f"{counted_nodes(nodes)} cut off"
        case NetworkShaped():
            return shape_text(event)
        case RuleAdded(effect=effect):
            return f"{event.subject}: {effect_text(effect)}"
    words = _SHORT.get(type(event))
    return words.format(event.subject) if words else f"{event.subject} {_spaced(event)}"


def _spaced(event: Event) -> str:
    return event.kind.replace("_", " ")


def state_after(how: DeathKind) -> str:
    """The state of a broker after its process ended: `killed`."""
    return _STATES_AFTER[how]


def counted_nodes(nodes: Iterable[int]) -> str:
    """Nodes of the network: `broker 1, controller, 2 clients`."""
    chosen = sorted(nodes)
    count = sum(node > CONTROLLER_ID for node in chosen)
    words = [f"broker {node}" for node in chosen if node < CONTROLLER_ID]
    words += ["controller"] if CONTROLLER_ID in chosen else []
    words += [f"{count} client{'s' if count > 1 else ''}"] if count else []
    return ", ".join(words)
