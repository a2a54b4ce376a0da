"""The times in which a partition could not be written or read, with the clients and the reasons.

Owns: the windows of a run: from the first attempt that failed or was not answered to the next
attempt that succeeded, for clients and brokers.  Never: guesses the cause: reasons are notes.
Kafka: no counterpart; Jepsen's availability of each key.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.checks.chain.links import Link
from kcluster.checks.origins import Origin, origin_of
from kcluster.checks.refusals import SECURITY_ERRORS
from kcluster.checks.unavailable import reasons_of
from kcluster.clients.ledger import ClientError, Outcome, Partition, SentRecord
from kcluster.events.brokers import BrokerDown, BrokerPaused, BrokerResumed, BrokerStarted
from kcluster.events.network import LinkCut, LinkHealed, NetworkShaped
from kcluster.evidence.lookups import Facts
from kcluster.structs import Frozen

WRITES: Final = "writes"
READS: Final = "reads"
USUAL: Final = 5
"""The factor by which an ack must be slower than in quiet times to count as late."""

_OF_THE_CLIENT: Final = frozenset(
    (
        "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "CORRUPT_MESSAGE",
        "INVALID_REQUIRED_ACKS", "UNSUPPORTED_VERSION", "UNSUPPORTED_COMPRESSION_TYPE",
        "OFFSET_OUT_OF_RANGE", "INVALID_TIMESTAMP",
        "TRANSACTION_ABORTED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE",
        "FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH", "LOG_TRUNCATION",
        *SECURITY_ERRORS,
    )
)  # fmt: skip
"""Errors that do not depend on whether the partition is available."""


class Window(Frozen, frozen=True):
    """A time in which `writes` or `reads` of a partition failed; `is_over`: whether the partition
    was available again before the end of the run.  `clients`: the affected clients; `errors`: by
    Kafka's names; `origin`: the operation on the cluster that began it, None if there is none."""

    kind: str
    partition: Partition
    from_ms: int
    to_ms: int
    is_over: bool = True
    clients: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    reasons: tuple[Link, ...] = ()
    origin: Origin | None = None

    @property
    def duration_ms(self) -> int:
        return self.to_ms - self.from_ms


class _Outage(Struct):
    """A time in which one client's attempts failed."""

    from_ms: int
    to_ms: int
    is_over: bool
    client: str
    errors: dict[str, None]


def find_windows(facts: Facts, patience_ms: int, *, explains: bool = True) -> list[Window]:
    """All windows, by partition, writes first.  `patience_ms`: an ack that is slower than this, and
    much slower than its producer's acks in quiet times, counts as an outage until its arrival.
    `explains`: whether their reasons and origins are found."""
    windows = []
    outages_of: dict[tuple[Partition, str], list[_Outage]] = {}
    for partition, outages in _of_writes(facts, patience_ms):
        outages_of.setdefault((partition, WRITES), []).extend(outages)
    for partition, outages in _of_reads(facts):
        outages_of.setdefault((partition, READS), []).extend(outages)
    for partition, kind in sorted(outages_of, key=lambda key: (key[0], key[1] == READS)):
        for outage, names in _merged(outages_of[partition, kind]):
            window = Window(
                kind=kind,
                partition=partition,
                from_ms=outage.from_ms,
                to_ms=outage.to_ms,
                is_over=outage.is_over,
                clients=tuple(names),
                errors=tuple(outage.errors),
            )
            windows.append(_explained(facts, window) if explains else window)
    return windows


def _explained(facts: Facts, window: Window) -> Window:
    """The window with its reasons and its origin."""
    reasons = reasons_of(
        facts,
        window.partition,
        window.kind == WRITES,
        window.from_ms,
        window.to_ms,
        [facts.clients[name] for name in window.clients if name in facts.clients],
    )
    known = (facts.by_id.get(reason.note_id) for reason in reasons if reason.note_id)
    notes = [note for note in known if note is not None]
    origin = origin_of(facts, notes, window.to_ms)
    return replace(window, reasons=tuple(reasons), origin=origin)


