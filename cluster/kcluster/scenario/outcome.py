"""A scenario's checks on a run: one line for each check that does not hold.

Owns: comparing the run with the checks.  Never: judges the run itself (checks/verdict.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kcluster.checks.verdict import Verdict
from kcluster.contract import Event, Note
from kcluster.events.words import text_of
from kcluster.scenario.language.model import Checks
from kcluster.scenario.play.stage import Stage

VALID = "valid"
INVALID = "invalid"


def failed_checks(checks: Checks, verdict: Verdict, stage: Stage, notes: list[Note]) -> list[str]:
    """Why the run is not as expected; actions that could not be performed come first."""
    return [
        *stage.problems,
        *_verdict(checks, verdict),
        *_anomalies(checks, verdict),
        *unexplained(checks, verdict),
        *_errors(checks, verdict),
        *_events(checks, notes),
        *_at_end(checks, stage),
        *_counts(checks, verdict),
    ]


def expected_verdict(checks: Checks) -> str:
    """The expected verdict: the one in the file, else invalid if anomalies are expected, else
    valid."""
    if checks.verdict is not None:
        return checks.verdict
    must_be = any(not count.holds(0) for count in checks.anomalies.values())
    return INVALID if must_be else VALID


def _verdict(checks: Checks, verdict: Verdict) -> Iterator[str]:
    expected = expected_verdict(checks)
    may_be = any(count.holds(0) for count in checks.anomalies.values())
    if verdict.outcome != expected and not (
        may_be and checks.verdict is None and verdict.outcome in (VALID, INVALID)
    ):
        yield f"the verdict is {verdict.outcome}, not {expected}"


def _anomalies(checks: Checks, verdict: Verdict) -> Iterator[str]:
    counts = Counter(verdict.counts())
    for name, wanted in checks.anomalies.items():
        if not wanted.holds(counts[name]):
            yield f"anomalies.{name}: there are {counts[name]}, not {wanted}"
    for name in sorted(counts):
        if name not in checks.anomalies:
            yield f"{counts[name]} {name} that were not expected"
    for violation in verdict.violations:
        yield f"an invariant is broken: {violation}"


def unexplained(checks: Checks, verdict: Verdict) -> Iterator[str]:
    """The causes in the checks that explain no anomaly of the verdict."""
    found: dict[str, None] = {}
    for anomaly in verdict.anomalies:
        found |= dict.fromkeys((*anomaly.causes, *anomaly.errors))
    for cause in checks.causes:
        if cause not in found:
            there = ", ".join(found) or "none"
            yield f"causes: no anomaly is explained by {cause} (the causes are: {there})"


def _errors(checks: Checks, verdict: Verdict) -> Iterator[str]:
    received = {error.error for error in verdict.errors}
    for name in checks.errors:
        if name not in received:
            there = ", ".join(sorted(received)) or "none"
            yield f"errors: no client received {name} (they received {there})"
    for name in checks.no_errors:
        if name in received:
            yield f"no_errors: clients received {name}"


def _events(checks: Checks, notes: list[Note]) -> Iterator[str]:
    """Events of Kafka's internal topics do not count."""
    happened: dict[str, Event] = {}
    for note in notes:
        if not note.event.is_internal:
            happened.setdefault(note.event.kind, note.event)
    for kind in checks.events:
        if kind not in happened:
            yield f"events: {kind} did not happen"
    for kind in checks.no_events:
        if kind in happened:
            yield f"no_events: {kind}: {text_of(happened[kind])}"


def _at_end(checks: Checks, stage: Stage) -> Iterator[str]:
    for condition in checks.at_end:
        if not stage.holds(condition):
            yield f"at_end: {condition} does not hold{stage.value_text(condition)}"


def _counts(checks: Checks, verdict: Verdict) -> Iterator[str]:
    numbers = {
        "sent": verdict.sent,
        "acked": verdict.acked,
        "failed": verdict.failed,
        "unknown": verdict.unknown,
        "read": verdict.read,
        "writes_unavailable_ms": verdict.unavailable_ms("writes"),
        "reads_unavailable_ms": verdict.unavailable_ms("reads"),
    }
    for name, number in numbers.items():
        wanted = getattr(checks, name)
        if wanted is not None and not wanted.holds(number):
            yield f"{name.removesuffix('_ms')}: {number}, not {wanted}"
