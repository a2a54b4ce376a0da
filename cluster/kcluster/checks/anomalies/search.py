"""All anomalies of a run, found and explained.

Owns: the input of each kind, and the order of a chain's links.  Never: knows a kind; looks into a
node: only the clients' knowledge and the final logs are searched. Kafka: no counterpart; the
checker of jepsen.tests.kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kcluster.checks.anomalies.base import (
    ANOMALIES,
    Anomaly,
    LogAnomaly,
    PartitionAnomaly,
    PartitionHistory,
    Places,
    RunAnomaly,
    RunHistory,
    TransactionalSend,
    TransactionHistory,
    anomaly_of,
    grouped,
)
from kcluster.checks.anomalies.words import cause_text
from kcluster.checks.chain.links import Link, in_order
from kcluster.checks.settings import CAUSES, Setting
from kcluster.clients.ledger import Ledger, Partition, ReadRecord, SentRecord, SharedRecord
from kcluster.evidence.causes import Cause
from kcluster.evidence.history import FinalLog, OfflinePartition
from kcluster.evidence.lookups import Facts
from kcluster.evidence.recorder import Recorder
from kcluster.evidence.rows import SendAnomalies, SendAnomaly


def find_anomalies(
    ledger: Ledger,
    final: Mapping[Partition, FinalLog],
    drained: bool = False,
    recorder: Recorder | None = None,
    left_offline: Sequence[OfflinePartition] = (),
) -> list[Anomaly]:
    """Every anomaly, by partition and then in the order of ANOMALIES; anomalies of groups and
    transactions come last.  `drained`: consumers had the time to read to the end; `recorder`: its
    coordinators' answers are searched, too; `left_offline`: partitions for which no leader will be
    elected any more."""
    sends: dict[Partition, list[SentRecord]] = {partition: [] for partition in final}
    reads: dict[Partition, list[ReadRecord]] = {partition: [] for partition in final}
    for send in ledger.sends:
        if send.partition in final:
            sends[send.partition].append(send)
    for read in ledger.reads:
        if read.partition in final:
            reads[read.partition].append(read)
    deliveries: dict[Partition, list[SharedRecord]] = {}
    for delivery in ledger.deliveries:
        deliveries.setdefault(delivery.partition, []).append(delivery)
    anomalies: list[Anomaly] = []
    places: dict[Partition, Places] = {}
    for partition, log in final.items():
        places[partition] = places_of(log)
        history = PartitionHistory(
            partition=partition,
            sends=sends[partition],
            reads=reads[partition],
            log=log,
            places=places[partition],
            drained=drained,
            read_committed=ledger.read_committed,
            deliveries=deliveries.get(partition, ()),
            present_share_groups=ledger.present_share_groups,
            delivery_limits=ledger.delivery_limits,
        )
        anomalies.extend(anomalies_of_partition(history))
    transactions = _transactions(ledger, final, places)
    run = RunHistory(ledger, final, transactions, recorder, left_offline)
    for kind in ANOMALIES.values():
        if isinstance(kind, RunAnomaly):
            anomalies.extend(map(anomaly_of, kind.find(run)))
    return anomalies


def anomalies_of_partition(history: PartitionHistory) -> Iterator[Anomaly]:
    """The anomalies of the records of one partition, in the order of ANOMALIES."""
    for kind in ANOMALIES.values():
        if isinstance(kind, PartitionAnomaly):
            yield from grouped(kind, kind.find(history))


def _transactions(
    ledger: Ledger, final: Mapping[Partition, FinalLog], places: Mapping[Partition, Places]
) -> list[TransactionHistory]:
    """Each transaction of the ledger, with its records and their places."""
    if not ledger.transactions:
        return []
    records: dict[tuple[str, int], list[TransactionalSend]] = {}
    for send in ledger.sends:
        if send.transaction is not None and send.partition in final:
            hidden = final[send.partition].hidden
            at = places[send.partition].get(send.value, ())
            visible_at = next((offset for offset in at if offset not in hidden), -1)
            hidden_at = next((offset for offset in at if offset in hidden), -1)
            entry = TransactionalSend(send, visible_at, hidden_at)
            key = (send.producer, send.transaction.number)
            records.setdefault(key, []).append(entry)
    waiting = {
        found.producer_id
        for log in final.values()
        for found in log.open_transactions
        if found.is_owned
    }
    return [
        TransactionHistory(
            transaction,
            records.get((transaction.producer, transaction.number), ()),
            transaction.producer_id in waiting,
        )
        for transaction in ledger.transactions
    ]


def places_of(log: FinalLog) -> Places:
    """The offsets of each value in a log."""
    places: dict[bytes | None, list[int]] = {}
    names = log.names
    for offset, value in log.records:
        name = names.get(offset, value) if names else value
        at = places.get(name)
        if at is None:
            places[name] = [offset]
        else:
            at.append(offset)
    return places


def explained(facts: Facts, anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """The anomalies, each with its chain, and with the setting that allowed it if only the chain
    shows that."""
    return [_explained(facts, anomaly) for anomaly in anomalies]


def _explained(facts: Facts, anomaly: Anomaly) -> Anomaly:
    explanation = ANOMALIES[anomaly.name].explain(facts, anomaly)
    chain = tuple(in_order(explanation.links))
    allowed = explanation.allowed or anomaly.allowed
    errors = dict.fromkeys(entry.error for entry in chain if entry.error)
    causes = _causes(allowed, chain)
    return replace(anomaly, chain=chain, allowed=allowed, causes=causes, errors=tuple(errors))


def anomalies_of_sends(facts: Facts, anomalies: Iterable[Anomaly]) -> SendAnomalies:
    """The findings about each record that was sent, from explained anomalies."""
    found: dict[tuple[Partition, bytes | None], dict[str, SendAnomaly]] = {}
    for anomaly in anomalies:
        kind = ANOMALIES[anomaly.name]
        if not isinstance(kind, LogAnomaly):
            continue
        causes = kind.causes(facts, anomaly)
        for finding, cause in zip(anomaly.findings, causes, strict=True):
            of_send = found.setdefault((anomaly.partition, finding.value), {})
            before = of_send.get(anomaly.name)
            if before is None:
                send = facts.send(anomaly.partition, finding.value)
                reader = "" if send is None or send.producer == finding.client else finding.client
                text = cause_text(cause)
                one = SendAnomaly(anomaly.name, text, anomaly.allowed, reader=reader)
            else:
                one = replace(before, records=before.records + 1)
            of_send[anomaly.name] = one
    return {send: list(of_send.values()) for send, of_send in found.items()}


def _causes(allowed: Setting, chain: Sequence[Link]) -> tuple[Cause, ...]:
    """The causes in a chain and the setting that allowed it, in the order of the enumeration."""
    found = {cause for entry in chain for cause in entry.causes}
    if allowed in CAUSES:
        found.add(CAUSES[allowed])
    return tuple(cause for cause in Cause if cause in found)