def _merged(outages: list[_Outage]) -> Iterator[tuple[_Outage, list[str]]]:
    """The windows with overlapping ones merged, and with the names of all affected clients."""
    whole: _Outage | None = None
    names: dict[str, None] = {}
    for outage in sorted(outages, key=lambda outage: outage.from_ms):
        if whole is not None and outage.from_ms <= whole.to_ms:
            whole.to_ms = max(whole.to_ms, outage.to_ms)
            whole.is_over &= outage.is_over
            whole.errors.update(outage.errors)
        else:
            if whole is not None:
                yield whole, list(names)
            whole, names = outage, {}
        names[outage.client] = None
    if whole is not None:
        yield whole, list(names)


# -------------------------------------------------------------------------------------- writes


def _of_writes(facts: Facts, patience_ms: int) -> Iterator[tuple[Partition, list[_Outage]]]:
    sends: dict[tuple[Partition, str], list[SentRecord]] = {}
    for send in facts.ledger.sends:
        if send.sent_ms >= 0:
            sends.setdefault((send.partition, send.producer), []).append(send)
    end_ms = facts.recorder.dispatcher.now_ms
    errors = _errors_by_client(facts.ledger.errors, "Produce")
    quiet = _quiet_spans(facts)
    for (partition, producer), own in sends.items():
        usual_ms = max(patience_ms, USUAL * _quiet_median_ms(facts, quiet, partition, own))
        bad = [send for send in own if _has_failed(send, usual_ms)]
        if not bad:
            continue
        good = sorted(
            send.ended_ms
            for send in own
            if send.outcome is Outcome.ACKED and send.acks != 0 and send.ended_ms >= 0
        )
        outages = [
            _outage(send.sent_ms, good, end_ms, producer, send.error)
            for send in sorted(bad, key=lambda send: send.sent_ms)
        ]
        for entry in errors.get(producer, ()):
            for outage in outages:
                if outage.from_ms <= entry.at_ms <= outage.to_ms and entry.partition in (
                    None,
                    partition,
                ):
                    outage.errors[entry.error] = None
        yield partition, [outage for outage in outages if outage.to_ms > outage.from_ms]


