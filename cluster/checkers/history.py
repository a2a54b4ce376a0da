"""What clients were told, against what the logs hold in the end.

Owns: the ledger of sends and reads, and the anomalies found in it.  Never: looks into a node; all
it knows a client knows too.
Kafka: no counterpart; names and the three outcomes of a send are Jepsen's (its Kafka workload).

The values are in clients/ledger.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from cluster.clients.ledger import Outcome, Partition, Read, Send, Told

ANOMALIES: Final = {
    "lost-write": "a record acked with acks=all is not in the log",
    "duplicate": "a record of an idempotent producer is in the log twice",
    "reordered": "records of an idempotent producer are not in the order of their sending",
    "failed-write": "a record whose send failed for certain is in the log all the same",
    "moved-write": "an acked record is in the log, but not where the ack said",
    "phantom": "the log holds a value that nobody sent",
    "lost-read": "a consumer read a record that the log does not hold at that offset in the end",
    "inconsistent-read": "two reads of one offset gave different records",
    "offset-back": "a consumer was given an offset that is not behind those it had",
    "skipped": "a consumer was led past an offset that holds a record",
    "lost-commit": "a group's committed offset was acked, and an older one was read later",
}
"""Every anomaly by name.  An example of each, as `str(anomaly)` prints it, is in
tests/checkers/test_history.py."""


class Anomaly(Struct, frozen=True):
    """A promise broken, as clients see it.  `name` of ANOMALIES."""

    name: str
    partition: Partition
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.partition[0]}-{self.partition[1]}: {self.text}"


class FinalLog(Struct, frozen=True):
    """A partition as read from beginning to end when all is over: (offset, value) in order.
    `loss_allowed`: an unclean election, or a loss of disks that no setting covers."""

    start_offset: int
    records: Sequence[tuple[int, bytes | None]]
    loss_allowed: bool = False


class Ledger:
    """All sends and reads of a run, in order."""

    def __init__(self) -> None:
        self.sends: list[Send] = []
        self.reads: list[Read] = []
        self.commits: list[tuple[str, Partition, int, bool]] = []
        """(group, partition, offset, True for an acked commit and False for a later look)."""
        self.told: list[Told] = []

    def check(self, final: Mapping[Partition, FinalLog]) -> list[Anomaly]:
        """Every anomaly, by partition and then in the order of ANOMALIES."""
        found: list[Anomaly] = []
        for partition, log in final.items():
            sends = [send for send in self.sends if send.partition == partition]
            reads = [read for read in self.reads if read.partition == partition]
            for name, text in _judge(sends, reads, log):
                assert name in ANOMALIES, name
                found.append(Anomaly(name, partition, text))
        found.extend(self._lost_commits())
        return found

    def _lost_commits(self) -> Iterator[Anomaly]:
        acked: dict[tuple[str, Partition], int] = {}
        for group, partition, offset, is_commit in self.commits:
            key = (group, partition)
            if is_commit:
                acked[key] = offset
            elif offset < acked.get(key, -1):
                text = f"group {group} committed {acked[key]} and was told {offset} later"
                yield Anomaly("lost-commit", partition, text)


def _judge(
    sends: Sequence[Send], reads: Sequence[Read], log: FinalLog
) -> Iterator[tuple[str, str]]:
    places: dict[bytes | None, list[int]] = {}
    for offset, value in log.records:
        places.setdefault(value, []).append(offset)
    if not log.loss_allowed:
        yield from _lost(sends, places, log)
    yield from _duplicates(sends, places)
    yield from _reordered(sends, places)
    yield from _untrue_answers(sends, places, log)
    if not log.loss_allowed:
        yield from _lost_reads(reads, log)
    yield from _odd_polls(reads, log)


def _lost(
    sends: Sequence[Send], places: Mapping[bytes | None, list[int]], log: FinalLog
) -> Iterator[tuple[str, str]]:
    for send in sends:
        is_safe = send.outcome is Outcome.ACKED and send.acks == -1
        if is_safe and send.value not in places and send.offset >= log.start_offset:
            yield "lost-write", f"{_shown(send.value)}, acked at offset {send.offset}"


def _duplicates(
    sends: Sequence[Send], places: Mapping[bytes | None, list[int]]
) -> Iterator[tuple[str, str]]:
    for send in sends:
        at = places.get(send.value, [])
        if send.idempotent and len(at) > 1:
            yield "duplicate", f"{_shown(send.value)} is at offsets {_listed(at)}"


def _reordered(
    sends: Sequence[Send], places: Mapping[bytes | None, list[int]]
) -> Iterator[tuple[str, str]]:
    last: dict[str, Send] = {}
    for send in sends:
        if not send.idempotent or send.value not in places:
            continue
        before = last.get(send.producer)
        last[send.producer] = send
        if before is not None and places[send.value][0] < places[before.value][0]:
            yield (
                "reordered",
                (
                    f"{_shown(send.value)}, sent after {_shown(before.value)}, is at offset"
                    f" {places[send.value][0]}, before {places[before.value][0]}"
                ),
            )


def _untrue_answers(
    sends: Sequence[Send], places: Mapping[bytes | None, list[int]], log: FinalLog
) -> Iterator[tuple[str, str]]:
    for send in sends:
        at = places.get(send.value)
        if at is None:
            continue
        if send.outcome is Outcome.FAILED:
            yield "failed-write", f"{_shown(send.value)} is at offset {at[0]}"
        elif (
            send.outcome is Outcome.ACKED and send.acks == -1 and not log.loss_allowed
            and send.offset not in (-1, *at)
        ):  # fmt: skip
            text = f"{_shown(send.value)}, acked at {send.offset}, is at {_listed(at)}"
            yield "moved-write", text
    sent = {send.value for send in sends}
    for value, at in places.items():
        if value not in sent:
            yield "phantom", f"{_shown(value)} at offset {at[0]}"


def _lost_reads(reads: Sequence[Read], log: FinalLog) -> Iterator[tuple[str, str]]:
    held = dict(log.records)
    first: dict[int, Read] = {}
    for read in reads:
        other = first.setdefault(read.offset, read)
        if other.value != read.value:
            yield (
                "inconsistent-read",
                (
                    f"offset {read.offset}: {other.consumer} read {_shown(other.value)},"
                    f" {read.consumer} {_shown(read.value)}"
                ),
            )
        elif (
            other is read and read.offset >= log.start_offset
            and held.get(read.offset, b"") != read.value
        ):  # fmt: skip
            yield "lost-read", f"{read.consumer} read {_shown(read.value)} at {read.offset}"


def _odd_polls(reads: Sequence[Read], log: FinalLog) -> Iterator[tuple[str, str]]:
    offsets = [offset for offset, _ in log.records]
    last: dict[str, int] = {}
    for read in reads:
        before = last.get(read.consumer)
        last[read.consumer] = read.offset
        if before is None or read.restarted:
            continue
        if read.offset <= before:
            yield "offset-back", f"{read.consumer} was given {read.offset} after {before}"
        elif read.offset > before + 1 and not log.loss_allowed:
            between = [offset for offset in offsets if before < offset < read.offset]
            if between:
                yield (
                    "skipped",
                    (f"{read.consumer} was given {read.offset} after {before}, not {between[0]}"),
                )


def _shown(value: bytes | None) -> str:
    return "null" if value is None else value.decode("utf-8", "backslashreplace")


def _listed(offsets: Sequence[int]) -> str:
    return " and ".join(map(str, offsets))
