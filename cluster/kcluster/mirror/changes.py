"""The events of changes in a real Kafka's metadata, with the reasons that follow from the records.

Owns: the choice of events and reasons for records that were committed together.  Never: applies a
record (metadata_state.py does), invents a reason: what the records do not show is `Unreported`.
Kafka: the log lines of ReplicationControlManager, ClusterControlManager and PartitionChangeBuilder.

What records show.  A fencing, the start of a controlled shutdown, or a registration, together with
changes of partitions in one batch, is the reason for them.  Without one, only a leader shrinks or
expands an ISR (AlterPartition).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.contract import Event
from kcluster.controller.partitions.reassigning import is_reassigning
from kcluster.events.base import TaggedEvent
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    BrokerRegistered,
    BrokerResumed,
    BrokerStarted,
    BrokerUnfenced,
    ControlledShutdown,
    ControllerDown,
    ControllerElected,
    DiskReplaced,
)
from kcluster.events.network import LinkCut, LinkHealed, NetworkCut, NetworkHealed, NetworkShaped
from kcluster.events.partitions import (
    IsrExpanded,
    IsrShrunk,
    LeaderElected,
    PartitionOffline,
    ReassignmentCancelled,
    ReassignmentCompleted,
    ReassignmentStarted,
)
from kcluster.events.reasons import (
    AnyReason,
    CaughtUp,
    ElectionKind,
    Fenced,
    Fencing,
    OutOfSync,
    ReassignmentDone,
    ReassignmentReverted,
    Recovered,
    Requested,
    Restarted,
    ShuttingDown,
    Unfenced,
    Unreported,
)
from kcluster.events.topics import (
    ConfigChanged,
    FeatureChanged,
    PartitionsAdded,
    ResourceType,
    TopicCreated,
    TopicDeleted,
)
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    NO_LEADER,
    TOPIC_RESOURCE,
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from kcluster.operations.names import PartitionName

_SEEN: Final[tuple[type[TaggedEvent], ...]] = (
    *(BrokerStarted, BrokerDown, BrokerPaused, BrokerResumed, ControllerDown, ControllerElected),
    DiskReplaced,
    *(BrokerRegistered, BrokerFenced, BrokerUnfenced, ControlledShutdown),
    *(LeaderElected, PartitionOffline, IsrShrunk, IsrExpanded),
    *(ReassignmentStarted, ReassignmentCompleted, ReassignmentCancelled),
    *(TopicCreated, TopicDeleted, PartitionsAdded, ConfigChanged, FeatureChanged),
    *(LinkCut, LinkHealed, NetworkCut, NetworkHealed, NetworkShaped),
)
SEEN_KINDS: Final = frozenset(str(event.__struct_config__.tag) for event in _SEEN)
"""The kinds of events that a real Kafka shows: its metadata, and what was done to it."""

MOVE: Final = "move"
"""The request by which a user chooses a leader; other requests are Kafka's: `preferred`,
`unclean`."""

_RESOURCES: Final = {
    TOPIC_RESOURCE: ResourceType.TOPIC,
    BROKER_RESOURCE: ResourceType.BROKER,
    CLIENT_METRICS_RESOURCE: ResourceType.CLIENT_METRICS,
    GROUP_RESOURCE: ResourceType.GROUP,
}
_UNCLEAN: Final = (ElectionKind.LAST_KNOWN_LEADER, ElectionKind.UNCLEAN)


class Applied(Struct, frozen=True):
    """A record that was applied.  `old`: what it replaced: a broker's or a partition's
    registration, a config's value, a feature's level; None if there was nothing.  `topic`: the name
    of the topic that was deleted, or of the partition's."""

    record: MetadataRecord
    old: BrokerRegistration | PartitionRegistration | str | int | None = None
    topic: str = ""


Caused = tuple[Event, Event | None]
"""An event with the event that caused it."""


class Circumstances(Struct):
    """What is known besides the records.  `requested`: the elections that a user has requested, by
    partition: `preferred`, `unclean` or MOVE.  `silent_since_ms`: the brokers whose processes are
    down or paused, which send no heartbeat; `shutting_down`: those asked to stop."""

    requested: dict[PartitionName, str] = {}
    silent_since_ms: dict[int, int] = {}
    shutting_down: tuple[int, ...] = ()


