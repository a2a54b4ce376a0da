"""The base of anomalies: a class finds its kind in a run, and explains it.

Owns: AnomalyKind and its forms, the grouping of findings into anomalies, the table of kinds by
name.  Never: knows a kind; words an anomaly (words.py).  Kafka: no counterpart; jepsen.tests.kafka.

To add an anomaly: a class with `@anomaly("name", "its meaning")` in a file of this directory; that
file's line in `__init__.py`, at its place in the order of verdicts; its sentence in words.py.  The
class's docstring describes when the anomaly occurs, and shows how it is printed.  The checks of
scenarios accept the name.

A record is identified by its value, which its producer sends once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, TypeVar

from msgspec import Struct

from kcluster.checks.anomalies.facts import AnomalyFact, AnomalyFacts, Finding, InTransaction
from kcluster.checks.anomalies.words import anomaly_text
from kcluster.checks.chain.links import Link
from kcluster.checks.settings import Setting
from kcluster.clients.ledger import (
    UNCHANGED_LIMITS,
    ClientTransaction,
    DeliveryLimits,
    Ledger,
    Partition,
    ReadRecord,
    SentRecord,
    SharedRecord,
)
from kcluster.evidence.causes import Cause, SendCause
from kcluster.evidence.history import FinalLog, OfflinePartition
from kcluster.evidence.lookups import Facts
from kcluster.evidence.recorder import Recorder

Places = Mapping[bytes | None, Sequence[int]]
"""The offsets of each value."""


Group = Sequence[Finding]
"""Neighbouring findings of one kind, with one client, fact and setting; at least one."""


class Anomaly(AnomalyFacts, frozen=True):
    """A broken promise as clients see it: neighbouring records with one story.

    `chain`: the events that led to it, oldest first; `causes`: the causes in it; `errors`: the
    errors of clients in it, by Kafka's names.
    """

    chain: tuple[Link, ...] = ()
    causes: tuple[Cause, ...] = ()
    errors: tuple[str, ...] = ()
    findings: Group = ()
    """The finding about each record concerned; empty in a verdict."""

    @property
    def text(self) -> str:
        """Its sentence, for people; no code reads it."""
        return anomaly_text(self)

    def __str__(self) -> str:
        return f"{self.name}: {self.partition[0]}-{self.partition[1]}: {self.text}"


class PartitionHistory(Struct, frozen=True):
    """The clients' actions in one partition, and the content of its log at the end.

    `drained`: consumers had the time to read to the end.
    """

    partition: Partition
    sends: Sequence[SentRecord]
    reads: Sequence[ReadRecord]
    log: FinalLog
    places: Places
    drained: bool = False
    read_committed: Mapping[str, None] = {}
    """The consumers that must not see records of aborted or open transactions."""
    deliveries: Sequence[SharedRecord] = ()
    """The deliveries to members of share groups."""
    present_share_groups: Mapping[str, None] = {}
    """The share groups that had members to the end."""
    delivery_limits: Mapping[str, DeliveryLimits] = {}
    """The limits on deliveries, by share group."""

    def is_settled(self, deliveries: Sequence[SharedRecord]) -> bool:
        """Whether a share group has settled a record, or may have: a member sent an acceptance that
        was not refused, or the limit on its deliveries is reached."""
        return any(
            one.count >= self.delivery_limits.get(one.group, UNCHANGED_LIMITS).lowest
            or one.is_acknowledged
            or one.may_be_acknowledged
            for one in deliveries
        )

    def value_at(self, offset: int) -> bytes | None:
        """The value of the record at this offset; None if there is none."""
        return next((value for at, value in self.log.records if at == offset), None)

    def visible(self, value: bytes | None) -> Sequence[int]:
        """The offsets at which read_committed consumers get a value."""
        hidden = self.log.hidden
        at = self.places.get(value, ())
        return [offset for offset in at if offset not in hidden] if hidden else at


class TransactionalSend(NamedTuple):
    """A record of a transaction.  `visible_at`: the offset at which read_committed consumers get
    it, -1 for none; `hidden_at`: the offset at which it is hidden, -1 for none."""

    send: SentRecord
    visible_at: int
    hidden_at: int


class TransactionHistory(Struct, frozen=True):
    """A transaction and its records."""

    transaction: ClientTransaction
    records: Sequence[TransactionalSend]
    is_open: bool = False
    """Whether the transaction's producer waits for a marker, so that it may still become
    visible."""


class Explanation(Struct, frozen=True):
    """The links that led to an anomaly, in any order; `allowed`: the setting that allows it, if
    only the story shows that."""

    links: Iterable[Link]
    allowed: Setting = Setting.NONE


class AnomalyKind(ABC):
    """One kind of anomaly: its grouping and explanation."""

    NAME: ClassVar[str] = ""
    MEANING: ClassVar[str] = ""

    def about(
        self,
        record: SentRecord | ReadRecord | SharedRecord,
        offset: int,
        fact: AnomalyFact | None = None,
        *,
        other: int = -1,
        other_value: bytes | None = None,
        allowed: Setting = Setting.NONE,
    ) -> Finding:
        """A finding about a record that a client sent or received."""
        if isinstance(record, SentRecord):
            client, at_ms = record.producer, record.sent_ms
        else:
            client, at_ms = record.consumer, record.at_ms
        return Finding(
            name=self.NAME,
            partition=record.partition,
            client=client,
            offset=offset,
            value=record.value,
            other=other,
            fact=fact,
            allowed=allowed,
            other_value=other_value,
            at_ms=at_ms,
        )

    @abstractmethod
    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        """The story of the anomaly, from the records of the run."""


class PartitionAnomaly(AnomalyKind):
    """An anomaly of the records of one partition."""

    def follows(self, finding: Finding, before: Finding) -> bool:
        """Whether `finding` belongs to the anomaly of `before`: here, whether its offset is the
        next."""
        return is_next_offset(finding, before)

    @abstractmethod
    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        """The records of this anomaly, in the order in which neighbours are grouped."""


class LogAnomaly(PartitionAnomaly):
    """An anomaly of records that were sent, by their places in the final log, or their absence."""

    @abstractmethod
    def causes(self, facts: Facts, anomaly: Anomaly) -> Iterator[SendCause]:
        """The cause of each of its findings."""


class RunHistory(Struct, frozen=True):
    """The history of groups and transactions, and the content of all logs at the end.  `recorder`:
    None if only the clients' knowledge is searched; `left_offline`: partitions for which no leader
    will be elected any more."""

    ledger: Ledger
    logs: Mapping[Partition, FinalLog]
    transactions: Sequence[TransactionHistory] = ()
    recorder: Recorder | None = None
    left_offline: Sequence[OfflinePartition] = ()


class RunAnomaly(AnomalyKind):
    """An anomaly of a group, a transaction, or a whole partition."""

    @abstractmethod
    def find(self, run: RunHistory) -> Iterator[Finding]:
        """The findings; each is a separate anomaly."""


def in_transaction(history: TransactionHistory) -> InTransaction:
    """The fact that a record belongs to this transaction."""
    return InTransaction(history.transaction.number, history.transaction.producer)


def is_next_offset(finding: Finding, before: Finding) -> bool:
    """Whether two findings are neighbours in the log."""
    return finding.offset - before.offset == 1


def is_next_pair(finding: Finding, before: Finding) -> bool:
    """Whether two findings are neighbours in the log, with second offsets that are equal or
    neighbours, too."""
    return is_next_offset(finding, before) and finding.other - before.other in (0, 1)


ANOMALIES: Final[dict[str, AnomalyKind]] = {}
"""Every kind by name, in the order in which a verdict lists them.  Anomalies of records and
consumers have Jepsen's names if its workload has them."""

