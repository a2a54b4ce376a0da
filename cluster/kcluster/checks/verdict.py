"""The verdict of a run: valid, invalid or unknown, with every anomaly, its causes, and the times in
which a partition was not available to its clients.

Owns: what makes a run valid, and how a verdict reads as text and as JSON.  Never: decides whether a
run went as its scenario expected (scenario/ does).
Kafka: no counterpart; the three outcomes are Jepsen's and Maelstrom's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from kcluster.broker.node import BrokerNode
from kcluster.checks.anomalies import Anomaly, explained, find_anomalies, find_in_groups
from kcluster.checks.anomalies.lost_write import LostWrite, lost_range
from kcluster.checks.availability import Window, find_windows
from kcluster.checks.settings import Setting
from kcluster.checks.violations import ExplainedViolation, explained_violations
from kcluster.clients.ledger import Ledger, Outcome, Partition
from kcluster.events.words.base import counted
from kcluster.evidence.client_names import keeps_a_ledger
from kcluster.evidence.contents import Unreadable
from kcluster.evidence.finals import read_finals
from kcluster.evidence.group_history import share_leaderships
from kcluster.evidence.history import Link, shown
from kcluster.evidence.lookups import Facts
from kcluster.evidence.outside import FROM_THE_START, IsInside, outside_ledger
from kcluster.evidence.recorder import Judged, Recorder
from kcluster.invariants.replies import Patience
from kcluster.protocol.errors import ErrorCode

VALID: Final = "valid"
INVALID: Final = "invalid"
UNKNOWN: Final = "unknown"
LATE_MS: Final = 20_000
"""On a real clock the machine may be busy."""
LATE_VIRTUAL_MS: Final = 10
STALL_MS: Final = 5_000
"""A high watermark that waits for nothing may stand still for this long: followers fetch twice a
second, and retry after a second."""
OVERDUE_MS: Final = 1_000
"""A transaction may be ended this much later than it is due: markers are repeated every 100 ms."""
PATIENCE_MS: Final = {"kafka": 1_000, "fast": 50, "slow": 1_000}
"""By profile: an answer that takes longer counts as an outage."""
NOT_JUDGED: Final = "not judged: what applications did with the records that they read"
MAX_SHOWN: Final = 20
"""A terminal shows this many lines of each kind; JSON has all."""


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


class InvalidRunError(AssertionError):
    """A verdict that must be valid is not; str() is its summary."""


class Verdict(Struct, frozen=True):
    """`outcome`: valid, invalid, unknown; `reason` in words.  Times in ms of the cluster's clock;
    `began_ms` is where `lines` count from.  `read`: how many different records were read;
    `read_again`: further reads of the same ones, by any consumer.

    True if valid: a run that cannot be judged is not known to be good, so `assert verdict` fails
    for it, too.  Not judged is what applications did with the records that they read;
    `has_outside_readers`: some of them keep no ledger of their own.
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

    def __bool__(self) -> bool:
        return self.outcome == VALID

    def __repr__(self) -> str:
        return "\n".join(self.summary())

    def check(self) -> None:
        """InvalidRunError, with the lines of `summary`, unless valid."""
        __tracebackhide__ = True
        if not self:
            raise InvalidRunError("\n".join(self.summary()))

    def summary(self) -> list[str]:
        """At most three lines: the outcome, the first finding, what led to it."""
        lines = [f"{self.outcome}: {self.reason}"]
        if self.anomalies:
            first, more = self.anomalies[0], len(self.anomalies) - 1
            lines.append(f"{first}" + (f"; and {counted(more, 'more anomaly')}" if more else ""))
            links = [f"{x.at_ms - self.began_ms:+} ms {x.text}" for x in first.chain[-2:]]
            return [*lines, f"because: {'; '.join(links)}"] if links else lines
        if self.violations:
            return [*lines, self._violation_line(self.violations[0])]
        return [*lines, self._counts_line(), *self._not_judged()]

    def counts(self) -> dict[str, int]:
        """By name of the anomalies that occurred, how many records they concern."""
        counts: dict[str, int] = {}
        for anomaly in self.anomalies:
            counts[anomaly.name] = counts.get(anomaly.name, 0) + anomaly.count
        return counts

    def unavailable_ms(self, kind: str) -> int:
        """The total time of windows of this kind, `writes` or `reads`, of the worst partition."""
        total: dict[Partition, int] = {}
        for window in self.windows:
            if window.kind == kind:
                total[window.partition] = total.get(window.partition, 0) + window.duration_ms
        return max(total.values(), default=0)

    def to_json(self) -> str:
        """The whole verdict; values of records as text."""
        built = msgspec.to_builtins(self, builtin_types=(bytes,))
        for anomaly in built["anomalies"]:
            anomaly["values"] = [shown(value) for value in anomaly["values"]]
        return msgspec.json.encode(built).decode()

    def lines(self) -> list[str]:
        """For a terminal: the outcome, the counts, then each finding with what led to it."""
        lines = [f"{self.outcome}: {self.reason}", self._counts_line(), *self._not_judged()]
        if self.merged:
            lines.append(
                f"of the first {self.merged:,} records, until"
                f" {self.merged_before_ms - self.began_ms:+} ms, it was judged only whether they"
                " are in the log"
            )
        if self.dropped_events:
            lines.append(f"the oldest {self.dropped_events:,} events are no longer kept")
        lines += [_unreadable_line(one) for one in self.unreadable[:MAX_SHOWN]]
        lines += _more(len(self.unreadable), "batches that cannot be read")
        for anomaly in self.anomalies[:MAX_SHOWN]:
            lines.append(f"{anomaly}{_allowed(anomaly)}")
            lines += [self._line(link) for link in anomaly.chain]
        lines += _more(len(self.anomalies), "anomalies")
        for broken in self.violations[:MAX_SHOWN]:
            lines.append(self._violation_line(broken))
            lines += [self._line(link) for link in broken.chain]
        lines += _more(len(self.violations), "violations")
        for window in self.windows[:MAX_SHOWN]:
            lines.append(window.line(self.began_ms))
            lines += [self._line(link) for link in window.reasons]
        lines += _more(len(self.windows), "windows")
        lines += [
            f"deleted {gone.how}: {topic}-{number}, offsets {gone.first} to {gone.last}"
            for gone in self.deleted
            for topic, number in (gone.partition,)
        ]
        lines += [
            f"{error.client} got {error.error} for its {error.api}"
            f" {error.count:,} time{'s' if error.count > 1 else ''}"
            for error in self.errors[:MAX_SHOWN]
        ]
        return lines + _more(len(self.errors), "errors")

    def _counts_line(self) -> str:
        again = f" (and {counted(self.read_again, 'read')} again)" if self.read_again else ""
        return (
            f"sent {self.sent:,}  acked {self.acked:,}  failed {self.failed:,}"
            f"  unknown {self.unknown:,}  read {self.read:,}{again}"
        )

    def _not_judged(self) -> list[str]:
        return [NOT_JUDGED] if self.has_outside_readers else []

    def _violation_line(self, broken: ExplainedViolation) -> str:
        at = f"{broken.at_ms - self.began_ms:+} ms"
        return f"{broken.name} at {at}: {broken.subject}: {broken.text}"

    def _line(self, link: Link) -> str:
        return f"  {link.at_ms - self.began_ms:>+8} ms  {link.text}"


