"""The consequences of losing brokers, as questions with their right answers.

Owns: the questions that are worth asking about a state of the cluster, their choices, the answers
and the reasons, as values.  Never: looks into a cluster (prediction_facts.py does), makes words
(prediction_words.py does), decides an election: that is the controller's own code.  Kafka:
ReplicationControlManager.handleBrokerFenced.

An answer is about the state after the controller has noticed the loss, if nothing else happens
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kcluster.controller.partitions.elections import ElectionMode, elect
from kcluster.events.reasons import ElectionKind
from kcluster.metadata.records import NO_LEADER, PartitionRegistration

MAX_QUESTIONS: Final = 4


class Leaving(StrEnum):
    """The ways in which brokers are lost."""

    KILLED = "killed"
    POWERED_OFF = "powered_off"
    WIPED = "wiped"
    SHUT_DOWN = "shut_down"
    """A controlled shutdown: the brokers' leaders move before they stop."""
    PAUSED = "paused"
    ISOLATED = "isolated"
    """A cut: the brokers are isolated from all other brokers and the controller."""


class QuestionKind(StrEnum):
    """The questions that can be asked."""

    NOTICED = "noticed"
    """The moment at which the controller acts."""
    LEADER = "leader"
    """The leader of a partition afterwards."""
    RECORD = "record"
    """The times at which the controller may act."""
    WRITES = "writes"
    """The moment at which the controller acts."""


class Notice(StrEnum):
    """When the controller acts."""

    AT_ONCE = "at_once"
    AFTER_SESSION = "after_session"
    NEVER = "never"


class RecordFate(StrEnum):
    """The possible fates of a record."""

    KEPT = "kept"
    LOST = "lost"
    UNAVAILABLE = "unavailable"
    """The record cannot be read until a broker returns."""


class Writes(StrEnum):
    """The possible fates of a produce request with acks=all."""

    CONTINUE = "continue"
    NOT_ENOUGH_REPLICAS = "not_enough_replicas"
    NO_LEADER = "no_leader"


class PartitionState(Struct, frozen=True):
    """The state of a partition.  `min_isr`: the effective min.insync.replicas; `unclean`:
    unclean.leader.election.enable.  `log_ends`: the log ends of the replicas with a log, by broker.
    `is_moving`: whether messages between its replicas are under way, so that the followers' log
    ends may still change."""

    topic: str
    registration: PartitionRegistration
    min_isr: int
    unclean: bool
    log_ends: dict[int, int]
    is_moving: bool = False


class ClusterState(Struct, frozen=True):
    """The facts on which an answer depends.  `active`: brokers that may lead in the controller's
    view; `missed_soon`: brokers among them whose loss the controller has not noticed yet."""

    active: frozenset[int]
    missed_soon: tuple[int, ...]
    partitions: tuple[PartitionState, ...]
    session_timeout_ms: int
    elr_enabled: bool


class PredictionReason(Struct, frozen=True):
    """The reason why an answer is right.  `leader`, `isr`, `elr`: the partition's, afterwards;
    `election`: the rule by which the leader was chosen.  `log_end_offset`: the new leader's.
    `min_isr`, `timeout_ms`: the settings."""

    leader: int = NO_LEADER
    was_leader: int = NO_LEADER
    election: ElectionKind = ElectionKind.NONE
    isr: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    log_end_offset: int = -1
    min_isr: int = 0
    timeout_ms: int = 0


class Prediction(Struct, frozen=True):
    """One question.  `partition`: `orders-0`, or "".  `offset`: the offset of the record in
    question, or -1.  `choices`, `answer`: brokers (-1: none), or values of Notice, RecordFate,
    Writes."""

    kind: QuestionKind
    partition: str
    offset: int
    choices: tuple[int | str, ...]
    answer: int | str
    reason: PredictionReason


def predict(state: ClusterState, brokers: Sequence[int], how: Leaving) -> list[Prediction]:
    """The questions about the loss of these brokers, the most telling ones first; none if the
    controller has already noticed the loss of all of them."""
    lost = tuple(broker for broker in brokers if broker in state.active)
    if not lost:
        return []
    asked: list[Prediction] = []
    for partition in _by_interest(state.partitions, lost):
        asked += _about(state, partition, lost, how)
    # The partitions in turn: first the leader of each, then the rest.
    order = (QuestionKind.LEADER, QuestionKind.RECORD, QuestionKind.WRITES)
    asked.sort(key=lambda question: order.index(question.kind))
    return _varied(asked, _noticed(state, how))


