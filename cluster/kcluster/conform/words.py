"""The words of a conformance report.

Owns: the lines for a terminal, shared with the page.  Never: decides anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.conform.comparing import NOTHING, shown
from kcluster.conform.findings import ConformReport, ValueDifference
from kcluster.protocol.errors import error_of

MAX_CASES: Final = 3
"""The number of cases that are named per difference; JSON has all."""


def report_lines(report: ConformReport) -> Iterator[str]:
    """The report: differences by API, what was not tried, the counts."""
    api = ""
    for one in report.differences:
        if one.api != api:
            api = one.api
            yield f"{api}"
        yield f"  v{one.versions}: {difference_text(one, report.against)}"
        yield f"    {cases_text(one.cases)}"
    if report.differences:
        yield ""
    for row in report.not_tried:
        yield f"not tried: {row.reason}: {count_text(len(row.cases), 'case')}"
    if report.not_tried:
        yield ""
    yield summary_text(report)


def difference_text(one: ValueDifference, against: str) -> str:
    """`answer.topics[].error_code is "A"; Kafka 4.4.0 says "B"`."""
    has = _value(one.path, one.cluster if one.has_cluster else NOTHING)
    kafka = _value(one.path, one.kafka if one.has_kafka else NOTHING)
    return f"{one.path} is {has}; Kafka {against} says {kafka}"


def _value(path: str, value: object) -> str:
    """A value; of a field with an error's code the error's name."""
    if path.endswith("error_code") and isinstance(value, int):
        return error_of(value).name
    return shown(value)


def cases_text(cases: tuple[str, ...]) -> str:
    """`14 cases: fetch: a, fetch: b, …`."""
    named = ", ".join(cases[:MAX_CASES])
    more = ", …" if len(cases) > MAX_CASES else ""
    return f"{count_text(len(cases), 'case')}: {named}{more}"


def summary_text(report: ConformReport) -> str:
    """The last line."""
    end = f"; not all cases: {report.stopped}" if report.stopped else ""
    groups = count_text(len(report.differences), "difference")
    return (
        f"{report.same:,} answers are those of Apache Kafka {report.against},"
        f" {report.different:,} are not ({groups}), {report.untried:,} were not tried;"
        f" {report.took_s:.0f} s{end}"
    )


def count_text(count: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