def events_of(applied: Sequence[Applied], known: Circumstances, at_ms: int) -> list[Caused]:
    """The events of records that were committed together at `at_ms`, causes first."""
    triggers = _Triggers(applied, known, at_ms)
    return [
        *((event, None) for event in triggers.events),
        *((event, None) for event in _of_topics(applied)),
        *((event, None) for event in _of_configs(applied)),
        *_of_partitions(applied, triggers, known.requested),
    ]


# --------------------------------------------------------------------------------------- brokers


class _Triggers:
    """The changes of brokers among records, which are the reasons for changes of partitions."""

    def __init__(self, applied: Sequence[Applied], known: Circumstances, at_ms: int) -> None:
        self._known = known
        self._at_ms = at_ms
        self.leaving: dict[int, tuple[AnyReason, Event]] = {}
        """Brokers that leave ISRs and leaderships, with the reason and its event."""
        self.joining: dict[int, tuple[AnyReason, Event]] = {}
        self.events: list[Event] = []
        for entry in applied:
            match entry.record:
                case RegisterBrokerRecord(registration=registration):
                    was = entry.old if isinstance(entry.old, BrokerRegistration) else None
                    self._registered(registration, was)
                case BrokerRegistrationChangeRecord() as record:
                    assert isinstance(entry.old, BrokerRegistration), entry
                    self._changed(record, entry.old, applied)
                case UnregisterBrokerRecord(broker_id=broker):
                    event = BrokerFenced(broker, Fencing.UNREGISTERED)
                    self._left(Fenced(broker, Fencing.UNREGISTERED), event)

    def _left(self, reason: Fenced | ShuttingDown | Restarted, event: Event) -> None:
        self.leaving[reason.broker] = (reason, event)
        self.events.append(event)

    def _registered(self, new: BrokerRegistration, old: BrokerRegistration | None) -> None:
        epoch = None if old is None else old.epoch
        is_clean = old is None or old.in_controlled_shutdown
        event = BrokerRegistered(new.broker_id, epoch, is_clean, new.rack)
        self._left(Restarted(new.broker_id, epoch, is_clean), event)

    def _changed(
        self,
        record: BrokerRegistrationChangeRecord,
        old: BrokerRegistration,
        applied: Sequence[Applied],
    ) -> None:
        broker = record.broker_id
        if record.in_controlled_shutdown and not old.in_controlled_shutdown:
            to_move = sum(_takes_leader(each, broker) for each in applied)
            self._left(ShuttingDown(broker), ControlledShutdown(broker, to_move))
        if record.fenced and not old.fenced:
            why, silent_ms = self._fencing(old)
            self._left(Fenced(broker, why, silent_ms), BrokerFenced(broker, why, silent_ms))
        elif record.fenced is False and old.fenced:
            unfenced = BrokerUnfenced(broker, registration_offset=old.epoch)
            self.joining[broker] = (Unfenced(broker), unfenced)
            self.events.append(unfenced)

    def _fencing(self, old: BrokerRegistration) -> tuple[Fencing, int]:
        """Why a broker was fenced, and the time without a heartbeat.  A process that is down or
        paused requests nothing, so that only its session can have expired."""
        if old.in_controlled_shutdown or old.broker_id in self._known.shutting_down:
            return Fencing.SHUTDOWN_COMPLETE, 0
        since_ms = self._known.silent_since_ms.get(old.broker_id)
        if since_ms is None:
            return Fencing.UNREPORTED, 0
        return Fencing.SESSION_EXPIRED, max(0, self._at_ms - since_ms)


def _takes_leader(entry: Applied, broker: int) -> bool:
    """Whether a record takes the leadership of a partition from a broker."""
    record, old = entry.record, entry.old
    return (
        isinstance(record, PartitionRecord)
        and isinstance(old, PartitionRegistration)
        and old.leader == broker != record.registration.leader
    )


# ------------------------------------------------------------------------------ topics, configs


