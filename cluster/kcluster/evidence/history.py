"""The ledger of a run, what is in the logs at its end, and what of both does not agree.

Owns: the values of the outside view: the ledger, final logs, anomalies, and their grouping: a
thousand neighbouring records lost for one reason are one anomaly.  Never: looks into a node
(recorder.py does), finds an anomaly (anomalies.py does) or its cause (causes.py does).
Kafka: no counterpart; names and the three outcomes of a send are Jepsen's (its Kafka workload).

What clients write down is in clients/ledger.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.clients.ledger import Ledger, Outcome, Partition, ReadRecord, SentRecord, Told
from kcluster.contract import NoteId

__all__ = [
    "ANOMALIES",
    "Anomaly",
    "FinalLog",
    "Finding",
    "Ledger",
    "Link",
    "Outcome",
    "Partition",
    "ReadRecord",
    "SentRecord",
    "Told",
    "grouped",
]

ANOMALIES: Final = {
    "lost-write": "a record was acked, or read by a consumer, and is not in the log",
    "duplicate": "a record is in the log twice",
    "nonmonotonic-send": "records of a producer are not in the order of their sending",
    "inconsistent-offsets": "an offset stands for two records, or an acked record is elsewhere",
    "aborted-read": "a record whose send failed for certain is there for all to read",
    "phantom": "the log holds a record that nobody sent",
    "poll-skip": "a consumer was led past an offset that holds a record",
    "nonmonotonic-poll": "a consumer was given an offset that is not behind those it had",
    "unseen": "an acked record is in the log, and no consumer has read it",
    "committed-offset-back": "a group's committed offset was acked, and an older one read later",
}
"""Every anomaly by name: Jepsen's, but for phantom and committed-offset-back, which its workload
has no names for.  Each is explained, with an example, at its checker in anomalies.py."""


PADDING: Final = "...."
"""Values that are filled up to a size end so; it is not shown."""


class Link(Struct, frozen=True):
    """One event of the chain that led to an anomaly.  `note_id`: of the note that tells it."""

    at_ms: int
    text: str
    note_id: NoteId | None = None


class Finding(Struct, frozen=True):
    """One record that something is wrong with.

    `offset`: where it is, or should be; -1 where nobody was told.  `other`: the second offset that
    matters: of the duplicate, of the record sent before, of the one read before; of what is lost,
    its number among those that its producer sent there.  `detail`: what the words of the anomaly
    need besides.  `allowed`: the setting that lets it happen.
    """

    name: str
    client: str
    offset: int
    value: bytes | None
    other: int = -1
    detail: str = ""
    allowed: str = ""
    value_before: bytes | None = None
    at_ms: int = -1


class Anomaly(Struct, frozen=True):
    """A promise broken, as clients see it: `count` neighbouring records with one story.

    `name` of ANOMALIES; `first` and `last` offset concerned, -1 where nobody was told;  `values`
    of the first and the last record; `allowed`: the setting that lets it happen, "" where none
    does; `at_ms`: of the first send or read concerned; `chain`: what led to it, oldest first.
    """

    name: str
    partition: Partition
    text: str
    count: int = 1
    first: int = -1
    last: int = -1
    values: tuple[bytes | None, bytes | None] = (None, None)
    client: str = ""
    allowed: str = ""
    at_ms: int = -1
    other: int = -1
    chain: tuple[Link, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.partition[0]}-{self.partition[1]}: {self.text}"


class FinalLog(Struct, frozen=True):
    """A partition as read from beginning to end when all is over: (offset, value) in order.

    `start_offset`: what lies below was deleted on purpose; `clean_offset`: what lies below may
    have been compacted away.  `names`: by offset, what the send of a record is known by, where
    that is not its value.  `epochs`: (leader epoch, first offset), oldest first.
    """

    start_offset: int
    records: Sequence[tuple[int, bytes | None]]
    clean_offset: int = 0
    names: Mapping[int, bytes] = {}
    end_offset: int = 0
    epochs: Sequence[tuple[int, int]] = ()


# ------------------------------------------------------------------------------------- grouping


def grouped(partition: Partition, findings: Iterable[Finding]) -> list[Anomaly]:
    """Neighbouring findings of one kind and client as one anomaly each, in the order given."""
    groups: list[list[Finding]] = []
    open_groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in findings:
        assert finding.name in ANOMALIES, finding.name
        key = (finding.name, finding.client, finding.detail, finding.allowed)
        group = open_groups.get(key)
        if group is not None and _follows(finding, group[-1]):
            group.append(finding)
        else:
            open_groups[key] = group = [finding]
            groups.append(group)
    return [_anomaly(partition, group) for group in groups]


def _follows(finding: Finding, before: Finding) -> bool:
    if finding.offset == before.offset == -1:
        return finding.other - before.other == 1
    step = finding.offset - before.offset
    if finding.name == "nonmonotonic-send":
        return step >= 0
    if finding.name in ("duplicate", "inconsistent-offsets"):
        return step == 1 and finding.other - before.other in (0, 1)
    return step == 1


def _anomaly(partition: Partition, group: Sequence[Finding]) -> Anomaly:
    first, last = group[0], group[-1]
    return Anomaly(
        first.name,
        partition,
        _WORDS[first.name](group),
        len(group),
        first.offset,
        last.offset,
        (first.value, last.value),
        first.client,
        first.allowed,
        first.at_ms,
        first.other,
    )


def shown(value: bytes | None) -> str:
    """A record's value for people, shortened."""
    if value is None:
        return "null"
    text = value.decode("utf-8", "backslashreplace")
    if text.endswith(PADDING):
        text = text.rstrip(PADDING[0])
    return text if len(text) <= 40 else f"{text[:37]}..."