def _allowed(anomaly: Anomaly) -> str:
    """The setting that allows an anomaly; a lost write's own text has the acks."""
    is_in_text = anomaly.name == LostWrite.NAME and anomaly.allowed in (
        Setting.ACKS_0,
        Setting.ACKS_1,
    )
    return f" ({anomaly.allowed})" if anomaly.allowed and not is_in_text else ""


def _unreadable_line(one: Unreadable) -> str:
    topic, number = one.partition
    line = f"cannot be read: {topic}-{number}, offsets {one.first} to {one.last}: {one.detail}"
    return line if one.error == ErrorCode.NONE.name else f"{line}; consumers get {one.error}"


def _more(count: int, what: str) -> list[str]:
    return [f"... and {count - MAX_SHOWN:,} more {what}"] if count > MAX_SHOWN else []


def judge(
    recorder: Recorder,
    ledger: Ledger,
    *,
    healed: bool = True,
    drained: bool = False,
    began_ms: int | None = None,
    clients: Mapping[str, int] | None = None,
    patience_ms: int | None = None,
    since_ms: int = FROM_THE_START,
    late_ms: int = LATE_MS,
) -> Verdict:
    """The verdict of a run that is over.

    `healed`: everything was repaired, and the cluster had the time to settle; `drained`: consumers
    had the time to read to the end.  `began_ms`: when the run began, for its lines; None: when the
    recorder was attached.  `clients`: their ids in the fabric by name.  `patience_ms`: an attempt
    that is unanswered for longer counts as failed for availability; None: PATIENCE_MS by profile.
    `late_ms`: how much later than required a broker may answer; nothing delays it on a virtual
    clock.  `since_ms`: only what was sent, read and violated since then counts, for a cluster that
    was used before.
    """
    recorder.check_last_step()
    recorder.invariants.check_unanswered(recorder.dispatcher.now_ms, _patience(recorder, late_ms))
    recorder.check_stalls(STALL_MS + late_ms)
    recorder.check_overdue(OVERDUE_MS + late_ms)
    outside, names = outside_ledger(recorder, ledger, _inside_test(ledger), since_ms)
    whole = _joined(ledger, outside)
    finals = read_finals(recorder, names)
    facts = Facts(recorder, whole, clients, names)
    whole.share_leaderships = share_leaderships(recorder)
    present = _of_present_topics(recorder, whole)
    anomalies = find_anomalies(present, finals.logs, drained) + find_in_groups(recorder)
    anomalies = explained(facts, [x for x in anomalies if x.at_ms < 0 or x.at_ms >= since_ms])
    anomalies += [lost_range(missing) for missing in recorder.missing(finals.logs)]
    broken = (*recorder.invariants.violations, *finals.violations)
    violations = explained_violations(facts, [x for x in broken if x.at_ms >= since_ms])
    windows = [x for x in _windows(facts, patience_ms) if x.from_ms >= since_ms]
    whole = _since(whole, since_ms)
    recorder.judged = Judged(whole, finals.logs, names)
    merged, merged_acked = recorder.merged_counts()
    unreadable = _unreadable(recorder)
    outcome, reason = _outcome(
        recorder, whole, anomalies, violations, finals.offline, unreadable, healed
    )
    outcomes = [send.outcome for send in whole.sends]
    different = len({(read.partition, read.offset, read.value) for read in whole.reads})
    return Verdict(
        outcome=outcome,
        reason=reason,
        sent=len(outcomes) + merged,
        acked=outcomes.count(Outcome.ACKED) + merged_acked,
        failed=outcomes.count(Outcome.FAILED),
        unknown=outcomes.count(Outcome.UNKNOWN) + merged - merged_acked,
        read=different,
        began_ms=recorder.began_ms if began_ms is None else began_ms,
        ended_ms=recorder.dispatcher.now_ms,
        anomalies=tuple(anomalies),
        violations=violations,
        windows=tuple(windows),
        errors=tuple(_errors(whole)),
        deleted=(*(Deleted(*x) for x in finals.deleted), *_deleted_topics(recorder, since_ms)),
        offline=tuple(finals.offline),
        unreadable=unreadable,
        read_again=len(whole.reads) - different,
        has_outside_readers=bool(outside.reads),
        merged=merged,
        merged_before_ms=recorder.merged_before_ms,
        dropped_events=recorder.dropped_notes,
    )


