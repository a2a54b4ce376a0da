"""The transactions in logs: the records that they hide, the open ones, and their coordinators.

Owns: these facts, read from the logs of partitions and of __transaction_state.  Never: uses
clients' knowledge, judges (checks/ does).  Kafka: kafka-transactions find-hanging (KIP-664), over
all disks.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from kcluster.broker.coordinator.transactions.transaction import ONGOING, Transaction
from kcluster.broker.coordinator.transactions.transaction_log import decode_transactions
from kcluster.clients.ledger import Partition
from kcluster.evidence.history import OpenTransaction
from kcluster.partition.replica import Replica
from kcluster.protocol.records.batches import CONTROL_BIT, TRANSACTIONAL_BIT, Batch
from kcluster.protocol.records.markers import read_marker
from kcluster.runtime.dispatch import Dispatcher

Owners = Mapping[int, Transaction]
"""The last state of each producer's transactions in the coordinator's log, by producer id."""


def read_owners(batches: Iterable[Batch], owners: dict[int, Transaction]) -> None:
    """Add the last state of each transaction in a partition of __transaction_state."""
    by_id: dict[str, Transaction] = {}
    for batch in batches:
        for record in decode_transactions(batch):
            if record.transaction is None:
                by_id.pop(record.transactional_id, None)
            else:
                by_id[record.transactional_id] = record.transaction
    owners.update((known.producer_id, known) for known in by_id.values())


def hidden_records(batches: Iterable[Batch]) -> tuple[dict[int, None], dict[int, int]]:
    """The offsets that are hidden from read_committed consumers, because their transactions are
    aborted or open; and the first offset of each open transaction by its producer id."""
    hidden: dict[int, None] = {}
    undecided: dict[int, list[Batch]] = {}
    for batch in batches:
        if not batch.attributes & TRANSACTIONAL_BIT:
            continue
        if not batch.attributes & CONTROL_BIT:
            undecided.setdefault(batch.producer_id, []).append(batch)
            continue
        marker = read_marker(batch)
        of_producer = undecided.pop(batch.producer_id, ()) if marker is not None else ()
        if marker is not None and not marker.is_commit:
            _hide(hidden, of_producer)
    for of_producer in undecided.values():
        _hide(hidden, of_producer)
    return hidden, {producer: first[0].base_offset for producer, first in undecided.items()}


def _hide(hidden: dict[int, None], batches: Iterable[Batch]) -> None:
    for batch in batches:
        hidden.update(dict.fromkeys(range(batch.base_offset, batch.last_offset + 1)))


def open_transactions(
    partition: Partition,
    first_offsets: Mapping[int, int],
    end_offset: int,
    owners: Owners,
    calm_ms: int,
    without_leader: Container[int] = (),
) -> tuple[OpenTransaction, ...]:
    """The transactions that are open in a log, or decided and not completed by their coordinator;
    `is_owned`: whether the coordinator will end them there.  `calm_ms`: the present time, if
    nothing prevents the writing of markers; else an earlier time.  `without_leader`: the producers
    whose transactions cannot be completed, as a partition of theirs has no leader."""
    offsets = dict(first_offsets)
    for owner in owners.values():
        if owner.is_prepared and partition in owner.partitions:
            offsets.setdefault(owner.producer_id, end_offset)
    found = []
    for producer_id, first_offset in offsets.items():
        known = owners.get(producer_id)
        is_owned = (
            known is not None
            and (known.state is ONGOING or known.is_prepared)
            and partition in known.partitions
        )
        overdue_ms = 0
        is_blocked = producer_id in without_leader
        if known is not None and is_owned and known.is_prepared and not is_blocked:
            overdue_ms = max(0, calm_ms - known.last_update_ms)
        found.append(OpenTransaction(producer_id, first_offset, is_owned, overdue_ms))
    return tuple(found)


# --------------------------------------------------------------------------- while it runs


def open_in(
    dispatcher: Dispatcher, leaders: Mapping[Partition, Replica]
) -> dict[Partition, list[OpenTransaction]]:
    """The transactions that are open at these leaders, or that their coordinators have decided and
    not completed there, with or without a record; in order of their first offsets.  Partitions
    without one are left out."""
    unfinished: dict[Partition, dict[int, Transaction]] = {}
    for transaction in _unfinished(dispatcher):
        for partition in transaction.partitions:
            unfinished.setdefault(partition, {})[transaction.producer_id] = transaction
    found = {}
    for partition, replica in leaders.items():
        owned = unfinished.get(partition, {})
        table, end = replica.log.producer_table, replica.log.log_end_offset
        first_offsets = {key: end for key, known in owned.items() if known.is_prepared}
        if table is not None and table.has_unstable:
            first_offsets |= dict(table.ongoing)
        if first_offsets:
            ordered = sorted(first_offsets.items(), key=lambda one: (one[1], one[0]))
            found[partition] = [OpenTransaction(key, at, key in owned) for key, at in ordered]
    return found


def _unfinished(dispatcher: Dispatcher) -> list[Transaction]:
    """The transactions that are ongoing or being ended, according to their coordinators."""
    return [
        transaction
        for node in dispatcher.brokers()
        for shard in node.transactions.shards.values()
        for transaction in shard.transactions.values()
        if transaction.state is ONGOING or transaction.is_prepared
    ]
