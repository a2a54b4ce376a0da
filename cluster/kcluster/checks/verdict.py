"""The verdict of a run: valid, invalid or unknown, with every anomaly, its causes, and the times in
which a partition was not available to its clients, or degraded.

Owns: making a verdict of a run, and its JSON.  Never: compares a run with its scenario's
expectations (scenario/ does), words a verdict (verdict_words.py); the outcome follows from its
facts (verdict_facts.py).  Kafka: no counterpart; the three outcomes are Jepsen's and Maelstrom's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final

import msgspec
from msgspec.structs import replace

from kcluster.checks.anomalies import Anomaly, anomalies_of_sends, explained, find_anomalies
from kcluster.checks.anomalies.lost_write import lost_range
from kcluster.checks.asked import EVERYTHING, Asked
from kcluster.checks.availability import Window, find_windows
from kcluster.checks.degraded import Degraded, find_degraded
from kcluster.checks.older_metadata import late_brokers
from kcluster.checks.refusals import find_refused
from kcluster.checks.verdict_facts import VALID, Deleted, Deletion, ErrorCount, Remedy, VerdictFacts
from kcluster.checks.verdict_words import (
    all_lines,
    degraded_lines,
    outage_lines,
    reason_text,
    screen_lines,
    summary_lines,
)
from kcluster.checks.violations import ExplainedViolation, explained_violations
from kcluster.clients.ledger import Ledger, Outcome, Partition, ReadRecord
from kcluster.evidence.client_names import keeps_a_ledger
from kcluster.evidence.contents import Unreadable
from kcluster.evidence.finals import Finals, read_finals
from kcluster.evidence.group_history import delivery_limits, share_leaderships
from kcluster.evidence.history import shown
from kcluster.evidence.lookups import Facts
from kcluster.evidence.outside import FROM_THE_START, IsInside, outside_ledger
from kcluster.evidence.recorder import Judged, Recorder
from kcluster.invariants.replies import Patience
from kcluster.invariants.violations import Violation
from kcluster.json_types import JsonObject

LATE_MS: Final = 20_000
"""The delay of a broker's answer that is normal on a real clock, because the machine may be
busy."""
LATE_VIRTUAL_MS: Final = 10
STALL_MS: Final = 5_000
"""The time for which a high watermark may stand still although it has nothing to wait for:
followers fetch twice a second, and retry after a second."""
OVERDUE_MS: Final = 1_000
"""The delay that is normal for the end of a transaction: markers are repeated every 100 ms."""
MESSAGES: Final = 16
"""The most messages in a row that an end of a transaction, or a step of a high watermark, takes:
to a leader and back, and two fetches of a follower for each of two logs, with a retry."""
PATIENCE_MS: Final = {"kafka": 1_000, "fast": 50, "slow": 1_000}
"""The time after which a missing answer counts as an outage, in ms by profile."""


class InvalidRunError(AssertionError):
    """The error for a verdict that must be valid and is not; str() is its summary."""


class Verdict(VerdictFacts, frozen=True):
    """A verdict: the facts, and their texts.

    A verdict is true only if it is valid: a run that cannot be judged is not known to be good, so
    `assert verdict` fails for it, too.
    """

    @property
    def reason(self) -> str:
        """The ground of the outcome, for people; no code reads it."""
        return reason_text(self)

    def __bool__(self) -> bool:
        return self.outcome == VALID

    def __repr__(self) -> str:
        return "\n".join(self.summary())

    def check(self) -> None:
        """Raise InvalidRunError, with the lines of `summary`, unless valid."""
        __tracebackhide__ = True
        if not self:
            raise InvalidRunError("\n".join(self.summary()))

    def summary(self) -> list[str]:
        """At most four lines: the outcome, the first finding, the last step that led to it; for a
        valid run the degraded partitions, and the counts."""
        return summary_lines(self)

    def unavailable_ms(self, kind: str) -> int:
        """The total time of windows of this kind (`writes` or `reads`) in the worst partition."""
        total: dict[Partition, int] = {}
        for window in self.windows:
            if window.kind == kind:
                total[window.partition] = total.get(window.partition, 0) + window.duration_ms
        return max(total.values(), default=0)

    def to_json(self) -> str:
        """The whole verdict; values of records as text.  `degraded_lines`, `outage_lines`: the
        lines of a screen about `degraded` and `windows`."""
        built: JsonObject = {"outcome": self.outcome, "reason": self.reason}
        built |= msgspec.to_builtins(self, builtin_types=(bytes,))
        for anomaly, made in zip(self.anomalies, built["anomalies"], strict=True):
            for internal in ("findings", "last_other", "other_value"):
                del made[internal]
            made["text"] = anomaly.text
            made["values"] = [shown(value) for value in anomaly.values]
            made["chain"] = [entry.as_json() for entry in anomaly.chain]
        for violation, made in zip(self.violations, built["violations"], strict=True):
            made["text"] = violation.text
            made["chain"] = [entry.as_json() for entry in violation.chain]
        for window, made in zip(self.windows, built["windows"], strict=True):
            made["reasons"] = [entry.as_json() for entry in window.reasons]
        built["degraded_lines"] = list(degraded_lines(self))
        built["outage_lines"] = list(outage_lines(self))
        return msgspec.json.encode(built).decode()

    def lines(self, *, verbose: bool = False) -> list[str]:
        """The lines for a terminal: degraded partitions, outages by their origins, anomalies with
        their chains, the counts, and the answer as the last line.  At most a screen, unless
        `verbose`."""
        return all_lines(self) if verbose else screen_lines(self)


def judge(
    recorder: Recorder,
    ledger: Ledger,
    *,
    healed: bool = True,
    is_final: bool = False,
    drained: bool = False,
    began_ms: int | None = None,
    clients: Mapping[str, int] | None = None,
    patience_ms: int | None = None,
    since_ms: int = FROM_THE_START,
    late_ms: int = LATE_MS,
    remedies: Sequence[Remedy] = (),
    asked: Asked = EVERYTHING,
) -> Verdict:
    """The verdict of a run that is over.

    `healed`: whether everything was repaired, and the cluster had the time to settle; `is_final`:
    whether every broker runs, and none will be elected leader any more.  `remedies`: the operations
    that would end an "unknown" of a running cluster.  `drained`: whether consumers had time to read
    to the end.  `began_ms`: the origin of times in lines; None: the recorder's.  `clients`: the
    clients' ids in the fabric, by name.  `patience_ms`: an attempt unanswered for longer counts as
    failed in availability; None: PATIENCE_MS of the profile.  `late_ms`: the delay of an answer.

    `since_ms`: only sends, reads, violations and degraded times from this moment on are judged, for
    a cluster that was used before; an earlier record's loss is not.  `asked`: what is read of it.
    """
    _finish(recorder, late_ms)
    outside, names = outside_ledger(recorder, ledger, _inside_test(ledger), since_ms)
    whole = _joined(ledger, outside)
    finals = read_finals(recorder, names)
    facts = Facts(recorder, whole, clients, names)
    _add_share_groups(whole, recorder)
    anomalies = _anomalies(facts, finals, is_final, drained, since_ms)
    windows = [x for x in _windows(facts, patience_ms, asked) if x.from_ms >= since_ms]
    degraded = find_degraded(facts, since_ms, explains=asked.reasons) if asked.degraded else []
    whole = _since(whole, since_ms)
    recorder.judged = Judged(whole, finals.logs, names, anomalies_of_sends(facts, anomalies))
    merged, merged_acked = recorder.merged_counts(since_ms)
    outcomes = Counter(send.outcome for send in whole.sends)
    different = len({(read.partition, read.offset, read.value) for read in whole.reads})
    return Verdict(
        sent=len(whole.sends) + merged,
        acked=outcomes[Outcome.ACKED] + merged_acked,
        failed=outcomes[Outcome.FAILED],
        unknown=outcomes[Outcome.UNKNOWN] + merged - merged_acked,
        read=different,
        began_ms=recorder.began_ms if began_ms is None else began_ms,
        ended_ms=recorder.dispatcher.now_ms,
        anomalies=tuple(replace(each, findings=()) for each in anomalies),
        violations=_violations(facts, finals.violations, since_ms),
        windows=tuple(windows),
        errors=tuple(_errors(whole)),
        refused=find_refused(whole, late_brokers(recorder.notes, recorder.plan.fabric.clients)),
        deleted=(*(Deleted(*x) for x in finals.deleted), *_deleted_topics(recorder, since_ms)),
        offline=_unavailable(finals),
        healed=healed,
        remedies=tuple(remedies),
        checks_steps=recorder.checks_steps,
        sees_requests=recorder.sees_requests,
        unreadable=_unreadable(recorder),
        read_again=len(whole.reads) - different,
        has_outside_readers=bool(outside.reads),
        merged=merged,
        merged_before_ms=recorder.merged_before_ms if merged else -1,
        dropped_events=recorder.dropped_notes,
        degraded=tuple(degraded),
        since_ms=None if since_ms == FROM_THE_START else since_ms,
        partition_counts=_partition_counts(recorder, [*windows, *degraded]),
    )


def _anomalies(
    facts: Facts, finals: Finals, is_final: bool, drained: bool, since_ms: int
) -> list[Anomaly]:
    recorder = facts.recorder
    present = _reads_since(_of_present_topics(recorder, facts.ledger), since_ms)
    left_offline = finals.offline if is_final else ()
    found = find_anomalies(present, finals.logs, drained, recorder, left_offline)
    anomalies = explained(facts, [x for x in found if x.at_ms < 0 or x.at_ms >= since_ms])
    return [*anomalies, *map(lost_range, recorder.missing(finals.logs, since_ms))]


def _violations(
    facts: Facts, final: Sequence[Violation], since_ms: int
) -> tuple[ExplainedViolation, ...]:
    broken = (*facts.recorder.invariants.violations, *final)
    return explained_violations(facts, [x for x in broken if x.at_ms >= since_ms])


def _finish(recorder: Recorder, late_ms: int) -> None:
    """Do the checks that are done once, at the end."""
    recorder.read_logs()
    recorder.check_last_step()
    recorder.read_min_isr()
    recorder.invariants.check_unanswered(recorder.dispatcher.now_ms, _patience(recorder, late_ms))
    recorder.invariants.check_fenced()
    recorder.invariants.check_compacted(recorder.dispatcher.now_ms)
    recorder.invariants.check_epochs(recorder.dispatcher.now_ms)
    recorder.check_logs()
    late_ms += round(MESSAGES * recorder.plan.topology.network.slowest_ms)
    recorder.check_stalls(STALL_MS + late_ms)
    recorder.check_overdue(OVERDUE_MS + late_ms)


def _partition_counts(recorder: Recorder, outages: Sequence[Window | Degraded]) -> dict[str, int]:
    topics = {outage.partition[0] for outage in outages}
    counts: dict[str, int] = dict.fromkeys(sorted(topics), 0)
    for topic, _ in recorder.present():
        if topic in counts:
            counts[topic] += 1
    return counts


def _inside_test(ledger: Ledger) -> IsInside:
    """Return a function that decides, by client id, whether a client keeps its own ledger."""
    own = dict.fromkeys(_client_names(ledger))
    known: dict[str | None, bool] = {}

    def is_inside(client_id: str | None) -> bool:
        inside = known.get(client_id)
        if inside is None:
            inside = known[client_id] = client_id in own or keeps_a_ledger(client_id)
        return inside

    return is_inside


def _add_share_groups(ledger: Ledger, recorder: Recorder) -> None:
    """Add the brokers' knowledge of the share groups that had deliveries."""
    ledger.share_leaderships = share_leaderships(recorder)
    ledger.delivery_limits = delivery_limits(recorder, {one.group for one in ledger.deliveries})