def _who(group: Sequence[Finding]) -> str:
    """`b`, or `offsets 4 to 6 (3 records, b to d)`."""
    first, last = group[0], group[-1]
    if len(group) == 1:
        return shown(first.value)
    span = f"{len(group):,} records, {shown(first.value)} to {shown(last.value)}"
    return span if first.offset < 0 else f"offsets {first.offset} to {last.offset} ({span})"


def _be(group: Sequence[Finding]) -> str:
    return "is" if len(group) == 1 else "are"


def _lost(group: Sequence[Finding]) -> str:
    first = group[0]
    at = f" at offset {first.offset}" if len(group) == 1 and first.offset >= 0 else ""
    return f"{_who(group)}, {first.detail}{at}, {_be(group)} not in the log"


def _duplicate(group: Sequence[Finding]) -> str:
    first, last = group[0], group[-1]
    if len(group) == 1:
        return f"{shown(first.value)} is at offsets {first.offset} and {first.other}"
    return f"{_who(group)} are there again at {first.other} to {last.other}"


def _reordered(group: Sequence[Finding]) -> str:
    first = group[0]
    more = f", and {len(group) - 1:,} more" if len(group) > 1 else ""
    return (
        f"{shown(first.value)}, sent after {shown(first.value_before)}, is at offset"
        f" {first.offset}, before {first.other}{more}"
    )


def _inconsistent(group: Sequence[Finding]) -> str:
    first = group[0]
    if first.detail == "acked":
        return f"{_who(group)}, acked at {first.other}, {_be(group)} at {first.offset}"
    more = f", and {len(group) - 1:,} more" if len(group) > 1 else ""
    return (
        f"offset {first.offset}: {first.client} read {shown(first.value)}, {first.detail}"
        f" {shown(first.value_before)}{more}"
    )


def _aborted(group: Sequence[Finding]) -> str:
    at = f" at offset {group[0].offset}" if len(group) == 1 else ""
    return f"{_who(group)}, whose send failed for certain, {_be(group)} there{at}"


def _phantom(group: Sequence[Finding]) -> str:
    at = f" at offset {group[0].offset}" if len(group) == 1 else ""
    return f"{_who(group)}{at} {'was' if len(group) == 1 else 'were'} sent by nobody"


def _skipped(group: Sequence[Finding]) -> str:
    first, last = group[0], group[-1]
    missed = f"{first.offset}" if len(group) == 1 else f"{first.offset} to {last.offset}"
    return f"{first.client} was {first.detail} after {first.other}, not {missed}"


def _poll_back(group: Sequence[Finding]) -> str:
    first, last = group[0], group[-1]
    given = f"{first.offset}" if len(group) == 1 else f"{first.offset} to {last.offset}"
    return f"{first.client} was given {given} after {first.other}"


def _unseen(group: Sequence[Finding]) -> str:
    at = f" at offset {group[0].offset}" if len(group) == 1 else ""
    return f"{_who(group)}, acked{at}, {'was' if len(group) == 1 else 'were'} read by no consumer"


def _commit_back(group: Sequence[Finding]) -> str:
    first = group[0]
    return f"group {first.client} committed {first.other} and was told {first.offset} later"


_WORDS: Final = {
    "lost-write": _lost,
    "duplicate": _duplicate,
    "nonmonotonic-send": _reordered,
    "inconsistent-offsets": _inconsistent,
    "aborted-read": _aborted,
    "phantom": _phantom,
    "poll-skip": _skipped,
    "nonmonotonic-poll": _poll_back,
    "unseen": _unseen,
    "committed-offset-back": _commit_back,
}
assert list(_WORDS) == list(ANOMALIES)