K = TypeVar("K", bound=type[AnomalyKind])


def anomaly(name: str, meaning: str) -> Callable[[K], K]:
    """Register a kind of anomaly under its name."""

    def register(cls: K) -> K:
        assert name not in ANOMALIES, name
        cls.NAME, cls.MEANING = name, meaning
        ANOMALIES[name] = cls()
        return cls

    return register


def grouped(kind: PartitionAnomaly, findings: Iterable[Finding]) -> list[Anomaly]:
    """The anomalies: one for each run of neighbouring findings of one client, in the given
    order."""
    groups: list[list[Finding]] = []
    open_groups: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        key = (finding.client, finding.fact, finding.allowed)
        group = open_groups.get(key)
        if group is not None and kind.follows(finding, group[-1]):
            group.append(finding)
        else:
            open_groups[key] = group = [finding]
            groups.append(group)
    return [anomaly_of(*group) for group in groups]


def anomaly_of(*group: Finding) -> Anomaly:
    """The anomaly of these neighbouring findings."""
    first, last = group[0], group[-1]
    return Anomaly(
        name=first.name,
        partition=first.partition,
        count=len(group),
        first=first.offset,
        last=last.offset,
        values=(first.value, last.value),
        client=first.client,
        allowed=first.allowed,
        at_ms=first.at_ms,
        other=first.other,
        last_other=last.other,
        other_value=first.other_value,
        fact=first.fact,
        findings=group,
    )
