"""Records that applications in any language have processed: reported by them, judged here.

Owns: these routes, the ledgers of a cluster.  Never: judges (checks/processing.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import threading
from typing import Annotated, Final

from msgspec import Meta, Struct

from kcluster.checks.processing import AnyProblem, Processed
from kcluster.runs.build_record import add_processing, problem_row
from kcluster.runs.record import ProblemRow, RunRecord
from kcluster.testing.processed import judged_processing
from kcluster.web.call import ApiCall
from kcluster.web.held import HeldCluster
from kcluster.web.routes import route
from kcluster.web.topics import check_topic

MAX_KEPT: Final = 1_000_000
"""The most reports that are kept for a cluster; the oldest are dropped."""


class ProcessedWanted(Struct):
    """Records that an application has processed, in this order."""

    topic: str
    offsets: Annotated[
        list[tuple[int, int]], Meta(description="Partition and offset of each record.")
    ]
    by: Annotated[
        str, Meta(description="Who processed them; it is named where one is missing.")
    ] = ""


class ProcessedAnswer(Struct, frozen=True):
    """How many records of the topic were reported as processed so far."""

    topic: str
    reported: int


class ProcessingParameters(Struct):
    """What to judge."""

    topic: str
    group: Annotated[
        str,
        Meta(description="Whose commits explain the problems; else those of all of its readers."),
    ] = ""


class ProcessingAnswer(Struct, frozen=True):
    """`valid`: each record was processed once, and in order."""

    topic: str
    valid: bool
    reported: int
    problems: list[ProblemRow]


class Reports:
    """The reports about one cluster, in order; used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Processed] = []

    def add(self, entries: list[Processed]) -> None:
        """Add reports, in order."""
        with self._lock:
            self._entries += entries
            if len(self._entries) > MAX_KEPT:
                del self._entries[: len(self._entries) - MAX_KEPT]

    def of_topic(self, topic: str) -> list[Processed]:
        """The reports of one topic."""
        with self._lock:
            return [entry for entry in self._entries if entry.partition[0] == topic]

    def topics(self) -> list[str]:
        """The topics with reports."""
        with self._lock:
            return list(dict.fromkeys(entry.partition[0] for entry in self._entries))


def reports_of(held: HeldCluster) -> Reports:
    """The reports about a cluster."""
    reports = held.part(Reports, Reports)
    return reports


@route(
    "POST",
    "/v1/clusters/<id>/processed",
    body=ProcessedWanted,
    answer=ProcessedAnswer,
    errors=(404, 409, 422),
)
def report_processed(call: ApiCall) -> ProcessedAnswer:
    """Report records as processed, now."""
    wanted, held = call.values(ProcessedWanted), call.held
    check_topic(held.cluster, wanted.topic)
    now_ms = held.cluster.driver.clock_ms()
    reports = reports_of(held)
    reports.add(
        [
            Processed(now_ms, (wanted.topic, partition), offset, wanted.by)
            for partition, offset in wanted.offsets
        ]
    )
    return ProcessedAnswer(wanted.topic, len(reports.of_topic(wanted.topic)))


@route(
    "GET",
    "/v1/clusters/<id>/processed",
    query=ProcessingParameters,
    answer=ProcessingAnswer,
    errors=(404, 409),
)
def judge_processed(call: ApiCall) -> ProcessingAnswer:
    """Whether each record of a topic was processed once and in order so far; if not, the exceptions
    and their causes."""
    cluster, topic = call.held.cluster, call.query.topic
    check_topic(cluster, topic)
    reported = reports_of(call.held).of_topic(topic)
    recorder = cluster.recorder

    def judge() -> list[AnyProblem]:
        cluster.record.judge()
        return judged_processing(recorder, reported, topic, call.query.group)[1]

    problems = cluster.call(judge)
    shown = [problem_row(problem, recorder.first_ms) for problem in problems]
    return ProcessingAnswer(topic, not shown, len(reported), shown)


def record_of_run(held: HeldCluster) -> RunRecord:
    """The whole run so far, with the applications' reports."""
    cluster, reports = held.cluster, reports_of(held)

    def read() -> RunRecord:
        record = cluster.record.read()
        for topic in reports.topics():
            judged = judged_processing(cluster.recorder, reports.of_topic(topic), topic, "")
            add_processing(record, *judged)
        return record

    return cluster.call(read)
