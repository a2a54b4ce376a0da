"""The logs at the end of a run, read from the disks.

Owns: the choice of the replica whose log is the partition's, its comparison with the others, the
ranges that were deleted on purpose.  Never: uses clients' knowledge.  Kafka: kafka-dump-log and
kafka-replica-verification, over all disks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kcluster.broker.coordinator.transactions.transaction import Transaction
from kcluster.broker.share.configs import is_dead_letter_queue
from kcluster.clients.ledger import Partition
from kcluster.deaths import ProcessState
from kcluster.events.brokers import BrokerEvent, BrokerResumed, BrokerStarted
from kcluster.events.network import NetworkHealed, NetworkShaped, RuleRemoved
from kcluster.evidence.history import FinalLog, OfflinePartition
from kcluster.evidence.outside import Names
from kcluster.evidence.recorder import Recorder
from kcluster.evidence.transactions import Owners, hidden_records, open_transactions, read_owners
from kcluster.invariants.observed import ObservedPartition
from kcluster.invariants.rules import Broken, is_same, record_differs
from kcluster.invariants.violations import Violation, violation
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.operations.controller import controller_image
from kcluster.partition.log.log import Log
from kcluster.protocol.names import TRANSACTION_STATE_TOPIC, has_internal_prefix
from kcluster.structs import Frozen


class Finals(Struct):
    """The result of reading the final logs.  `logs`: the logs of the existing topics; `unread`:
    those of a real Kafka that no broker gave, so nothing is known to be lost; `deleted`:
    (partition, first and last offset) below the log's start; `violations`: replicas that differ."""

    logs: dict[Partition, FinalLog]
    unread: list[Partition]
    offline: list[OfflinePartition]
    deleted: list[tuple[Partition, int, int]]
    violations: list[Violation]


class _Owned(Frozen, frozen=True):
    """The transactions that coordinators have, by producer id; `calm_ms`: what `_calm_ms` says;
    `without_leader`: the producers whose transaction has a partition without a leader, which gets
    no marker, so that the transaction is not completed anywhere."""

    transactions: Owners
    calm_ms: int
    without_leader: frozenset[int]


def _without_leader(image: MetadataImage, owners: Owners) -> frozenset[int]:
    return frozenset(
        producer_id
        for producer_id, transaction in owners.items()
        if any(
            found is not None and found.leader < 0
            for found in (image.partition(*each) for each in transaction.partitions)
        )
    )


def read_finals(recorder: Recorder, names: Names) -> Finals:
    """Read the final logs.  `names`: the names of records that their values do not identify."""
    recorder.check_last_step()
    finals = Finals({}, [], [], [], [])
    image = controller_image(recorder.dispatcher)
    owners: dict[int, Transaction] = {}
    states = image.topics.get(TRANSACTION_STATE_TOPIC)
    for registration in () if states is None else states.partitions:
        log = _authoritative_log(registration, _logs(recorder, registration))
        if log is not None:
            read_owners(log.batches_from(log.log_start_offset), owners)
    owned = _Owned(owners, _calm_ms(recorder), _without_leader(image, owners))
    for topic in sorted(image.topics):
        is_brokers_own = has_internal_prefix(topic) or is_dead_letter_queue(image, topic)
        for registration in image.topics[topic].partitions:
            partition = (topic, registration.partition)
            _read(recorder, finals, partition, registration, names, owned, is_brokers_own)
    return finals


