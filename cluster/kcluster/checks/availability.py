"""When a partition could not be written or read, for whom, and why.

Owns: the windows of a run: from the first attempt that failed or stayed unanswered to the first
that went well, as clients and brokers saw it.  Never: guesses why: reasons are notes.
Kafka: no counterpart; Jepsen's availability of each key.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from kcluster.checks.unavailable import reasons_of
from kcluster.clients.ledger import Outcome, Partition, SentRecord, Told
from kcluster.evidence.history import Link
from kcluster.evidence.lookups import Facts
from kcluster.protocol.apis import ApiKey

WRITES: Final = "writes"
READS: Final = "reads"
USUAL: Final = 5
"""An ack that takes so many times the median is late."""

_OF_THE_CLIENT: Final = frozenset(
    (
        "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "CORRUPT_MESSAGE",
        "INVALID_REQUIRED_ACKS", "UNSUPPORTED_VERSION", "UNSUPPORTED_COMPRESSION_TYPE",
        "TOPIC_AUTHORIZATION_FAILED", "OFFSET_OUT_OF_RANGE", "INVALID_TIMESTAMP",
        "FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH", "LOG_TRUNCATION",
    )
)  # fmt: skip
"""Errors that say nothing of whether the partition is there."""


class Window(Struct, frozen=True):
    """A time in which `writes` or `reads` of a partition failed; `is_over`: it was there again
    before the end of the run.  `clients`: those who met it; `errors`: by Kafka's names."""

    kind: str
    partition: Partition
    from_ms: int
    to_ms: int
    is_over: bool = True
    clients: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    reasons: tuple[Link, ...] = ()

    @property
    def duration_ms(self) -> int:
        return self.to_ms - self.from_ms

    def line(self, began_ms: int) -> str:
        """`no writes to orders-0 for 1,403 ms from +3000 ms on (p0): NOT_LEADER_OR_FOLLOWER`."""
        topic, number = self.partition
        to = "to" if self.kind == WRITES else "of"
        until = "" if self.is_over else ", to the end"
        errors = f": {', '.join(self.errors)}" if self.errors else ""
        return (
            f"no {self.kind} {to} {topic}-{number} for {self.duration_ms:,} ms from"
            f" {self.from_ms - began_ms:+} ms on{until} ({', '.join(self.clients)}){errors}"
        )


class _Trouble(Struct):
    """One client's window, as it grows."""

    from_ms: int
    to_ms: int
    is_over: bool
    client: str
    errors: dict[str, None]


def find_windows(facts: Facts, patience_ms: int) -> list[Window]:
    """All windows, by partition, writes first.  `patience_ms`: an ack that takes longer, and
    longer than is usual for that producer, counts as none for so long."""
    windows = []
    found: dict[tuple[Partition, str], list[_Trouble]] = {}
    for partition, troubles in _of_writes(facts, patience_ms):
        found.setdefault((partition, WRITES), []).extend(troubles)
    for partition, troubles in _of_reads(facts):
        found.setdefault((partition, READS), []).extend(troubles)
    for partition, kind in sorted(found, key=lambda key: (key[0], key[1] == READS)):
        for trouble, names in _merged(found[partition, kind]):
            reasons = reasons_of(
                facts,
                partition,
                kind == WRITES,
                trouble.from_ms,
                trouble.to_ms,
                [facts.clients[name] for name in names if name in facts.clients],
            )
            windows.append(
                Window(
                    kind,
                    partition,
                    trouble.from_ms,
                    trouble.to_ms,
                    trouble.is_over,
                    tuple(names),
                    tuple(trouble.errors),
                    tuple(reasons),
                )
            )
    return windows


def _merged(troubles: list[_Trouble]) -> Iterator[tuple[_Trouble, list[str]]]:
    """Those that overlap, as one, with the names of all who met it."""
    whole: _Trouble | None = None
    names: dict[str, None] = {}
    for trouble in sorted(troubles, key=lambda trouble: trouble.from_ms):
        if whole is not None and trouble.from_ms <= whole.to_ms:
            whole.to_ms = max(whole.to_ms, trouble.to_ms)
            whole.is_over &= trouble.is_over
            whole.errors.update(trouble.errors)
        else:
            if whole is not None:
                yield whole, list(names)
            whole, names = trouble, {}
        names[trouble.client] = None
    if whole is not None:
        yield whole, list(names)


# -------------------------------------------------------------------------------------- writes


