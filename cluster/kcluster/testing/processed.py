"""The ledger of the records that an application processed: `done =
kafka_cluster.processed("orders")`.

Owns: taking reports from any thread and of any client's records, `check`, the facts for the
judgement.  Never: judges (checks/processing.py does).  Kafka: no counterpart.

    done = kafka_cluster.processed("orders")
    ...
    for message in consumer:
        charge(message)
        done.add(message)
    ...
    done.check()
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kcluster.checks.processing import (
    AnyProblem,
    LastRequest,
    Processed,
    ProcessingFacts,
    find_problems,
)
from kcluster.checks.processing_words import problem_text, shown
from kcluster.evidence.group_history import group_history
from kcluster.evidence.recorder import Recorder
from kcluster.evidence.rows import ExchangeRow
from kcluster.operations.errors import ClusterError

_FETCH: Final = "Fetch"
_OF_READERS: Final = (_FETCH, "JoinGroup", "ConsumerGroupHeartbeat")
_FIELDS: Final = ("topic", "partition", "offset")


class ProcessingError(AssertionError):
    """The error for records that were missed, processed twice or out of order; str() has one line
    per problem."""


def judged_processing(
    recorder: Recorder, reported: Iterable[Processed], topic: str, group: str
) -> tuple[list[Processed], list[AnyProblem]]:
    """The processed records of a topic in a run that was just judged, in order of time; and the
    problems.  `group`: see ProcessedLedger."""
    judged = recorder.judged
    assert judged is not None, "just judged"
    processed = sorted(reported, key=lambda entry: entry.at_ms)
    facts = ProcessingFacts(
        {
            partition: [offset for offset, _ in log.records]
            for partition, log in judged.logs.items()
            if partition[0] == topic
        },
        processed,
        judged.ledger.reads,
        group_history(recorder, topic, group),
        list(_last_requests(recorder)),
    )
    return processed, find_problems(facts)


def _last_requests(recorder: Recorder) -> Iterator[LastRequest]:
    """The last request of each client that fetched, or was in a group."""
    last: dict[str, ExchangeRow] = {}
    fetched_ms: dict[str, int] = {}
    reading: dict[str, None] = {}
    for row in (*recorder.exchanges().rows, *recorder.unanswered()):
        if row.api in _OF_READERS:
            reading[row.client] = None
        if row.api == _FETCH:
            fetched_ms[row.client] = max(row.at_ms, fetched_ms.get(row.client, -1))
        if row.client not in last or row.at_ms >= last[row.client].at_ms:
            last[row.client] = row
    for client in reading:
        yield LastRequest(client, last[client].api, last[client].at_ms, fetched_ms.get(client, -1))


class ProcessedLedger:
    """The processed records of one topic.  `group`: the group whose commits explain the problems;
    empty: every group that reads the topic."""

    def __init__(
        self,
        topic: str,
        group: str,
        now_ms: Callable[[], int],
        began_ms: Callable[[], int],
        judge: Callable[[ProcessedLedger], list[AnyProblem]],
        is_caller_dying: Callable[[], bool],
    ) -> None:
        self.topic, self.group = topic, group
        self._now_ms, self._began_ms, self._judge = now_ms, began_ms, judge
        self._is_caller_dying = is_caller_dying
        self._lock = threading.Lock()
        self._entries: list[Processed] = []

    def add(
        self,
        record: object,
        partition: int | None = None,
        offset: int | None = None,
        *,
        by: str = "",
    ) -> None:
        """Report a record as processed, now: a record or message of any client, or its topic,
        partition and offset.  `by`: the name of the worker, by default this thread's."""
        place: tuple[object, ...] = (record, partition, offset)
        if not isinstance(record, str):
            place = tuple(_field(record, name) for name in _FIELDS)
        topic, number, at = place
        if not (isinstance(topic, str) and isinstance(number, int) and isinstance(at, int)):
            raise TypeError(f"{record!r} does not say its topic, partition and offset")
        if topic != self.topic:
            raise ValueError(f"a record of {topic}; this ledger is of {self.topic}")
        if self._is_caller_dying():
            return
        worker = by or threading.current_thread().name
        with self._lock:
            self._entries.append(Processed(self._now_ms(), (topic, number), at, worker))

    def entries(self) -> list[Processed]:
        """The reports in order."""
        with self._lock:
            return list(self._entries)

    def problems(self) -> list[AnyProblem]:
        """The records missed, processed twice or out of order so far, with causes, as values."""
        return self._judge(self)

    def lines(self) -> list[str]:
        """The problems, one sentence each."""
        return [problem_text(problem, self._began_ms()) for problem in self.problems()]

    def check(self) -> None:
        """Raise ProcessingError unless each record was processed once, and in order."""
        __tracebackhide__ = True
        lines = self.lines()
        if lines:
            raise ProcessingError("\n".join(shown(lines)))


def _field(record: object, name: str) -> object:
    """A field of a record; confluent-kafka has methods in place of fields."""
    value = getattr(record, name, None)
    return value() if callable(value) else value


def check_topic(topic: str, known: list[str], nearest: str | None) -> None:
    """Raise ClusterError if there is no such topic."""
    if topic not in known:
        hint = f"; did you mean {nearest}?" if nearest else ""
        raise ClusterError(f"no topic {topic}{hint}")