def _read(
    recorder: Recorder,
    finals: Finals,
    partition: Partition,
    registration: PartitionRegistration,
    names: Names,
    owned: _Owned,
    is_brokers_own: bool,
) -> None:
    """Read a partition's final log.  `is_brokers_own`: brokers write the topic, so its records are
    not judged one by one."""
    key = (registration.topic_id, registration.partition)
    logs = _logs(recorder, registration)
    if registration.leader < 0:
        finals.offline.append(OfflinePartition(partition, registration))
    observed = recorder.invariants.partition(partition[0], key)
    log = _authoritative_log(registration, logs)
    if log is None:
        if recorder.sees_disks or _is_wiped(recorder, observed, registration):
            finals.logs[partition] = FinalLog(0, ())
        else:
            finals.unread.append(partition)
        return
    now_ms = recorder.dispatcher.now_ms
    for broker in registration.isr:
        other = logs.get(broker)
        if other is not None and other is not log:
            for broken, fact in _differing(observed, log, other, registration.leader):
                found = violation(broken, now_ms, observed, fact, broker)
                finals.violations.append(found)
    if is_brokers_own:
        return
    if log.log_start_offset > 0:
        finals.deleted.append((partition, 0, log.log_start_offset - 1))
    start, contents = max(log.log_start_offset, observed.known_from), recorder.contents
    records = [entry for batch in log.batches_from(start) for entry in contents.of(batch)]
    if records and records[0][0] < start:
        records = [entry for entry in records if entry[0] >= start]
    named = {
        entry[0]: name
        for batch in (log.batches_from(start) if names else ())
        if batch in names
        for entry, name in zip(contents.of(batch), names[batch], strict=True)
    }
    hidden, first_offsets = hidden_records(log.batches_from(start))
    waiting = open_transactions(
        partition,
        first_offsets,
        log.log_end_offset,
        owned.transactions,
        owned.calm_ms,
        owned.without_leader,
    )
    finals.logs[partition] = FinalLog(
        start_offset=start,
        records=records,
        clean_offset=max(log.first_dirty_offset, observed.clean_offset()),
        names=named,
        end_offset=log.log_end_offset,
        epochs=log.epochs.entries,
        deleted_before=log.log_start_offset,
        hidden=hidden,
        open_transactions=waiting,
    )


_ENDS_OF_FAULTS: Final = (BrokerResumed, BrokerStarted, NetworkHealed, NetworkShaped, RuleRemoved)
"""The events after which a request may still wait for one that was lost."""


def _calm_ms(recorder: Recorder) -> int:
    """The present time, less the longest time of a request between brokers, if every process runs
    and no link is impaired, and has not been for that time; else 0."""
    dispatcher = recorder.dispatcher
    fabric = dispatcher.fabric
    is_up = all(each.state is ProcessState.UP for each in dispatcher.processes.values())
    if not is_up or fabric.has_cuts or fabric.shaped or dispatcher.node_gate is not None:
        return 0
    waits_ms = [node.config.request_timeout_ms for node in dispatcher.brokers()]
    calm_ms = dispatcher.now_ms - max(waits_ms, default=0)
    ends_ms = (note.at_ms for note in recorder.notes if isinstance(note.event, _ENDS_OF_FAULTS))
    return calm_ms if max(ends_ms, default=0) < calm_ms else 0


def _is_wiped(
    recorder: Recorder, observed: ObservedPartition, registration: PartitionRegistration
) -> bool:
    """Whether every replica has lost its disk since the last append."""
    last_ms = observed.appends[-1].at_ms if observed.appends else 0
    wiped = {
        note.event.broker
        for note in recorder.notes
        if isinstance(note.event, BrokerEvent) and note.event.loses_disk and note.at_ms >= last_ms
    }
    return wiped.issuperset(registration.replicas)


def _logs(recorder: Recorder, registration: PartitionRegistration) -> dict[int, Log]:
    """The logs of a partition's replicas, by broker."""
    key = (registration.topic_id, registration.partition)
    return {
        broker: log
        for broker in registration.replicas
        if (log := recorder.plan.disks[broker].logs.get(key)) is not None
    }


def _authoritative_log(registration: PartitionRegistration, logs: Mapping[int, Log]) -> Log | None:
    """The leader's log; without a leader, the longest log of the brokers that may be elected
    cleanly."""
    if registration.leader in logs:
        return logs[registration.leader]
    eligible = (*registration.isr, *registration.elr, *registration.last_known_elr)
    candidates = [logs[broker] for broker in eligible if broker in logs] or list(logs.values())
    return max(candidates, key=lambda log: log.log_end_offset, default=None)


def _differing(observed: ObservedPartition, log: Log, other: Log, leader: int) -> Broken:
    """Differences below the high watermark between members of the ISR."""
    start = max(
        log.log_start_offset,
        other.log_start_offset,
        log.first_dirty_offset,
        other.first_dirty_offset,
        observed.clean_offset(),
    )
    end = min(observed.committed.end, log.log_end_offset, other.log_end_offset)
    if start >= end:
        return
    for own, wanted in zip(other.batches_from(start), log.batches_from(start), strict=False):
        if wanted.last_offset >= end:
            return
        if own is not wanted and not is_same(own, wanted):
            yield "committed-differs", record_differs(own, wanted, leader)
            return