def _of_topics(applied: Sequence[Applied]) -> Iterator[Event]:
    created = {
        x.record.topic_id: x.record.name for x in applied if isinstance(x.record, TopicRecord)
    }
    added: dict[tuple[str, bytes], list[PartitionRegistration]] = {}
    for entry in applied:
        match entry.record:
            case PartitionRecord(registration=new) if entry.old is None:
                added.setdefault((entry.topic, new.topic_id), []).append(new)
            case RemoveTopicRecord():
                yield TopicDeleted(entry.topic)
    for (name, topic_id), partitions in added.items():
        if topic_id in created:
            factor = len(partitions[0].replicas)
            yield TopicCreated(name, len(partitions), factor, _configs_of(name, applied))
        else:
            first, last = partitions[0].partition, partitions[-1].partition
            yield PartitionsAdded(name, first, last + 1)


def _configs_of(topic: str, applied: Sequence[Applied]) -> dict[str, str | None]:
    records = [each.record for each in applied]
    return {
        record.name: record.value
        for record in records
        if isinstance(record, ConfigRecord)
        and (record.resource_type, record.resource_name) == (TOPIC_RESOURCE, topic)
    }


def _of_configs(applied: Sequence[Applied]) -> Iterator[Event]:
    created = [each.record.name for each in applied if isinstance(each.record, TopicRecord)]
    configs: dict[tuple[int, str], dict[str, str | None]] = {}
    for entry in applied:
        match entry.record:
            case ConfigRecord(resource_type=kind, resource_name=name) as record:
                is_first = kind == TOPIC_RESOURCE and name in created
                if kind in _RESOURCES and not is_first:
                    configs.setdefault((kind, name), {})[record.name] = record.value
            case FeatureLevelRecord(name=name, level=level) if entry.old != level:
                old = entry.old if isinstance(entry.old, int) else 0
                yield FeatureChanged(name, old, level)
    for (kind, name), changed in configs.items():
        yield ConfigChanged(_RESOURCES[kind], name, changed)


# ------------------------------------------------------------------------------------ partitions


def _of_partitions(
    applied: Sequence[Applied], triggers: _Triggers, requested: Mapping[PartitionName, str]
) -> Iterator[Caused]:
    for entry in applied:
        if isinstance(entry.record, PartitionRecord) and isinstance(
            entry.old, PartitionRegistration
        ):
            new = entry.record.registration
            asked = requested.get((entry.topic, new.partition))
            yield from _of_partition(entry.topic, entry.old, new, triggers, asked)


def _of_partition(
    topic: str,
    old: PartitionRegistration,
    new: PartitionRegistration,
    triggers: _Triggers,
    asked: str | None,
) -> Iterator[Caused]:
    reason, cause = _reason(old, new, triggers, asked)
    if is_reassigning(old) and not is_reassigning(new) and _is_reverted(old, new):
        yield _cancelled(topic, old, new), cause
        reason = ReassignmentReverted()
    elif is_reassigning(old) and not is_reassigning(new):
        added = _without(new.isr, old.isr)
        why = CaughtUp(old.leader, added) if added else reason
        yield _completed(topic, old, new, why), cause
        reason = ReassignmentDone()
    elif is_reassigning(new) and new.replicas != old.replicas:
        yield _started(topic, old, new), cause
    if old.isr != new.isr:
        yield _isr_change(topic, old, new, reason), cause
    if old.leader != new.leader:
        yield _leader_change(topic, old, new, reason, asked), cause


def _reason(
    old: PartitionRegistration, new: PartitionRegistration, triggers: _Triggers, asked: str | None
) -> tuple[AnyReason, Event | None]:
    """The reason for a change, and the event that caused it, as far as the records show them."""
    has_moved = old.leader != new.leader
    removed = _without(old.isr, new.isr)
    gone = (*removed, old.leader) if has_moved else removed
    for broker in gone:
        if broker in triggers.leaving:
            return triggers.leaving[broker]
    if has_moved and new.leader in triggers.joining:
        return triggers.joining[new.leader]
    if has_moved and asked is not None:
        return Requested("" if asked == MOVE else asked), None
    if not has_moved and new.leader != NO_LEADER:
        if removed:
            return OutOfSync(new.leader, removed), None
        if added := _without(new.isr, old.isr):
            return CaughtUp(new.leader, added), None
        if old.recovering and not new.recovering:
            return Recovered(new.leader), None
    return Unreported(), None


