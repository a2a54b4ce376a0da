"""A cluster at one moment of its past, from the rows of a run.

Owns: `ClusterMoment`, and how the rows up to the moment add up to it.  Never: reads a file, asks a
cluster; makes words, except labels and impairments, which the status has too.
Kafka: the output of kafka-topics, kafka-consumer-groups and kafka-transactions at that time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from kcluster.clients.ledger import Partition
from kcluster.deaths import DeathKind, ProcessState
from kcluster.events.rule_effects import AnyEffect
from kcluster.events.standing import label_of, standing_of
from kcluster.events.words.network import shape_text
from kcluster.evidence.recorder import Recorder
from kcluster.evidence.rows import (
    BeliefRow,
    CredentialRow,
    ExchangeRow,
    GroupRow,
    LoginRow,
    TransactionStateRow,
)
from kcluster.evidence.security_states import GONE, credential_key, login_key
from kcluster.runs.build_record import epochs_row, leader_row, move_row, note_rows, topology_values
from kcluster.runs.node_states import STATE_EVENTS, Link, NodeStates
from kcluster.runs.record import EpochsRow, LeaderRow, MoveRow, RunInfo, RunRecord

K = TypeVar("K", bound=Hashable)
P = TypeVar("P", MoveRow, EpochsRow, LeaderRow)

DEAD: Final = "Dead"


class BrokerMoment(Struct, frozen=True):
    """A broker at a moment.  `state`: the state of its process: up, paused or down.  `how`: the way
    in which it went down, None if it is not down.  `fenced`: whether the controller had fenced
    it."""

    id: int
    rack: str | None
    state: ProcessState
    how: DeathKind | None
    fenced: bool


class ReplicaMoment(Struct, frozen=True):
    """A replica at a moment.  `standing`: its state in words: `leader`, `in sync`, `down, 3
    behind`.  `last_stable_offset`: known for a leader, else -1.  `epochs`: (leader epoch, first
    offset), oldest first."""

    broker: int
    standing: str
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    epochs: tuple[tuple[int, int], ...]


class PartitionMoment(Struct, frozen=True):
    """A partition at a moment.  `leader`: None if it was offline.  `logs`: the logs of its
    replicas."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    logs: tuple[ReplicaMoment, ...]


class ClientMoment(Struct, frozen=True):
    """A client at a moment: its belief about leaders, and its last request."""

    name: str
    beliefs: tuple[BeliefRow, ...]
    last: ExchangeRow | None


class RuleMoment(Struct, frozen=True):
    """A rule for requests of clients that was in force."""

    name: str
    effect: AnyEffect


class ImpairedLink(Struct, frozen=True):
    """A link with latency, loss or a limit; `texts`: each impairment in words."""

    link: Link
    texts: tuple[str, ...]


class ClusterMoment(Struct, frozen=True, kw_only=True):
    """A cluster at `at_ms`.  `controller_is_active`: whether there was an active controller.
    `cuts`: (source, destination); `sides`: sets of nodes that reached each other, none if no link
    was cut.  `network_clients`: the clients' names by node id.  `logins`: the existing ones
    and the refused ones; `credentials`: certificates and delegation tokens."""

    at_ms: int
    controller_is_active: bool
    brokers: tuple[BrokerMoment, ...]
    cuts: tuple[Link, ...]
    sides: tuple[tuple[int, ...], ...]
    impaired: tuple[ImpairedLink, ...]
    network_clients: dict[int, str]
    rules: tuple[RuleMoment, ...]
    partitions: tuple[PartitionMoment, ...]
    clients: tuple[ClientMoment, ...]
    groups: tuple[GroupRow, ...]
    transactions: tuple[TransactionStateRow, ...]
    logins: tuple[LoginRow, ...] = ()
    credentials: tuple[CredentialRow, ...] = ()


def moment_of(record: RunRecord, at_ms: int) -> ClusterMoment:
    """The cluster at `at_ms` of its clock, after all events of that millisecond."""
    nodes = NodeStates(record.notes, at_ms)
    groups = _newest(record.groups, at_ms, lambda row: row.group)
    transactions = _newest(record.transaction_states, at_ms, lambda row: row.transactional_id)
    return ClusterMoment(
        at_ms=at_ms,
        controller_is_active=nodes.controller_is_active,
        brokers=tuple(_brokers(record, nodes)),
        cuts=tuple(sorted(nodes.cuts)),
        sides=nodes.sides if nodes.cuts else (),
        impaired=tuple(
            ImpairedLink(link, tuple(map(shape_text, shapes)))
            for link, shapes in sorted(nodes.impaired.items())
        ),
        network_clients=nodes.clients,
        rules=tuple(RuleMoment(name, effect) for name, effect in nodes.rules.items()),
        partitions=tuple(_partitions(record, at_ms, nodes)),
        clients=tuple(_clients(record, at_ms)),
        groups=tuple(row for _, row in sorted(groups.items()) if row.state != DEAD),
        transactions=tuple(row for _, row in sorted(transactions.items()) if row.state != DEAD),
        logins=tuple(
            row
            for _, row in sorted(_newest(record.logins, at_ms, login_key).items())
            if row.connections or row.problem
        ),
        credentials=tuple(
            row
            for _, row in sorted(_newest(record.credentials, at_ms, credential_key).items())
            if row.state != GONE
        ),
    )


def partition_at(record: RunRecord, partition: Partition, at_ms: int) -> PartitionMoment | None:
    """A partition at `at_ms`; None if it did not exist."""

    def own(rows: Iterable[P]) -> list[P]:
        return [row for row in rows if (row.topic, row.partition) == partition]

    moves, epochs, leaders = own(record.moves), own(record.epochs), own(record.leaders)
    rows = RunRecord(record.info, moves=moves, epochs=epochs, leaders=leaders)
    return next(_partitions(rows, at_ms, NodeStates(record.notes, at_ms)), None)


