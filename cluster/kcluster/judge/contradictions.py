"""Acks that contradict each other, whatever the log holds.

Owns: what acks alone prove: two records at one offset, a producer's records in another order than
that of their sending.  Never: repeats what reads have shown.  Kafka: no counterpart;
jepsen.tests.kafka has both, under these names.

One of two records that were acked at one offset is lost, or is elsewhere.  When reads show that
records are lost, the log was truncated, which explains the acks.  Until then they are all that is
known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kcluster.checks.anomalies.base import (
    ANOMALIES,
    Anomaly,
    PartitionAnomaly,
    PartitionHistory,
    grouped,
)
from kcluster.checks.anomalies.facts import AckedOnly, Finding
from kcluster.checks.settings import ACKS_ALL, acks_setting, retry_setting
from kcluster.clients.ledger import SentRecord

LOST = "lost-write"
SAME_OFFSET = "inconsistent-offsets"
WRONG_ORDER = "nonmonotonic-send"


def contradicting_acks(
    sends: Sequence[SentRecord], history: PartitionHistory, found: Iterable[Anomaly]
) -> list[Anomaly]:
    """The contradictions between acks of one partition, but for what the anomalies that were found
    explain.  `sends`: all of the partition; `history`: without the undecided ones."""
    found = list(found)
    if any(anomaly.name == LOST for anomaly in found):
        return []
    named = {finding.value for anomaly in found for finding in anomaly.findings}
    left = [
        send for send in sends if send.is_promised and send.offset >= 0 and send.value not in named
    ]
    anomalies: list[Anomaly] = []
    for name, findings in (
        (SAME_OFFSET, _same_offset(left)),
        (WRONG_ORDER, _wrong_order(left, history)),
    ):
        kind = ANOMALIES[name]
        assert isinstance(kind, PartitionAnomaly)
        anomalies += grouped(kind, findings)
    return anomalies


def _same_offset(sends: Sequence[SentRecord]) -> Iterator[Finding]:
    first: dict[int, SentRecord] = {}
    for send in sorted(sends, key=lambda send: send.offset):
        other = first.setdefault(send.offset, send)
        if other is not send:
            yield Finding(
                name=SAME_OFFSET,
                partition=send.partition,
                client="",
                offset=send.offset,
                value=other.value,
                fact=AckedOnly(),
                allowed=acks_setting(_weaker(send.acks, other.acks)),
                other_value=send.value,
                at_ms=other.sent_ms,
            )


def _weaker(acks: int, other: int) -> int:
    """The acks that promise less."""
    return max(acks, other) if ACKS_ALL in (acks, other) else min(acks, other)


def _wrong_order(sends: Sequence[SentRecord], history: PartitionHistory) -> Iterator[Finding]:
    """Records of which at least one was not read: nonmonotonic-send compares the others."""
    last: dict[tuple[str, int], tuple[int, SentRecord]] = {}
    for send in sends:
        offset = next(iter(history.visible(send.value)), send.offset)
        process = send.producer, send.life
        before = last.get(process)
        if before is None or offset >= before[0]:
            last[process] = (offset, send)
            continue
        are_both_read = send.value in history.places and before[1].value in history.places
        if not are_both_read and before[1].sent_ms <= send.sent_ms:
            yield Finding(
                name=WRONG_ORDER,
                partition=send.partition,
                client=send.producer,
                offset=offset,
                value=send.value,
                other=before[0],
                fact=AckedOnly(),
                allowed=retry_setting(send.idempotent),
                other_value=before[1].value,
                at_ms=send.sent_ms,
            )