def _varied(asked: list[Prediction], noticed: Prediction) -> list[Prediction]:
    """The questions with one of each kind first, then the rest; MAX_QUESTIONS at most."""
    first: dict[QuestionKind, Prediction] = {}
    for question in asked:
        first.setdefault(question.kind, question)
    rest = [question for question in asked if first[question.kind] is not question]
    return [*first.values(), noticed, *rest][:MAX_QUESTIONS]


def _by_interest(
    partitions: Sequence[PartitionState], lost: tuple[int, ...]
) -> list[PartitionState]:
    """The partitions that lose their leader, then the partitions that lose a member of the ISR."""
    led = [each for each in partitions if each.registration.leader in lost]
    followed = [
        each
        for each in partitions
        if each.registration.leader not in lost and not set(lost).isdisjoint(each.registration.isr)
    ]
    return [*led, *followed]


def _about(
    state: ClusterState, partition: PartitionState, lost: tuple[int, ...], how: Leaving
) -> Iterator[Prediction]:
    before = partition.registration
    after, election = partition_after(state, partition, lost)
    name = f"{partition.topic}-{before.partition}"
    reason = PredictionReason(
        leader=after.leader,
        was_leader=before.leader,
        election=election,
        isr=after.isr,
        elr=after.elr,
        log_end_offset=partition.log_ends.get(after.leader, -1),
        min_isr=partition.min_isr,
    )
    if before.leader in lost:
        nobody = (*before.replicas, NO_LEADER)
        yield Prediction(QuestionKind.LEADER, name, -1, nobody, after.leader, reason)
        fate = _fate(partition, after, how)
        last = partition.log_ends.get(before.leader, 0) - 1
        if fate is not None and last >= 0:
            yield Prediction(QuestionKind.RECORD, name, last, tuple(RecordFate), fate, reason)
    writes = _writes(partition, after)
    yield Prediction(QuestionKind.WRITES, name, -1, tuple(Writes), writes, reason)


def partition_after(
    state: ClusterState, partition: PartitionState, lost: Sequence[int]
) -> tuple[PartitionRegistration, ElectionKind]:
    """The partition after the controller has noticed the loss of these brokers, and of the brokers
    already gone, one after the other; and the rule by which its last leader was chosen."""
    mode = ElectionMode.UNCLEAN if partition.unclean else ElectionMode.ONLINE
    after, kind = partition.registration, ElectionKind.NONE
    active = set(state.active)
    for broker in dict.fromkeys((*state.missed_soon, *lost)):
        active.discard(broker)
        if broker not in after.isr:
            continue
        election = elect(
            after,
            active.__contains__,
            partition.min_isr,
            mode,
            isr=tuple(member for member in after.isr if member != broker),
            elr_enabled=state.elr_enabled,
        )
        if election is not None:
            changed = election.registration.leader != after.leader
            after, kind = election.registration, election.kind if changed else kind
    return after, kind


def _fate(
    partition: PartitionState, after: PartitionRegistration, how: Leaving
) -> RecordFate | None:
    """The fate of the last record of the present leader's log; None if it cannot be known."""
    before = partition.registration
    end = partition.log_ends.get(before.leader, 0)
    if after.leader == NO_LEADER:
        return None if how in (Leaving.WIPED, Leaving.POWERED_OFF) else RecordFate.UNAVAILABLE
    has_it = partition.log_ends.get(after.leader, 0) >= end
    if not has_it and (partition.is_moving or how is Leaving.SHUT_DOWN):
        return None  # a follower may still get the record
    return RecordFate.KEPT if has_it else RecordFate.LOST


def _writes(partition: PartitionState, after: PartitionRegistration) -> Writes:
    if after.leader == NO_LEADER:
        return Writes.NO_LEADER
    enough = len(after.isr) >= partition.min_isr
    return Writes.CONTINUE if enough else Writes.NOT_ENOUGH_REPLICAS


def _noticed(state: ClusterState, how: Leaving) -> Prediction:
    answer = Notice.AT_ONCE if how is Leaving.SHUT_DOWN else Notice.AFTER_SESSION
    reason = PredictionReason(timeout_ms=state.session_timeout_ms)
    return Prediction(QuestionKind.NOTICED, "", -1, tuple(Notice), answer, reason)
