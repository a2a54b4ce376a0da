"""The words for events: the one place where a fact becomes a sentence.

Owns: what every kind of event is called on a terminal, on a page and in a verdict.  Never: decides
anything, and nobody decides by what it returns (tests/test_tidy.py): facts are read from fields.

`text_of`: the change and its reason, on a line that names its subject before.
`sentence_of`: the same, where the subject has not been named.
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
    GroupMemberExpired,
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
from kcluster.events.topics import (
    ConfigChanged,
    FeatureChanged,
    PartitionsAdded,
    ResourceType,
    TopicCreated,
    TopicDeleted,
)

_BY_OPERATOR: Final = "requested by the operator"
_DEATHS: Final = {
    DeathKind.CLEAN: "process ended after a controlled shutdown",
    DeathKind.KILL: "process killed; its disk keeps what was written",
    DeathKind.POWER: "power lost; unflushed writes are gone",
    DeathKind.WIPE: "process killed and its disk wiped",
}
_FENCINGS: Final = {
    Fencing.REQUESTED: "fenced: it asked to be fenced",
    Fencing.SHUTDOWN_COMPLETE: "fenced: controlled shutdown is complete",
    Fencing.UNREGISTERED: "unregistered",
}
_ELECTIONS: Final = {
    ElectionKind.PREFERRED: "the preferred leader",
    ElectionKind.IN_SYNC: "first active replica in the ISR",
    ElectionKind.ELIGIBLE: "first active eligible leader replica (ELR), as the ISR is empty",
    ElectionKind.LAST_KNOWN_LEADER: "the last known leader, as ISR and ELR are empty",
    ElectionKind.UNCLEAN: "first active replica, out of sync (unclean)",
}
_PERIODIC: Final = {
    "preferred": "the periodic check found that the preferred leader is in sync again",
    "unclean": (
        "the periodic check found a leaderless partition of a topic with unclean elections"
    ),
}


@singledispatch
def text_of(event: Event) -> str:
    """What happened and why, in one line, as a person would say it."""
    raise TypeError(f"no words for {type(event).__name__}")


def sentence_of(event: Event) -> str:
    """The same, with the subject before it unless the text names it."""
    text = text_of(event)
    return text if isinstance(event, _NAMES_ITS_SUBJECT) else f"{event.subject}: {text}"


_NAMES_ITS_SUBJECT: Final = (
    BrokerRegistered, BrokerFenced, BrokerUnfenced, ControlledShutdown, BecameLeader,
    BecameFollower, LogTruncated, ControllerElected, TopicCreated, TopicDeleted, PartitionsAdded,
    ConfigChanged, FeatureChanged, TelemetryPushed,
)  # fmt: skip


def is_said_by(event: Event, cause: Event) -> bool:
    """Whether the text of `event` gives the whole of its cause already."""
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
            return f"broker {broker} {_registered(reason.previous_epoch, reason.clean)}"
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


def _registered(previous_epoch: int | None, clean: bool) -> str:
    if previous_epoch is None:
        return "first registration"
    how = "stopped cleanly at" if clean else "restarted uncleanly after"
    return f"{how} epoch {previous_epoch}"


def _brokers(ids: tuple[int, ...]) -> str:
    return f"broker {', '.join(map(str, ids))}"


def _leader(broker: int) -> str:
    return "none" if broker < 0 else str(broker)


# ---------------------------------------------------------------------- brokers, controller


@text_of.register
def _(event: BrokerStarted) -> str:
    return "process started again" if event.restarted else "process started"


@text_of.register
def _(event: BrokerDown) -> str:
    return f"process ended by a bug, at {event.bug}" if event.bug else _DEATHS[event.how]


@text_of.register
def _(event: BrokerReaddressed) -> str:
    return f"will listen on {event.host}:{event.port}"


@text_of.register
def _(_event: DiskFull) -> str:
    return "no space left in its only log directory: the broker halts"


@text_of.register
def _(_event: BrokerPaused) -> str:
    return "process paused"


@text_of.register
def _(_event: BrokerResumed) -> str:
    return "process resumed"


@text_of.register
def _(event: BrokerRegistered) -> str:
    return f"broker {event.broker} registered: {_registered(event.previous_epoch, event.clean)}"


@text_of.register
def _(event: BrokerFenced) -> str:
    return _fenced(event.broker, event.fencing, event.silent_ms)


@text_of.register
def _(event: BrokerUnfenced) -> str:
    return (
        f"broker {event.broker} unfenced: it has applied its registration"
        f" (metadata offset {event.registration_offset})"
    )


@text_of.register
def _(event: ControlledShutdown) -> str:
    if event.leaders_to_move is None:
        return f"broker {event.broker} asks to shut down"
    return f"broker {event.broker} asked to shut down: {event.leaders_to_move} leader(s) move away"


@text_of.register
def _(event: RecordsLost) -> str:
    return f"{event.records} records were not flushed and are gone, over all its logs"


@text_of.register
def _(_event: ControllerDown) -> str:
    return "the active controller's process ended"


@text_of.register
def _(event: ControllerElected) -> str:
    return f"controller {event.leader} is active in epoch {event.epoch}"


# --------------------------------------------------------------------------- topics, configs


@text_of.register
def _(event: TopicCreated) -> str:
    return (
        f"topic {event.topic} created: {event.partition_count} partition(s),"
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
        nobody = f"no member of the ISR {list(event.isr)} is active"
    elif event.elr:
        nobody = f"the ISR is empty, no member of the ELR {list(event.elr)} is active"
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
    instead = ", instead of the reassignment under way" if event.replaced else ""
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
        f" broker {event.leader} does in epoch {event.leader_epoch}"
    )


@text_of.register
def _(event: LogTruncated) -> str:
    below = ", below its high watermark" if event.is_below_high_watermark else ""
    leader = f"the leader, broker {event.leader},"
    end = (
        f"ends at offset {event.leader_end_offset}"
        if event.diverging_epoch is None
        else f"ends epoch {event.diverging_epoch} at offset {event.leader_end_offset}"
    )
    return (
        f"broker {event.broker} drops offsets {event.to_offset} to {event.from_offset - 1} of"
        f" {event.subject}{below}: {leader} {end}"
    )


# --------------------------------------------------------------------------- clients, groups


@text_of.register
def _(event: ClientThrottled) -> str:
    return (
        f"{entity_text(event.entity)}: {event.quota} is {event.rate:.6g}, over {event.limit:.6g}:"
        f" throttled for {event.throttle_ms} ms"
    )


def entity_text(entity: Iterable[tuple[str, str | None]]) -> str:
    """Whose a quota is: `user alice, client-id (default)`."""
    pairs = list(entity)
    shown = (f"{kind} {'(default)' if name is None else name}" for kind, name in reversed(pairs))
    return ", ".join(shown) or "nobody"


@text_of.register
def _(event: TelemetryPushed) -> str:
    return (
        f"client {event.subject} pushed {event.size_bytes} bytes of metrics"
        f" (push {event.pushes}, {event.total_bytes} bytes in all)"
    )


@text_of.register
def _(event: GroupRebalanced) -> str:
    count = len(event.members)
    members = "empty" if not count else "1 member" if count == 1 else f"{count} members"
    return f"generation {event.generation}: {members}; {event.trigger}"


@text_of.register
def _(event: GroupMemberExpired) -> str:
    return f"member {event.member} sent no heartbeat for {event.session_timeout_ms} ms"


# --------------------------------------------------------------------------- network, faults


@text_of.register
def _(_event: LinkCut) -> str:
    return "cut: messages are lost"


@text_of.register
def _(_event: LinkHealed) -> str:
    return "healed"


@text_of.register
def _(_event: LinkReset) -> str:
    return "a message was lost for good: the connection is reset, by timeout"


@text_of.register
def _(event: NetworkCut) -> str:
    nodes, others = node_names(event.nodes, event.clients), node_names(event.others, event.clients)
    ways = f"from {nodes} to {others}" if event.one_way else f"between {nodes} and {others}"
    return f"no messages pass {ways}; {_sides(event)}"


@text_of.register
def _(event: NetworkHealed) -> str:
    count = "1 link" if len(event.links) == 1 else f"{len(event.links)} links"
    return f"{count} healed; {_sides(event)}"


def _sides(event: NetworkCut | NetworkHealed) -> str:
    """`sides: {1} | {2, 3, controller}`."""
    clients = event.clients
    sides = " | ".join(node_names(side, clients) for side in event.sides)
    joined = f", joined by {node_names(event.joint, clients)}" if event.joint else ""
    reached = f", all reached by {node_names(event.astride, clients)}" if event.astride else ""
    return f"sides: {sides}{joined}{reached}"


@text_of.register
def _(event: NetworkShaped) -> str:
    if event.undone:
        return shape_text(event)
    nodes, others = node_names(event.nodes, event.clients), node_names(event.others, event.clients)
    return f"{nodes} {'to' if event.one_way else 'and'} {others}: {shape_text(event)}"


def shape_text(event: NetworkShaped) -> str:
    """What was added to links, or that it was taken away."""
    if event.undone:
        other = ", but for what else was done to them" if event.remaining else ""
        return f"links restored{other}"
    if event.of_disk:
        return f"disk takes {event.latency_us / 1000:g} ms a write"
    return impairment_text(
        event.latency_us, event.jitter_us, event.distribution, event.loss, event.bytes_per_s
    )


def impairment_text(
    latency_us: int, jitter_us: int, distribution: str, loss: float, bytes_per_s: int
) -> str:
    """What a link does to messages: `latency 30 ms, jitter 10 ms normal, 5% lost`."""
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
        words.append(f"of {event.topic}-{','.join(map(str, event.partitions)) or '*'}")
    if event.client != "*":
        words.append(f"by {event.client}")
    if event.brokers:
        words.append(f"at broker {', '.join(map(str, event.brokers))}")
    return f"{' '.join(words)}: {event.effect}"


@text_of.register
def _(event: RuleHit) -> str:
    last = "; further hits are only counted" if event.is_last_noted else ""
    client = event.client_id or "a client"
    return f"{event.api} of {client} at broker {event.broker}: {event.effect}{last}"


@text_of.register
def _(event: RuleRemoved) -> str:
    return f"removed; it applied to {event.hits} of the {event.calls} requests that it fitted"


# ------------------------------------------------------------------------------- a few words

_STATES_AFTER: Final = {
    DeathKind.CLEAN: "stopped", DeathKind.KILL: "killed", DeathKind.POWER: "lost power",
    DeathKind.WIPE: "wiped",
}  # fmt: skip
_SHORT: Final[dict[type[Event], str]] = {
    BrokerStarted: "{} started", BrokerPaused: "{} paused", BrokerResumed: "{} resumed",
    DiskFull: "{}: disk full", BrokerReaddressed: "{} moved", RecordsLost: "{} lost records",
    ControllerDown: "{} down", NetworkHealed: "{} healed", RuleRemoved: "{} removed",
    TopicCreated: "{} created", TopicDeleted: "{} deleted", PartitionsAdded: "{} grew",
    ConfigChanged: "{} configured", ReassignmentStarted: "{} reassigned",
}  # fmt: skip


def short_text(event: Event) -> str:
    """What was done, in two or three words: `broker 1 killed`."""
    match event:
        case BrokerDown(how=how):
            return f"{event.subject} {state_after(how)}"
        case NetworkCut(nodes=nodes):
            return f"{counted_nodes(nodes)} cut off"
        case NetworkShaped():
            return shape_text(event)
        case RuleAdded(effect=effect):
            return f"{event.subject}: {effect}"
    words = _SHORT.get(type(event))
    return words.format(event.subject) if words else f"{event.subject} {_spaced(event)}"


def _spaced(event: Event) -> str:
    return event.kind.replace("_", " ")


def state_after(how: DeathKind) -> str:
    """How a broker's process ended, in a word or two: `killed`."""
    return _STATES_AFTER[how]


def counted_nodes(nodes: Iterable[int]) -> str:
    """`broker 1, controller, 2 clients`: nodes of the network for people."""
    chosen = sorted(nodes)
    count = sum(node > CONTROLLER_ID for node in chosen)
    words = [f"broker {node}" for node in chosen if node < CONTROLLER_ID]
    words += ["controller"] if CONTROLLER_ID in chosen else []
    words += [f"{count} client{'s' if count > 1 else ''}"] if count else []
    return ", ".join(words)