def _quiet_median_ms(
    facts: Facts, quiet_spans: _Spans, partition: Partition, sends: Sequence[SentRecord]
) -> int:
    """The median time of acks of first attempts in quiet times; 0 if there is none.  If other times
    counted too, a long outage would seem usual."""
    spans = quiet_spans, _in_sync_spans(facts, partition)
    taken = sorted(
        send.ended_ms - send.sent_ms
        for send in sends
        if send.outcome is Outcome.ACKED
        and send.attempts == 1
        and all(_are_within(each, send.sent_ms, send.ended_ms) for each in spans)
    )
    return taken[len(taken) // 2] if taken else 0


_Spans = list[tuple[int, int]]
"""(from_ms, to_ms), ascending."""


def _are_within(spans: _Spans, from_ms: int, to_ms: int) -> bool:
    at = bisect_right(spans, from_ms, key=lambda span: span[0])
    return at > 0 and to_ms <= spans[at - 1][1]


def _quiet_spans(facts: Facts) -> _Spans:
    """The times in which every broker ran and no link was cut or shaped."""
    spans: _Spans = []
    faults: set[object] = set()
    quiet_from_ms = 0
    for note in facts.notes:
        was_quiet = not faults
        match note.event:
            case BrokerDown(broker=broker) | BrokerPaused(broker=broker):
                faults.add(broker)
            case BrokerStarted(broker=broker) | BrokerResumed(broker=broker):
                faults.discard(broker)
            case LinkCut(source=source, destination=destination):
                faults.add((source, destination))
            case LinkHealed(source=source, destination=destination):
                faults.discard((source, destination))
            case NetworkShaped(restored=restored):
                (faults.discard if restored else faults.add)("shape")
        if was_quiet and faults:
            spans.append((quiet_from_ms, note.at_ms))
        elif not was_quiet and not faults:
            quiet_from_ms = note.at_ms
    if not faults:
        spans.append((quiet_from_ms, facts.recorder.dispatcher.now_ms))
    return spans


def _in_sync_spans(facts: Facts, partition: Partition) -> _Spans:
    """The times in which all replicas of a partition were in sync."""
    spans: _Spans = []
    for observed in facts.recorder.of_partition(partition):
        changes = observed.registrations
        ends = [at_ms for at_ms, _ in changes[1:]] + [facts.recorder.dispatcher.now_ms]
        for (from_ms, registration), to_ms in zip(changes, ends, strict=True):
            if registration.leader >= 0 and len(registration.isr) == len(registration.replicas):
                if spans and spans[-1][1] == from_ms:
                    from_ms = spans.pop()[0]
                spans.append((from_ms, to_ms))
    return spans


def _has_failed(send: SentRecord, patience_ms: int) -> bool:
    if send.error in _OF_THE_CLIENT:
        return False
    if send.outcome is not Outcome.ACKED:
        return True
    return send.attempts > 1 or bool(send.error) or send.ended_ms - send.sent_ms > patience_ms


def _outage(from_ms: int, good: Sequence[int], end_ms: int, client: str, error: str) -> _Outage:
    """The outage from a failed attempt to the first attempt that succeeded."""
    at = bisect_right(good, from_ms)
    is_over = at < len(good)
    errors = {error: None} if error else {}
    return _Outage(from_ms, good[at] if is_over else end_ms, is_over, client, errors)


def _errors_by_client(errors: Sequence[ClientError], api: str) -> dict[str, list[ClientError]]:
    by_client: dict[str, list[ClientError]] = {}
    for entry in errors:
        if entry.api == api and entry.error not in _OF_THE_CLIENT:
            by_client.setdefault(entry.client, []).append(entry)
    return by_client


# --------------------------------------------------------------------------------------- reads


def _of_reads(facts: Facts) -> Iterator[tuple[Partition, list[_Outage]]]:
    errors = _errors_by_client(facts.ledger.errors, "Fetch")
    if not errors:
        return
    good = _served(facts, errors)
    end_ms = facts.recorder.dispatcher.now_ms
    for consumer, entries in errors.items():
        for partition, times in good.get(consumer, {}).items():
            outages = []
            for entry in entries:
                if entry.partition is None and not _concerns(facts, partition, entry.at_ms):
                    continue
                if entry.partition not in (None, partition):
                    continue
                at = bisect_right(times, entry.at_ms)
                # The attempt timed out, so the outage began with it, just after the last answer.
                waited = entry.error == "REQUEST_TIMED_OUT" and at > 0
                from_ms = times[at - 1] if waited else entry.at_ms
                outage = _outage(entry.at_ms, times, end_ms, consumer, entry.error)
                outage.from_ms = from_ms
                if outage.to_ms > outage.from_ms:
                    outages.append(outage)
            if outages:
                yield partition, outages


def _served(facts: Facts, consumers: Iterable[str]) -> dict[str, dict[Partition, list[int]]]:
    """The times at which a broker answered a Fetch of these consumers without an error, by consumer
    and partition."""
    ids = {name: name for name in consumers}
    ids |= {f"client-{number}": name for name, number in facts.clients.items() if name in ids}
    served: dict[str, dict[Partition, list[int]]] = {}
    for client_id, partitions in facts.recorder.fetch_times(ids).items():
        for partition, times in partitions.items():
            served.setdefault(ids[client_id], {}).setdefault(partition, []).extend(times)
    for read in facts.ledger.reads:
        if read.consumer not in ids:
            continue
        times = served.setdefault(read.consumer, {}).setdefault(read.partition, [])
        if not times or times[-1] < read.at_ms:
            times.append(read.at_ms)
    for partitions in served.values():
        for times in partitions.values():
            times.sort()
    return served


def _concerns(facts: Facts, partition: Partition, at_ms: int) -> bool:
    """Whether an error that names no partition concerns this one, because its leader caused it."""
    partitions = facts.recorder.of_partition(partition)
    registration = facts.registration(partitions[-1], at_ms) if partitions else None
    if registration is None or registration.leader < 0:
        return True
    return facts.fault_of(registration.leader, at_ms) is not None
