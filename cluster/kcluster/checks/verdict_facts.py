"""The content of a verdict, as values.

Owns: these facts.  Never: finds them (verdict.py), words them (verdict_words.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.checks.anomalies import Anomaly
from kcluster.checks.availability import Window
from kcluster.checks.degraded import Degraded
from kcluster.checks.refusals import RefusedBySecurity
from kcluster.checks.violations import ExplainedViolation
from kcluster.clients.ledger import Partition
from kcluster.evidence.contents import Unreadable


class ErrorCount(Struct, frozen=True):
    """The number of times that a client received an error; `first_ms`: the time of the first."""

    client: str
    api: str
    error: str
    count: int
    first_ms: int


class Deleted(Struct, frozen=True):
    """Records that were deleted on purpose, and the way in which."""

    partition: Partition
    first: int
    last: int
    how: str = "by retention or DeleteRecords"


class VerdictFacts(Struct, frozen=True):
    """The facts of a verdict.  `outcome`: valid, invalid or unknown; `reason`: in words.  Times in
    ms of the cluster's clock; times in lines count from `began_ms`.  `read`: the number of
    different records that were read; `read_again`: the number of further reads of them, by any
    consumer.

    The applications' use of the records that they read is not judged; `has_outside_readers`:
    whether any consumer keeps no ledger of its own.
    """

    outcome: str
    reason: str
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
    """The time from which on sends and events were judged; None: from the beginning."""
    refused: tuple[RefusedBySecurity, ...] = ()
    """The clients that could not log in or lacked a right.  What they did not write is failed."""
    partition_counts: dict[str, int] = {}
    """The number of partitions of each topic in `windows` and `degraded`."""