def recorded_until(recorder: Recorder, at_ms: int) -> RunRecord:
    """The rows of a running cluster that `moment_of` needs for `at_ms`.  To be called in the
    driver's thread."""
    recorder.check_last_step()
    info = RunInfo("", "", 0, recorder.first_ms, at_ms, topology=topology_values(recorder))
    notes = (note for note in recorder.notes if isinstance(note.event, STATE_EVENTS))
    record = RunRecord(info, notes=note_rows(notes))
    for one in recorder.partitions.values():
        known = bisect_right(one.registrations, at_ms, key=lambda entry: entry[0])
        record.leaders += [leader_row(one, *entry) for entry in one.registrations[:known][-1:]]
        brokers = len(one.registrations[known - 1][1].replicas) if known else 0
        moves = _last_of_each(one.moves, at_ms, brokers)
        record.moves += [move_row(one, move) for move in moves]
        runs = _last_of_each(one.epoch_runs, at_ms, brokers)
        record.epochs += [epochs_row(one, each) for each in runs]
    exchanges = recorder.exchanges()
    record.exchanges = list(exchanges.rows)
    record.beliefs = list(exchanges.beliefs.rows)
    record.groups = list(recorder.states.groups.rows)
    record.transaction_states = list(recorder.states.transactions.rows)
    record.logins = list(recorder.security.logins.rows)
    record.credentials = list(recorder.security.credentials.rows)
    return record


class _OfBroker(Protocol):
    at_ms: int
    broker: int


B = TypeVar("B", bound=_OfBroker)


def _last_of_each(rows: Sequence[B], at_ms: int, brokers: int) -> list[B]:
    """The last row of each broker up to the moment; rows are in order of time."""
    found: dict[int, B] = {}
    for place in range(bisect_right(rows, at_ms, key=lambda row: row.at_ms) - 1, -1, -1):
        row = rows[place]
        found.setdefault(row.broker, row)
        if len(found) >= brokers:
            break
    return list(found.values())


# ---------------------------------------------------------------- partitions, clients, others


def _brokers(record: RunRecord, nodes: NodeStates) -> Iterator[BrokerMoment]:
    racks = {each["id"]: each.get("rack") for each in record.info.topology.get("brokers", ())}
    known = [broker for row in record.leaders for broker in row.replicas]
    for broker in sorted(dict.fromkeys((*racks, *known))):
        if broker not in nodes.started_later:
            yield BrokerMoment(
                id=broker,
                rack=racks.get(broker),
                state=nodes.process_of(broker),
                how=nodes.death_of(broker),
                fenced=nodes.is_fenced(broker),
            )


def _partitions(record: RunRecord, at_ms: int, nodes: NodeStates) -> Iterator[PartitionMoment]:
    """The partitions that existed, by name."""
    ends = _newest(record.moves, at_ms, lambda row: (row.topic, row.partition, row.broker))
    runs = _newest(record.epochs, at_ms, lambda row: (row.topic, row.partition, row.broker))
    found = _newest(record.leaders, at_ms, lambda row: (row.topic, row.partition))
    for key, row in sorted(found.items()):
        since_ms = nodes.deleted_ms.get(row.topic, -1)
        if row.at_ms < since_ms:
            continue
        logs: dict[int, MoveRow] = {}
        for broker in row.replicas:
            end = ends.get((*key, broker))
            if end is not None and end.at_ms >= since_ms:
                logs[broker] = end
        replicas = tuple(
            _replica(row, logs, runs.get((*key, broker)), nodes.process_of(broker), broker)
            for broker in logs
        )
        yield PartitionMoment(
            topic=row.topic,
            partition=row.partition,
            leader=row.leader if row.leader >= 0 else None,
            leader_epoch=row.leader_epoch,
            replicas=row.replicas,
            isr=row.isr,
            elr=row.elr,
            logs=replicas,
        )


def _replica(
    row: LeaderRow,
    logs: dict[int, MoveRow],
    runs: EpochsRow | None,
    process: ProcessState,
    broker: int,
) -> ReplicaMoment:
    log, leader = logs[broker], logs.get(row.leader)
    standing = standing_of(
        broker,
        leader=row.leader,
        isr=row.isr,
        elr=row.elr,
        process=process,
        log_end_offset=log.log_end_offset,
        leader_end_offset=None if leader is None else leader.log_end_offset,
    )
    return ReplicaMoment(
        broker=broker,
        standing=label_of(standing),
        log_start_offset=0 if runs is None else runs.start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        epochs=() if runs is None else runs.epochs,
    )


def _clients(record: RunRecord, at_ms: int) -> Iterator[ClientMoment]:
    last = _newest(record.exchanges, at_ms, lambda row: row.client)
    beliefs: dict[str, list[BeliefRow]] = {}
    newest = _newest(record.beliefs, at_ms, lambda row: (row.client, row.topic, row.partition))
    for (client, _, _), row in sorted(newest.items()):
        beliefs.setdefault(client, []).append(row)
    for client in sorted({**last, **beliefs}):
        yield ClientMoment(client, tuple(beliefs.get(client, ())), last.get(client))


class _Timed(Protocol):
    at_ms: int


R = TypeVar("R", bound=_Timed)


def _newest(rows: Iterable[R], at_ms: int, key_of: Callable[[R], K]) -> dict[K, R]:
    """The last row up to the moment, by key."""
    return {key_of(row): row for row in rows if row.at_ms <= at_ms}