def _of_writes(facts: Facts, patience_ms: int) -> Iterator[tuple[Partition, list[_Trouble]]]:
    sends: dict[tuple[Partition, str], list[SentRecord]] = {}
    for send in facts.ledger.sends:
        if send.sent_ms >= 0:
            sends.setdefault((send.partition, send.producer), []).append(send)
    end_ms = facts.recorder.dispatcher.now_ms
    told = _told_by(facts.ledger.told, "Produce")
    for (partition, producer), own in sends.items():
        usual_ms = max(patience_ms, USUAL * _median_ms(own))
        bad = [send for send in own if _is_troubled(send, usual_ms)]
        if not bad:
            continue
        good = sorted(
            send.ended_ms
            for send in own
            if send.outcome is Outcome.ACKED and send.acks != 0 and send.ended_ms >= 0
        )
        troubles = [
            _trouble(send.sent_ms, good, end_ms, producer, send.error)
            for send in sorted(bad, key=lambda send: send.sent_ms)
        ]
        for entry in told.get(producer, ()):
            for trouble in troubles:
                if trouble.from_ms <= entry.at_ms <= trouble.to_ms and entry.partition in (
                    None,
                    partition,
                ):
                    trouble.errors[entry.error] = None
        yield partition, [trouble for trouble in troubles if trouble.to_ms > trouble.from_ms]


def _median_ms(sends: Sequence[SentRecord]) -> int:
    """How long acks take as a rule."""
    taken = sorted(send.ended_ms - send.sent_ms for send in sends if send.outcome is Outcome.ACKED)
    return taken[len(taken) // 2] if taken else 0


def _is_troubled(send: SentRecord, patience_ms: int) -> bool:
    if send.error in _OF_THE_CLIENT:
        return False
    if send.outcome is not Outcome.ACKED:
        return True
    return send.attempts > 1 or bool(send.error) or send.ended_ms - send.sent_ms > patience_ms


def _trouble(from_ms: int, good: Sequence[int], end_ms: int, client: str, error: str) -> _Trouble:
    """From a failed attempt to the first that went well."""
    at = bisect_right(good, from_ms)
    is_over = at < len(good)
    errors = {error: None} if error else {}
    return _Trouble(from_ms, good[at] if is_over else end_ms, is_over, client, errors)


def _told_by(told: Sequence[Told], api: str) -> dict[str, list[Told]]:
    by_client: dict[str, list[Told]] = {}
    for entry in told:
        if entry.api == api and entry.error not in _OF_THE_CLIENT:
            by_client.setdefault(entry.client, []).append(entry)
    return by_client


# --------------------------------------------------------------------------------------- reads


def _of_reads(facts: Facts) -> Iterator[tuple[Partition, list[_Trouble]]]:
    told = _told_by(facts.ledger.told, "Fetch")
    if not told:
        return
    good = _served(facts)
    end_ms = facts.recorder.dispatcher.now_ms
    for consumer, entries in told.items():
        for partition, times in good.get(consumer, {}).items():
            troubles = []
            for entry in entries:
                if entry.partition is None and not _concerns(facts, partition, entry.at_ms):
                    continue
                if entry.partition not in (None, partition):
                    continue
                at = bisect_right(times, entry.at_ms)
                # No answer: nobody was there since the attempt began, after the last answer.
                waited = entry.error == "REQUEST_TIMED_OUT" and at > 0
                from_ms = times[at - 1] if waited else entry.at_ms
                trouble = _trouble(entry.at_ms, times, end_ms, consumer, entry.error)
                trouble.from_ms = from_ms
                if trouble.to_ms > trouble.from_ms:
                    troubles.append(trouble)
            if troubles:
                yield partition, troubles


def _served(facts: Facts) -> dict[str, dict[Partition, list[int]]]:
    """By consumer and partition, when a broker answered its Fetch without an error."""
    names = {f"client-{number}": name for name, number in facts.clients.items()}
    served: dict[str, dict[Partition, list[int]]] = {}
    for answer in facts.recorder.partition_answers(ApiKey.FETCH, lambda _: True):
        if not answer.error_code:
            client = names.get(answer.client, answer.client)
            served.setdefault(client, {}).setdefault(answer.partition, []).append(answer.at_ms)
    for read in facts.ledger.reads:
        times = served.setdefault(read.consumer, {}).setdefault(read.partition, [])
        if not times or times[-1] < read.at_ms:
            times.append(read.at_ms)
    for partitions in served.values():
        for times in partitions.values():
            times.sort()
    return served


def _concerns(facts: Facts, partition: Partition, at_ms: int) -> bool:
    """Whether an error that names no partition is about this one: its leader is not well."""
    grounds = facts.recorder.of_partition(partition)
    registration = facts.registration(grounds[-1], at_ms) if grounds else None
    if registration is None or registration.leader < 0:
        return True
    return facts.deed_before(registration.leader, at_ms) is not None