def _windows(facts: Facts, patience_ms: int | None, asked: Asked) -> list[Window]:
    if not asked.windows:
        return []
    profile = facts.recorder.plan.topology.profile
    usual_ms = facts.recorder.patience_ms or PATIENCE_MS.get(profile, PATIENCE_MS["kafka"])
    patience_ms = usual_ms if patience_ms is None else patience_ms
    return find_windows(facts, patience_ms, explains=asked.reasons)


def _patience(recorder: Recorder, late_ms: int) -> Patience:
    """The patience of the broker that waits longest."""
    waits_ms = [
        max(node.config.request_timeout_ms, node.config.offsets_commit_timeout_ms)
        for node in recorder.dispatcher.brokers()
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
    whole.late_starts |= outside.late_starts
    whole.positions = inside.positions
    whole.sends = [*inside.sends, *outside.sends]
    whole.reads = [*inside.reads, *outside.reads]
    whole.commits = [*inside.commits, *outside.commits]
    whole.errors = [*inside.errors, *outside.errors]
    return whole


def _reads_since(ledger: Ledger, since_ms: int) -> Ledger:
    """The ledger's reads from `since_ms` on, with the sends of the whole run. Without the earlier
    sends, the logs would seem to hold records that no producer had sent."""
    if since_ms == FROM_THE_START:
        return ledger
    later = copy(ledger)
    later.reads = [read for read in ledger.reads if read.at_ms >= since_ms]
    return later


def _since(ledger: Ledger, since_ms: int) -> Ledger:
    if since_ms == FROM_THE_START:
        return ledger
    later = ledger.without_records()
    later.sends = [send for send in ledger.sends if send.sent_ms >= since_ms]
    later.reads = [read for read in ledger.reads if read.at_ms >= since_ms]
    later.errors = [error for error in ledger.errors if error.at_ms >= since_ms]
    later.positions = [at for at in ledger.positions if at.at_ms >= since_ms]
    return later


def _of_present_topics(recorder: Recorder, ledger: Ledger) -> Ledger:
    """The ledger without the records of deleted topics: a topic that has the same name now need not
    hold them.  A record that was sent again, and is in the present topic too, counts."""
    if all(observed.deleted_ms < 0 for observed in recorder.partitions.values()):
        return ledger
    gone: dict[Partition, set[bytes | None]] = {}
    here: dict[Partition, set[bytes | None]] = {}
    deleted_ms: dict[Partition, int] = {}
    for observed in recorder.partitions.values():
        partition = (observed.topic, observed.partition)
        if observed.deleted_ms >= 0:
            deleted_ms[partition] = max(observed.deleted_ms, deleted_ms.get(partition, 0))
        values = (gone if observed.deleted_ms >= 0 else here).setdefault(partition, set())
        for append in observed.appends:
            values.update(value for _, value in recorder.contents.of(append.batch))

    def is_gone(partition: Partition, value: bytes | None) -> bool:
        is_here = value in here.get(partition, ())
        return not is_here and value in gone.get(partition, ())

    def is_of_gone(read: ReadRecord) -> bool:
        is_early = read.at_ms <= deleted_ms.get(read.partition, -1)
        in_gone = is_early and read.value in gone.get(read.partition, ())
        return in_gone or is_gone(read.partition, read.value)

    present = ledger.without_records()
    present.sends = [x for x in ledger.sends if not is_gone(x.partition, x.value)]
    present.reads = [x for x in ledger.reads if not is_of_gone(x)]
    present.commits = [x for x in ledger.commits if x.partition not in gone]
    present.positions = [x for x in ledger.positions if x.partition not in gone]
    present.errors = ledger.errors
    return present


def _deleted_topics(recorder: Recorder, since_ms: int) -> list[Deleted]:
    return [
        Deleted(
            (observed.topic, observed.partition),
            0,
            observed.appends[-1].last_offset,
            Deletion.OF_TOPIC,
        )
        for observed in recorder.partitions.values()
        if observed.deleted_ms >= max(0, since_ms) and observed.appends
    ]


def _unavailable(finals: Finals) -> tuple[str, ...]:
    names = dict.fromkeys([*(each.partition for each in finals.offline), *finals.unread])
    return tuple(f"{topic}-{number}" for topic, number in names)


def _unreadable(recorder: Recorder) -> tuple[Unreadable, ...]:
    """The appended records that could not be read, in order of partition and offset."""
    found: dict[tuple[Partition, int, int], Unreadable] = {}
    for observed in recorder.partitions.values():
        batches = [append.batch for append in observed.appends]
        partition = (observed.topic, observed.partition)
        for each in recorder.contents.unreadable_in(partition, batches):
            found.setdefault((each.partition, each.first, each.last), each)
    return tuple(found[place] for place in sorted(found))


def _errors(ledger: Ledger) -> list[ErrorCount]:
    times_of: dict[tuple[str, str, str], list[int]] = {}
    for error in ledger.errors:
        times_of.setdefault((error.client, error.api, error.error), []).append(error.at_ms)
    return [ErrorCount(*key, len(times), times[0]) for key, times in times_of.items()]
