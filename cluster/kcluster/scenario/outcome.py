"""A scenario's checks on a run: the checks that do not hold, each with the reason in one line.

Owns: comparing the run with the checks.  Never: judges the run itself (checks/verdict.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kcluster.checks.anomalies import Anomaly
from kcluster.checks.degraded import DegradedKind
from kcluster.checks.verdict import Verdict
from kcluster.contract import Event, Note
from kcluster.events.words import text_of
from kcluster.scenario.language.model import Checks
from kcluster.scenario.play.stage import ScenarioStage

VALID = "valid"
INVALID = "invalid"
STEPS: Final = "steps"
"""The name, in place of a check's, for an action that was not performed."""
REST: Final = "rest"
"""The name, in place of a check's, for a run that did not come to rest."""
VERDICT: Final = "verdict"
"""The check that also fails if an invariant is broken, or an anomaly occurs that no check names."""


MAX_NAMES: Final = 8
"""The most partitions that a reason names."""


class FailedCheck(Struct, frozen=True):
    """A check that does not hold.  `check`: its key in the file, or STEPS or REST; `text`: the
    reason."""

    check: str
    text: str

    def __str__(self) -> str:
        return self.text


def failed_checks(
    checks: Checks, verdict: Verdict, stage: ScenarioStage, notes: list[Note]
) -> list[FailedCheck]:
    """The reasons why the run is not as expected; actions that could not be performed come
    first."""
    return [
        *(FailedCheck(STEPS, text) for text in stage.problems),
        *(FailedCheck(VERDICT, text) for text in _verdict(checks, verdict)),
        *_anomalies(checks, verdict),
        *(FailedCheck("causes", text) for text in unexplained(checks, verdict)),
        *_errors(checks, verdict),
        *_events(checks, notes),
        *_degraded(checks, verdict),
        *(FailedCheck("at_end", text) for text in _at_end(checks, stage)),
        *_counts(checks, verdict, stage.pace),
        *_resumed(checks, verdict, stage.pace),
    ]


def expected_verdict(checks: Checks) -> str:
    """The expected verdict: from the file, else invalid if anomalies are expected, else valid."""
    if checks.verdict is not None:
        return checks.verdict
    counts = (*checks.anomalies.values(), *checks.violations.values())
    return INVALID if any(not count.holds(0) for count in counts) else VALID


def may_occur(checks: Checks, anomaly: Anomaly) -> bool:
    """Whether the checks expect an anomaly, in any number."""
    name = anomaly.name
    return name in checks.anomalies or bool(anomaly.allowed and name in checks.allowed_anomalies)


def _verdict(checks: Checks, verdict: Verdict) -> Iterator[str]:
    expected = expected_verdict(checks)
    counts = (*checks.anomalies.values(), *checks.violations.values())
    may_be = checks.allowed_anomalies or any(count.holds(0) for count in counts)
    if verdict.outcome != expected and not (
        may_be and checks.verdict is None and verdict.outcome in (VALID, INVALID)
    ):
        yield f"the verdict is {verdict.outcome}, not {expected}"


def _anomalies(checks: Checks, verdict: Verdict) -> Iterator[FailedCheck]:
    counts = Counter(verdict.counts())
    for name, wanted in checks.anomalies.items():
        if not wanted.holds(counts[name]):
            text = f"anomalies.{name}: there are {counts[name]}, not {wanted}"
            yield FailedCheck("anomalies", text)
    unexpected: Counter[str] = Counter()
    for anomaly in verdict.anomalies:
        if not may_occur(checks, anomaly):
            unexpected[anomaly.name] += anomaly.count
    for name in sorted(unexpected):
        may_be = name in checks.allowed_anomalies
        why = "that nothing allows" if may_be else "that were not expected"
        yield FailedCheck(VERDICT, f"{unexpected[name]} {name} {why}")
    yield from _violations(checks, verdict)


def _violations(checks: Checks, verdict: Verdict) -> Iterator[FailedCheck]:
    broken = Counter(violation.name for violation in verdict.violations)
    for name, wanted in checks.violations.items():
        if not wanted.holds(broken[name]):
            text = f"violations.{name}: there are {broken[name]}, not {wanted}"
            yield FailedCheck("violations", text)
    for violation in verdict.violations:
        if violation.name not in checks.violations:
            yield FailedCheck(VERDICT, f"an invariant is broken: {violation}")


