"""The rows of sends.jsonl: each send, its place in the final logs, and the verdict's findings about
it.

Owns: the fate of a send, its number among its producer's sends.  Never: looks for anomalies
(checks/).
Kafka: no counterpart; kafka-dump-log on each partition's leader shows the logs.

A record is identified by its value, or by its name if it came from an outside client
(evidence/outside.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from kcluster.checks.anomalies.lost_write import LostWrite
from kcluster.clients.ledger import Partition, SentRecord, TransactionOutcome
from kcluster.evidence.history import FinalLog
from kcluster.evidence.recorder import Judged, Recorder
from kcluster.evidence.rows import SendAnomaly
from kcluster.invariants.observed import Append
from kcluster.runs.record import SendFate, SendRow

Offsets = dict[bytes | None, int]
"""The lowest offset of each value."""


def send_rows(judged: Judged, recorder: Recorder) -> Iterator[SendRow]:
    """One row per send of the ledger, in the ledger's order."""
    last: dict[tuple[str, Partition], int] = {}
    places: dict[Partition, _Places] = {}
    for send in judged.ledger.sends:
        partition = send.partition
        key = (send.producer, partition)
        last[key] = number = last.get(key, 0) + 1
        if partition not in places:
            places[partition] = _Places(partition, judged, recorder)
        anomalies = judged.anomalies.get((partition, send.value), ())
        fate, at, epoch = places[partition].of(send, anomalies)
        yield SendRow(
            producer=send.producer,
            topic=partition[0],
            partition=partition[1],
            value=send.value.decode("utf-8", "backslashreplace"),
            acks=send.acks,
            idempotent=send.idempotent,
            outcome=str(send.outcome),
            offset=send.offset,
            sent_ms=send.sent_ms,
            ended_ms=send.ended_ms,
            attempts=send.attempts,
            error=send.error,
            number=number,
            transaction=0 if send.transaction is None else send.transaction.number,
            fate=fate,
            at=at,
            epoch=epoch,
            anomalies=tuple(anomalies),
            life=send.life,
        )


class _Places:
    """The places of a partition's records: in its final log, visible or hidden; in batches that are
    no longer there; in deleted topics with the topic's name."""

    def __init__(self, partition: Partition, judged: Judged, recorder: Recorder) -> None:
        self._log = log = judged.logs.get(partition) or FinalLog(0, ())
        self._starts = [start for _, start in log.epochs]
        self._visible: Offsets = {}
        self._hidden: Offsets = {}
        for offset, value in log.records:
            places = self._hidden if offset in log.hidden else self._visible
            places.setdefault(log.names.get(offset, value), offset)
        self._gone: dict[bytes | None, tuple[int, int]] = {}
        """The epoch and the offset of a value's first append that is not in the log, by value."""
        self._deleted: dict[bytes | None, int] = {}
        """The epoch of a value's first append to a deleted topic, by value."""
        is_known = partition in judged.logs
        for observed in recorder.of_partition(partition):
            for append in observed.appends:
                if observed.deleted_ms >= 0:
                    for _, value in recorder.contents.of(append.batch):
                        self._deleted.setdefault(value, append.epoch)
                elif is_known and not self._is_held(append):
                    for offset, value in _entries(judged, recorder, append):
                        self._gone.setdefault(value, (append.epoch, offset))

    def of(self, send: SentRecord, anomalies: Iterable[SendAnomaly]) -> tuple[SendFate, int, int]:
        """A record's fate, its offset in the final log and the epoch of its append; -1 for none."""
        value, log = send.value, self._log
        if (at := self._visible.get(value, -1)) >= 0:
            return SendFate.KEPT, at, self._epoch_at(at)
        at = self._hidden.get(value, -1)
        epoch, offset = self._gone.get(value, (self._deleted.get(value, -1), send.offset))
        epoch = epoch if at < 0 else self._epoch_at(at)
        if any(each.name == LostWrite.NAME for each in anomalies):
            return SendFate.LOST, at, epoch
        transaction = send.transaction
        if transaction is not None and transaction.outcome is TransactionOutcome.ABORTED:
            return SendFate.ABORTED, at, epoch
        if at >= 0:
            return SendFate.HIDDEN, at, epoch
        if value in self._deleted or 0 <= offset < max(log.start_offset, log.clean_offset):
            return SendFate.DELETED, at, epoch
        return SendFate.ABSENT if epoch < 0 else SendFate.TRUNCATED, at, epoch

    def _epoch_at(self, offset: int) -> int:
        index = bisect_right(self._starts, offset)
        return self._log.epochs[index - 1][0] if index else -1

    def _is_held(self, append: Append) -> bool:
        """Whether the final log has the whole batch of the append.  A leader epoch writes an offset
        only once."""
        return append.last_offset < self._log.end_offset and all(
            self._epoch_at(offset) == append.epoch
            for offset in (append.base_offset, append.last_offset)
        )


def _entries(
    judged: Judged, recorder: Recorder, append: Append
) -> Iterator[tuple[int, bytes | None]]:
    """(offset, the value or name that identifies the record), for each record."""
    contents: Sequence[tuple[int, bytes | None]] = recorder.contents.of(append.batch)
    names = judged.names.get(append.batch)
    for index, (offset, value) in enumerate(contents):
        yield offset, value if names is None else names[index]