def _inside_test(ledger: Ledger) -> IsInside:
    """Tells, by client id, whether a client keeps the ledger itself."""
    own = dict.fromkeys(_client_names(ledger))
    known: dict[str | None, bool] = {}

    def is_inside(client_id: str | None) -> bool:
        inside = known.get(client_id)
        if inside is None:
            inside = known[client_id] = client_id in own or keeps_a_ledger(client_id)
        return inside

    return is_inside


def _windows(facts: Facts, patience_ms: int | None) -> list[Window]:
    profile = facts.recorder.plan.topology.profile
    usual_ms = PATIENCE_MS.get(profile, PATIENCE_MS["kafka"])
    return find_windows(facts, usual_ms if patience_ms is None else patience_ms)


def _patience(recorder: Recorder, late_ms: int) -> Patience:
    """The patience of the broker that waits longest."""
    nodes = (process.node for process in recorder.dispatcher.processes.values())
    waits_ms = [
        max(node.config.request_timeout_ms, node.config.offsets_commit_timeout_ms)
        for node in nodes
        if isinstance(node, BrokerNode)
    ]
    return Patience(late_ms, max(waits_ms, default=0))


def _client_names(ledger: Ledger) -> list[str]:
    return [
        *(send.producer for send in ledger.sends),
        *(read.consumer for read in ledger.reads),
        *(error.client for error in ledger.errors),
    ]