def _completed(
    topic: str, old: PartitionRegistration, new: PartitionRegistration, reason: AnyReason
) -> ReassignmentCompleted:
    return ReassignmentCompleted(
        topic=topic,
        partition=new.partition,
        old_replicas=old.replicas,
        replicas=new.replicas,
        partition_epoch=new.partition_epoch,
        added=old.adding_replicas,
        removed=_without(old.replicas, new.replicas),
        reason=reason,
    )


def _is_reverted(old: PartitionRegistration, new: PartitionRegistration) -> bool:
    """Whether a reassignment ended without its new replicas, or with those that it removes."""
    return bool(_without(old.adding_replicas, new.replicas)) or any(
        broker in new.replicas for broker in old.removing_replicas
    )


def _cancelled(
    topic: str, old: PartitionRegistration, new: PartitionRegistration
) -> ReassignmentCancelled:
    return ReassignmentCancelled(
        topic=topic,
        partition=new.partition,
        old_replicas=old.replicas,
        replicas=new.replicas,
        partition_epoch=new.partition_epoch,
        adding=old.adding_replicas,
        removing=old.removing_replicas,
    )


def _started(
    topic: str, old: PartitionRegistration, new: PartitionRegistration
) -> ReassignmentStarted:
    return ReassignmentStarted(
        topic=topic,
        partition=new.partition,
        old_replicas=old.replicas,
        replicas=_without(new.replicas, new.removing_replicas),
        partition_epoch=new.partition_epoch,
        adding=new.adding_replicas,
        removing=new.removing_replicas,
        replaced=is_reassigning(old),
    )


def _isr_change(
    topic: str, old: PartitionRegistration, new: PartitionRegistration, reason: AnyReason
) -> IsrShrunk | IsrExpanded:
    removed = _without(old.isr, new.isr)
    event_type = IsrShrunk if removed else IsrExpanded
    return event_type(
        topic=topic,
        partition=new.partition,
        old_isr=old.isr,
        isr=new.isr,
        removed=removed,
        added=_without(new.isr, old.isr),
        elr=new.elr,
        partition_epoch=new.partition_epoch,
        reason=reason,
    )


def _leader_change(
    topic: str,
    old: PartitionRegistration,
    new: PartitionRegistration,
    reason: AnyReason,
    asked: str | None,
) -> LeaderElected | PartitionOffline:
    if new.leader == NO_LEADER:
        return PartitionOffline(
            topic=topic,
            partition=new.partition,
            old_leader=old.leader,
            new_leader=new.leader,
            leader_epoch=new.leader_epoch,
            clean=True,
            reason=reason,
            isr=new.isr,
            elr=new.elr,
        )
    kind = election_kind(old, new, reason, asked)
    return LeaderElected(
        topic=topic,
        partition=new.partition,
        old_leader=old.leader,
        new_leader=new.leader,
        leader_epoch=new.leader_epoch,
        clean=kind not in _UNCLEAN,
        reason=reason,
        election=kind,
    )


def election_kind(
    old: PartitionRegistration,
    new: PartitionRegistration,
    reason: AnyReason = Unreported(),
    asked: str | None = None,
) -> ElectionKind:
    """The rule by which a leader was chosen, as far as the partition shows it.  Kafka:
    PartitionChangeBuilder.electLeader."""
    leader = new.leader
    if leader not in old.isr and not _joins_as_leader(old, new):
        if leader in old.elr:
            return ElectionKind.ELIGIBLE
        if not old.isr and not old.elr and old.last_known_elr == (leader,):
            return ElectionKind.LAST_KNOWN_LEADER
        return ElectionKind.UNCLEAN
    if isinstance(reason, Requested):
        return ElectionKind.REQUESTED if asked == MOVE else ElectionKind.PREFERRED
    is_by_itself = isinstance(reason, Unreported) and leader == new.replicas[0]
    return ElectionKind.PREFERRED if is_by_itself else ElectionKind.IN_SYNC


def _joins_as_leader(old: PartitionRegistration, new: PartitionRegistration) -> bool:
    """Whether one change ended a reassignment with a caught-up replica, and made it leader."""
    is_done = is_reassigning(old) and not is_reassigning(new)
    return is_done and new.leader in old.adding_replicas and not new.recovering


def _without(brokers: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(broker for broker in brokers if broker not in others)
