"""The content of a verdict, as values.

Owns: these facts, and the outcome that follows from them.  Never: finds them (verdict.py), words
them (verdict_words.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kcluster.checks.anomalies import Anomaly
from kcluster.checks.availability import Window
from kcluster.checks.degraded import Degraded
from kcluster.checks.refusals import RefusedBySecurity
from kcluster.checks.violations import ExplainedViolation
from kcluster.clients.ledger import Partition
from kcluster.evidence.contents import Unreadable

VALID: Final = "valid"
INVALID: Final = "invalid"
UNKNOWN: Final = "unknown"


class ErrorCount(Struct, frozen=True):
    """The number of times that a client received an error; `first_ms`: the time of the first."""

    client: str
    api: str
    error: str
    count: int
    first_ms: int


class Deletion(StrEnum):
    """A way in which records are deleted on purpose."""

    OF_RECORDS = "by retention or DeleteRecords"
    OF_TOPIC = "with their topic"


class Deleted(Struct, frozen=True):
    """Records that were deleted on purpose, and the way in which."""

    partition: Partition
    first: int
    last: int
    how: Deletion = Deletion.OF_RECORDS


class RemedyKind(StrEnum):
    """The operation that remedies."""

    START = "start"
    """Start brokers, because some are down."""
    RESUME = "resume"
    """Resume brokers, because some are paused."""
    HEAL = "heal"
    """Heal links, because some are cut or shaped."""
    WAIT = "wait"
    """Wait: everything is repaired, and replicas catch up."""
    REPAIR = "repair"
    """Repair everything at once, for a test's cluster."""


class Remedy(Struct, frozen=True):
    """An operation that would end an "unknown".  `brokers`: the brokers to which it applies."""

    kind: RemedyKind
    brokers: tuple[int, ...] = ()


class Ground(StrEnum):
    """The ground of an outcome; an earlier one outweighs a later one."""

    FINDINGS = "findings"
    UNSEEN = "unseen"
    NOTHING_SENT = "nothing_sent"
    NOT_HEALED = "not_healed"
    OFFLINE = "offline"
    UNREADABLE = "unreadable"
    NO_FINDINGS = "no_findings"


OUTCOMES: Final = {Ground.FINDINGS: INVALID, Ground.NO_FINDINGS: VALID}
"""The outcome by its ground, where it is not unknown."""


class VerdictFacts(Struct, frozen=True):
    """The facts of a verdict.  Times in ms of the cluster's clock; times in lines count from
    `began_ms`.  `read`: the number of different records that were read; `read_again`: the number of
    further reads of them, by any consumer.

    The applications' use of the records that they read is not judged; `has_outside_readers`:
    whether any consumer keeps no ledger of its own.
    """

    sent: int
    acked: int
    failed: int
    unknown: int
    read: int
    began_ms: int
    ended_ms: int
    anomalies: tuple[Anomaly, ...] = ()
    violations: tuple[ExplainedViolation, ...] = ()
    windows: tuple[Window, ...] = ()
    errors: tuple[ErrorCount, ...] = ()
    deleted: tuple[Deleted, ...] = ()
    offline: tuple[str, ...] = ()
    """The partitions without a leader at the end, or whose log no broker of a real Kafka gave."""
    healed: bool = True
    """Whether everything was repaired, and the cluster had the time to settle."""
    remedies: tuple[Remedy, ...] = ()
    """The operations that would end an "unknown" of a running cluster."""
    checks_steps: bool = True
    """Whether the invariants were checked after each step."""
    sees_requests: bool = True
    """Whether clients from outside are judged, by what the brokers saw of them; not on a real
    Kafka."""
    read_again: int = 0
    has_outside_readers: bool = False
    merged: int = 0
    """The number of the oldest sent records, which were judged only as ranges of offsets: for
    whether they are in the log, without their values and reads."""
    merged_before_ms: int = -1
    """The time before which records were merged; -1 for none."""
    unreadable: tuple[Unreadable, ...] = ()
    """Records in the logs that cannot be read, and were not judged."""
    dropped_events: int = 0
    """The number of the oldest events that are no longer kept."""
    degraded: tuple[Degraded, ...] = ()
    """The times in which partitions were offline, elected uncleanly or below min.insync.replicas,
    whether clients used these partitions or not."""
    since_ms: int | None = None
    """The time since which sends and events are judged; None: the beginning."""
    refused: tuple[RefusedBySecurity, ...] = ()
    """The clients that could not log in or lacked a right.  What they did not write is failed."""
    partition_counts: dict[str, int] = {}
    """The number of partitions of each topic in `windows` and `degraded`."""

    @property
    def ground(self) -> Ground:
        """The ground of the outcome: the first that applies."""
        if self.anomalies or self.violations:
            return Ground.FINDINGS
        if not (self.sent or self.unreadable):
            return Ground.NOTHING_SENT if self.sees_requests else Ground.UNSEEN
        if not self.healed:
            return Ground.NOT_HEALED
        if self.offline:
            return Ground.OFFLINE
        return Ground.UNREADABLE if self.unreadable else Ground.NO_FINDINGS

    @property
    def outcome(self) -> str:
        """valid, invalid, or unknown: a run without findings that is not known to be valid."""
        return OUTCOMES.get(self.ground, UNKNOWN)

    def counts(self) -> dict[str, int]:
        """The number of records that each anomaly concerns, by its name, for anomalies that
        occurred."""
        return counts_of(self.anomalies)


def counts_of(anomalies: Iterable[Anomaly]) -> dict[str, int]:
    """The number of records that these anomalies concern, by name."""
    counts: Counter[str] = Counter()
    for anomaly in anomalies:
        counts[anomaly.name] += anomaly.count
    return dict(counts)