def unexplained(checks: Checks, verdict: Verdict) -> Iterator[str]:
    """The causes in the checks that do not explain any anomaly of the verdict."""
    found: dict[str, None] = {}
    for anomaly in verdict.anomalies:
        found |= dict.fromkeys((*anomaly.causes, *anomaly.errors))
    for cause in checks.causes:
        if cause not in found:
            there = ", ".join(found) or "none"
            yield f"causes: no anomaly is explained by {cause} (the causes are: {there})"


def _errors(checks: Checks, verdict: Verdict) -> Iterator[FailedCheck]:
    received = {error.error for error in verdict.errors}
    for name in checks.errors:
        if name not in received:
            there = ", ".join(sorted(received)) or "none"
            text = f"errors: no client received {name} (they received {there})"
            yield FailedCheck("errors", text)
    for name in checks.no_errors:
        if name in received:
            yield FailedCheck("no_errors", f"no_errors: clients received {name}")


def _events(checks: Checks, notes: list[Note]) -> Iterator[FailedCheck]:
    """The failures of checks on events.  Events of Kafka's internal topics do not count."""
    happened: dict[str, Event] = {}
    for note in notes:
        if not note.event.is_internal:
            happened.setdefault(note.event.kind, note.event)
    for kind in checks.events:
        if kind not in happened:
            yield FailedCheck("events", f"events: {kind} did not happen")
    for kind in checks.no_events:
        if kind in happened:
            text = f"no_events: {kind}: {text_of(happened[kind])}"
            yield FailedCheck("no_events", text)


_NOT_DEGRADED: Final = {
    "no_offline": DegradedKind.OFFLINE,
    "no_unclean_election": DegradedKind.UNCLEAN_ELECTION,
    "no_under_min_isr": DegradedKind.UNDER_MIN_ISR,
}


def _degraded(checks: Checks, verdict: Verdict) -> Iterator[FailedCheck]:
    """The failures of checks on degraded partitions, at most one for each check: the verdict has
    the lines."""
    for key, kind in _NOT_DEGRADED.items():
        if getattr(checks, key):
            found = {each.partition: each for each in verdict.degraded if each.kind is kind}
            names = [f"{topic}-{number}" for topic, number in found]
            if names:
                more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
                yield FailedCheck(key, f"{key}: {', '.join(names[:MAX_NAMES])}{more}")


def _at_end(checks: Checks, stage: ScenarioStage) -> Iterator[str]:
    for condition in checks.at_end:
        if not stage.holds(condition):
            yield f"at_end: {condition} does not hold{stage.value_text(condition)}"


def _counts(checks: Checks, verdict: Verdict, pace: int) -> Iterator[FailedCheck]:
    numbers = {
        "sent": verdict.sent,
        "acked": verdict.acked,
        "failed": verdict.failed,
        "unknown": verdict.unknown,
        "read": verdict.read,
        "writes_unavailable_ms": verdict.unavailable_ms("writes") // pace,
        "reads_unavailable_ms": verdict.unavailable_ms("reads") // pace,
    }
    for name, number in numbers.items():
        wanted = getattr(checks, name)
        if wanted is not None and not wanted.holds(number):
            key = name.removesuffix("_ms")
            yield FailedCheck(key, f"{key}: {number}, not {wanted}")


def _resumed(checks: Checks, verdict: Verdict, pace: int) -> Iterator[FailedCheck]:
    """The failures of checks on resumed service, at most one for each kind: the longest window, or
    a window that never ended."""
    kinds = (("writes", checks.writes_resume_ms), ("reads", checks.reads_resume_ms))
    for kind, wanted in kinds:
        windows = [window for window in verdict.windows if window.kind == kind]
        if wanted is None:
            continue
        key = f"{kind}_resume"
        open_ = next((window for window in windows if not window.is_over), None)
        if open_ is not None:
            topic, number = open_.partition
            yield FailedCheck(key, f"{key}: {kind} of {topic}-{number} did not resume")
            continue
        longest_ms = max((window.duration_ms for window in windows), default=0) // pace
        if not wanted.holds(longest_ms):
            yield FailedCheck(key, f"{key}: after {longest_ms} ms, not {wanted}")
