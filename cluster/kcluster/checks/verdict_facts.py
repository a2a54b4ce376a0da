"""What a verdict consists of, as values.

Owns: these facts.  Never: finds them (verdict.py), words them (verdict_words.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.checks.anomalies import Anomaly
from kcluster.checks.availability import Window
from kcluster.checks.degraded import Degraded
from kcluster.checks.violations import ExplainedViolation
from kcluster.clients.ledger import Partition
from kcluster.evidence.contents import Unreadable


class ErrorCount(Struct, frozen=True):
    """How often a client got an error; `first_ms`: the first time."""

    client: str
    api: str
    error: str
    count: int
    first_ms: int


class Deleted(Struct, frozen=True):
    """Records that were deleted on purpose, and how."""

    partition: Partition
    first: int
    last: int
    how: str = "by retention or DeleteRecords"


class VerdictFacts(Struct, frozen=True):
    """`outcome`: valid, invalid, unknown; `reason` in words.  Times in ms of the cluster's clock;
    `began_ms` is where lines count from.  `read`: how many different records were read;
    `read_again`: further reads of the same ones, by any consumer.

    Not judged is what applications did with the records that they read; `has_outside_readers`: some
    of them keep no ledger of their own.
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
    """How many of the records sent, the oldest, were judged as ranges of offsets: whether they are
    in the log, not by value and not what was read of them."""
    merged_before_ms: int = -1
    """Until when; -1 for none."""
    unreadable: tuple[Unreadable, ...] = ()
    """What is in the logs, and cannot be read: it was not judged."""
    dropped_events: int = 0
    """How many events, the oldest, were no longer kept."""
    degraded: tuple[Degraded, ...] = ()
    """The times in which partitions were offline, elected uncleanly or below min.insync.replicas,
    whether clients used them or not."""
    since_ms: int | None = None
    """Only what was sent and what happened since then was judged; None: everything."""
    partition_counts: dict[str, int] = {}
    """How many partitions the topics in `windows` and `degraded` have."""