def _joined(inside: Ledger, outside: Ledger) -> Ledger:
    if not (outside.sends or outside.reads or outside.commits or outside.errors):
        return inside
    whole = inside.without_records()
    whole.read_committed |= outside.read_committed
    whole.sends = [*inside.sends, *outside.sends]
    whole.reads = [*inside.reads, *outside.reads]
    whole.commits = [*inside.commits, *outside.commits]
    whole.errors = [*inside.errors, *outside.errors]
    return whole


def _since(ledger: Ledger, since_ms: int) -> Ledger:
    if since_ms == FROM_THE_START:
        return ledger
    later = ledger.without_records()
    later.sends = [send for send in ledger.sends if send.sent_ms >= since_ms]
    later.reads = [read for read in ledger.reads if read.at_ms >= since_ms]
    later.errors = [error for error in ledger.errors if error.at_ms >= since_ms]
    return later


def _of_present_topics(recorder: Recorder, ledger: Ledger) -> Ledger:
    """Without the records of deleted topics: a topic of the same name may exist, and need not hold
    them."""
    gone: dict[Partition, set[bytes | None]] = {}
    for observed in recorder.partitions.values():
        if observed.deleted_ms >= 0:
            values = gone.setdefault((observed.topic, observed.partition), set())
            for append in observed.appends:
                values.update(value for _, value in recorder.contents.of(append.batch))
    if not gone:
        return ledger
    present = ledger.without_records()
    present.sends = [x for x in ledger.sends if x.value not in gone.get(x.partition, ())]
    present.reads = [x for x in ledger.reads if x.value not in gone.get(x.partition, ())]
    present.commits = [x for x in ledger.commits if x.partition not in gone]
    present.errors = ledger.errors
    return present


def _deleted_topics(recorder: Recorder, since_ms: int) -> list[Deleted]:
    return [
        Deleted(
            (observed.topic, observed.partition),
            0,
            observed.appends[-1].last_offset,
            "with their topic",
        )
        for observed in recorder.partitions.values()
        if observed.deleted_ms >= max(0, since_ms) and observed.appends
    ]


def _outcome(
    recorder: Recorder,
    ledger: Ledger,
    anomalies: list[Anomaly],
    violations: tuple[ExplainedViolation, ...],
    offline: list[str],
    unreadable: tuple[Unreadable, ...],
    healed: bool,
) -> tuple[str, str]:
    counts: dict[str, int] = {}
    for anomaly in anomalies:
        counts[anomaly.name] = counts.get(anomaly.name, 0) + anomaly.count
    reasons = [f"{count:,} {name}" for name, count in counts.items()]
    for violation in violations:
        if violation.name not in counts:
            counts[violation.name] = 1
            reasons.append(f"invariant {violation.name} broken")
    if reasons:
        return INVALID, ", ".join(reasons)
    if not ledger.sends and not unreadable and recorder.merged_before_ms < 0:
        return UNKNOWN, "nothing was sent"
    if not healed:
        return UNKNOWN, "the cluster was not healed at the end"
    if offline:
        return UNKNOWN, f"without a leader at the end: {', '.join(offline)}"
    if unreadable:
        return UNKNOWN, f"{counted(len(unreadable), 'batch')} of records cannot be read"
    return VALID, "no anomaly" + (", and every invariant held" if recorder.checks_steps else "")


def _unreadable(recorder: Recorder) -> tuple[Unreadable, ...]:
    """Everything that was appended and could not be read, in order of partition and offset."""
    found: dict[Unreadable, None] = {}
    for observed in recorder.partitions.values():
        batches = [append.batch for append in observed.appends]
        partition = (observed.topic, observed.partition)
        found |= dict.fromkeys(recorder.contents.unreadable_in(partition, batches))
    return tuple(sorted(found, key=lambda one: (one.partition, one.first)))


def _errors(ledger: Ledger) -> list[ErrorCount]:
    times_of: dict[tuple[str, str, str], list[int]] = {}
    for error in ledger.errors:
        times_of.setdefault((error.client, error.api, error.error), []).append(error.at_ms)
    return [ErrorCount(*key, len(times), times[0]) for key, times in times_of.items()]
