"""Partitions that were offline, elected uncleanly or below min.insync.replicas, whether clients
used them or not.

Owns: `Degraded`, and finding these times in the record.  Never: words (verdict_words.py); decides
whether a run is valid. Kafka: the metrics OfflinePartitionsCount, UncleanLeaderElectionsPerSec,
UnderMinIsrPartitionCount.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct, structs

from kcluster.checks.origins import Origin, origin_of
from kcluster.clients.ledger import Partition
from kcluster.contract import Note
from kcluster.deaths import ProcessState
from kcluster.events.brokers import BrokerEvent, BrokerFenced, BrokerUnfenced
from kcluster.events.partitions import (
    IsrChange,
    IsrShrunk,
    LeaderChange,
    LeaderElected,
    PartitionEvent,
    PartitionOffline,
)
from kcluster.events.topics import TopicDeleted
from kcluster.evidence.lookups import Facts
from kcluster.invariants.observed import ObservedPartition
from kcluster.protocol.names import has_internal_prefix


class DegradedKind(StrEnum):
    """`offline`: the partition had no leader; `unclean_election`: its new leader may lack committed
    records; `under_min_isr`: its ISR was smaller than min.insync.replicas, so that acks=all was
    refused."""

    OFFLINE = "offline"
    UNCLEAN_ELECTION = "unclean_election"
    UNDER_MIN_ISR = "under_min_isr"


class ReplicaState(StrEnum):
    """The reason why a replica could not lead."""

    DOWN = "down"
    PAUSED = "paused"
    RESTARTING = "restarting"
    """Its process ran, and the controller had not unfenced it yet."""
    FENCED = "fenced"
    OUT_OF_SYNC = "out_of_sync"


class Ineligible(Struct, frozen=True):
    """A replica that could not lead when its partition went offline; `since_ms`: the time since
    which it could not, -1 if unknown."""

    broker: int
    state: ReplicaState
    since_ms: int = -1


class Degraded(Struct, frozen=True):
    """A time in which a partition was degraded, in ms of the cluster's clock; for an unclean
    election `to_ms` is `from_ms`.  `is_over`: whether it ended before the run did.  `replicas`: the
    partition's replicas, if known; `ineligible`: the reason for each replica when the partition
    went offline; `then_unclean`: whether an unclean election ended it."""

    kind: DegradedKind
    partition: Partition
    from_ms: int
    to_ms: int
    is_over: bool = True
    origin: Origin | None = None
    replicas: tuple[int, ...] = ()
    ineligible: tuple[Ineligible, ...] = ()
    then_unclean: bool = False

    @property
    def duration_ms(self) -> int:
        return self.to_ms - self.from_ms


ORDER: Final = {kind: place for place, kind in enumerate(DegradedKind)}
_STATES: Final = {ProcessState.DOWN: ReplicaState.DOWN, ProcessState.PAUSED: ReplicaState.PAUSED}


def find_degraded(facts: Facts, since_ms: int, *, explains: bool = True) -> list[Degraded]:
    """All degraded times after `since_ms`, by kind, then by partition; a time that began earlier
    begins there.  Times below min.insync.replicas are computed with the setting at the end of the
    run, without internal topics.  `explains`: whether their origins are found."""
    found = _Search(facts, explains).all()
    lasted = [
        structs.replace(each, from_ms=max(each.from_ms, since_ms))
        for each in found
        if each.to_ms > since_ms or (each.from_ms == each.to_ms >= since_ms)
    ]
    return sorted(lasted, key=lambda each: (ORDER[each.kind], each.partition, each.from_ms))


class _Search:
    """The search in one run."""

    def __init__(self, facts: Facts, explains: bool) -> None:
        self._facts = facts
        self._explains = explains
        self._now_ms = facts.recorder.dispatcher.now_ms
        self._observed: dict[Partition, list[ObservedPartition]] = {}
        for observed in facts.recorder.partitions.values():
            partition = (observed.topic, observed.partition)
            self._observed.setdefault(partition, []).append(observed)

    def all(self) -> Iterator[Degraded]:
        yield from self._without_leader()
        for observed in self._facts.recorder.partitions.values():
            if not has_internal_prefix(observed.topic):
                yield from self._under_min_isr(observed)

    def _replicas(self, partition: Partition, at_ms: int) -> tuple[int, ...]:
        for observed in reversed(self._observed.get(partition, [])):
            registration = self._facts.registration(observed, at_ms)
            if registration is not None:
                return registration.replicas
        return ()

    def _origin(self, notes: list[Note], until_ms: int) -> Origin | None:
        return origin_of(self._facts, notes, until_ms) if self._explains else None

    # ------------------------------------------------------------------------ without a leader

    def _without_leader(self) -> Iterator[Degraded]:
        """The times offline, and the unclean elections."""
        offline: dict[Partition, Note] = {}
        for note in self._facts.notes:
            event = note.event
            if isinstance(event, TopicDeleted):
                for partition in [each for each in offline if each[0] == event.topic]:
                    yield from self._offline(offline.pop(partition), note.at_ms)
            elif isinstance(event, PartitionOffline):
                offline.setdefault((event.topic, event.partition), note)
            elif isinstance(event, LeaderElected):
                began = offline.pop((event.topic, event.partition), None)
                if began is not None:
                    yield from self._offline(began, note.at_ms, then_unclean=not event.clean)
                if not event.clean:
                    yield self._elected_uncleanly(note, event, note if began is None else began)
        for began in offline.values():
            yield from self._offline(began, self._now_ms, is_over=False)

    def _offline(
        self, began: Note, to_ms: int, then_unclean: bool = False, is_over: bool = True
    ) -> Iterator[Degraded]:
        event = began.event
        assert isinstance(event, PartitionOffline), event
        partition, from_ms = (event.topic, event.partition), began.at_ms
        if to_ms <= from_ms and is_over:
            return
        replicas = self._replicas(partition, from_ms)
        yield Degraded(
            DegradedKind.OFFLINE,
            partition,
            from_ms,
            to_ms,
            is_over,
            self._origin([began], from_ms),
            replicas,
            tuple(self._ineligible(partition, broker, from_ms) for broker in replicas),
            then_unclean,
        )

    def _elected_uncleanly(self, note: Note, event: LeaderElected, began: Note) -> Degraded:
        partition = (event.topic, event.partition)
        return Degraded(
            DegradedKind.UNCLEAN_ELECTION,
            partition,
            note.at_ms,
            note.at_ms,
            origin=self._origin([began], note.at_ms),
            replicas=self._replicas(partition, note.at_ms),
        )

    def _ineligible(self, partition: Partition, broker: int, at_ms: int) -> Ineligible:
        facts = self._facts
        state, note = facts.state(broker, at_ms)
        if note is not None and state in _STATES:
            return Ineligible(broker, _STATES[state], note.at_ms)
        unfenced_ms = self._last_ms(broker, BrokerUnfenced, at_ms)
        if note is not None and unfenced_ms < note.at_ms:
            return Ineligible(broker, ReplicaState.RESTARTING, note.at_ms)
        fenced_ms = self._last_ms(broker, BrokerFenced, at_ms)
        if unfenced_ms < fenced_ms:
            return Ineligible(broker, ReplicaState.FENCED, fenced_ms)
        left = [
            each.at_ms
            for each, change in facts.of_partition(partition, IsrShrunk)
            if each.at_ms <= at_ms and broker in change.removed
        ]
        return Ineligible(broker, ReplicaState.OUT_OF_SYNC, max(left, default=-1))

    def _last_ms(self, broker: int, wanted: type[BrokerEvent], at_ms: int) -> int:
        times = [x.at_ms for x, _ in self._facts.of_broker(broker, wanted) if x.at_ms <= at_ms]
        return max(times, default=-1)

    # ------------------------------------------------------------- below min.insync.replicas

    def _under_min_isr(self, observed: ObservedPartition) -> Iterator[Degraded]:
        from_ms = -1
        for at_ms, registration in observed.registrations:
            required = min(observed.min_isr, len(registration.replicas))
            is_under = registration.leader >= 0 and len(registration.isr) < required
            if is_under and from_ms < 0:
                from_ms = at_ms
            elif not is_under and from_ms >= 0:
                if at_ms > from_ms:
                    yield self._under(observed, from_ms, at_ms, is_over=True)
                from_ms = -1
        if from_ms >= 0:
            is_deleted = observed.deleted_ms >= 0
            to_ms = observed.deleted_ms if is_deleted else self._now_ms
            yield self._under(observed, from_ms, to_ms, is_over=is_deleted)

    def _under(
        self, observed: ObservedPartition, from_ms: int, to_ms: int, is_over: bool
    ) -> Degraded:
        partition = (observed.topic, observed.partition)
        changes = [
            note
            for note, event in self._facts.of_partition(partition, PartitionEvent)
            if note.at_ms <= from_ms and isinstance(event, IsrChange | LeaderChange)
        ]
        latest = [note for note in changes if note.at_ms == changes[-1].at_ms]
        return Degraded(
            DegradedKind.UNDER_MIN_ISR,
            partition,
            from_ms,
            to_ms,
            is_over,
            self._origin(latest, from_ms),
            self._replicas(partition, from_ms),
        )
