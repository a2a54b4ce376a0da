"""The words of a search: a finding in a sentence, with the steps that it needs.

Owns: every sentence about a finding.  Never: finds, shrinks, decides.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Final

from msgspec import to_builtins

from kcluster.actions.stalls import StallProgram
from kcluster.checks.anomalies import ANOMALIES
from kcluster.config.files.fields import duration_text
from kcluster.config.files.problems import unknown
from kcluster.events.words import sentence_of
from kcluster.invariants.violations import VIOLATIONS
from kcluster.json_types import JsonObject
from kcluster.operations.conditions import MomentCondition
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.writing import step_values
from kcluster.search.certainty import Certainty, Odds
from kcluster.search.findings import (
    CRASH,
    NAMES,
    NOT_AT_REST,
    NOT_JUDGED,
    FindingKind,
    SearchFinding,
)
from kcluster.search.report import Report

_OTHERS: Final = {
    NOT_AT_REST: "something never came to rest, though every fault was undone",
    NOT_JUDGED: "the run cannot be judged",
    CRASH: "a bug in kcluster ended the run",
}
ANY: Final = "any"
"""The word for all findings in `--stop-on`."""
STORY_WIDTH: Final = 98
NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def meaning_of(finding: SearchFinding) -> str:
    """What a finding of this name means, in one sentence without its end."""
    if finding.kind is FindingKind.VIOLATION:
        return VIOLATIONS[finding.name]
    if finding.kind is FindingKind.ANOMALY:
        return ANOMALIES[finding.name].MEANING
    return _OTHERS.get(finding.name, f"the check {finding.name} does not hold")


def sentence(report: Report) -> str:
    """What happened, to which partition and when; which steps it needs; what allows it."""
    finding = report.finding
    at = f" at +{_seconds(finding.at_ms)}" if finding.at_ms >= 0 else ""
    is_named = finding.subject and finding.kind is not FindingKind.REST  # its detail names it
    subject = f"{finding.subject}: " if is_named else ""
    detail = finding.detail or meaning_of(finding)
    parts = [f"{finding.name}{at}: {subject}{detail}."]
    if report.steps:
        parts.append(_needs(report))
    else:
        parts.append("It needs no fault.")
    if finding.allowed:
        parts.append(f"{finding.allowed} allows it.")
    return " ".join(parts)


def _needs(report: Report) -> str:
    return needs_text(report.steps, report.is_minimal)


def needs_text(steps: Sequence[Step], is_minimal: bool) -> str:
    """Which steps a finding needs, in one or two sentences."""
    count, shown = len(steps), _listed([step_text(step) for step in steps])
    if not is_minimal:
        return f"It follows {shown}."
    if count == 1:
        return f"It needs one step: {shown}. Without this step it does not happen."
    number = NUMBERS[count] if count < len(NUMBERS) else str(count)
    return f"It needs {number} steps: {shown}. Without any one of them it does not happen."


def step_text(step: Step) -> str:
    """A step in a few words: `kill 1 at +9.1s for 3s`."""
    values = step_values(step)[step.verb]
    words = [step.verb]
    if isinstance(step.action, StallProgram):
        words.append(_stall_text(step.action))
    elif isinstance(values, dict):
        first, *others = values.items()
        words.append(", ".join([_plain(first[1]), *(f"{key} {_plain(x)}" for key, x in others)]))
    elif values is not None:
        words.append(_plain(values))
    at, lasts = step.trigger.at, step.options.for_
    when, delay = step.trigger.when, step.trigger.delay
    if isinstance(when, MomentCondition):
        later = "at" if delay is None else f"{duration_text(delay.low_ms)} after"
        since = [] if at is None else [f"since +{_seconds(at.low_ms)}"]
        words += [f"{later} the {when.moment}", *since]
    else:
        words += [] if at is None else [f"at +{_seconds(at.low_ms)}"]
        words += [] if when is None else [f"when {when}"]
    words += [] if lasts is None else [f"for {duration_text(lasts.low_ms)}"]
    words += [] if step.options.until is None else [f"until {step.options.until}"]
    return " ".join(words)


def _stall_text(stall: StallProgram) -> str:
    """What stands still, where and for how long."""
    place = "any line" if stall.line is None else f"{stall.line}"
    often = "each time" if stall.share == 1 else f"at {stall.share:.0%} of the times"
    longest = duration_text(stall.longest_ms)
    return f"{stall.app} at {place} (a thread stands still there {often}, for up to {longest})"


def _plain(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value)


def report_lines(report: Report) -> Iterator[str]:
    """The report of a finding: the sentence, the events that led to it, how it was found."""
    yield sentence(report)
    for link in report.finding.chain:
        yield f"    +{_seconds(link.at_ms)} {link.text}"
    yield f"  {found_text(report)}"
    if report.certainty is not None:
        yield f"  {certainty_text(report.certainty, _at_that_moment(report, report.certainty))}"


def found_text(report: Report) -> str:
    """How a finding was found and shrunk."""
    before, after = report.steps_before, len(report.steps)
    shrunk = f"shrunk from {_count(before, 'step')} to {after} in {_count(report.tries, 'run')}"
    return f"found in run {report.run}, {shrunk}"


def certainty_text(certainty: Certainty, what: str = "") -> str:
    """How likely a finding was over time, and from which moment on it was sure; `what`: what
    happened then, "" if unknown."""
    shown = f"{certainty.others} of {certainty.seeds} other seeds show it"
    sure_from_ms = certainty.sure_from_ms
    if not certainty.odds:
        return shown
    if sure_from_ms == 0:
        return f"{shown}; with this one it was sure from the start"
    first, *later = _changes(certainty)
    course = [f"from +{_seconds(first.at_ms)} {first.shown} of {first.runs} runs do"]
    course += [f"from +{_seconds(one.at_ms)} {one.shown}" for one in later]
    text = f"{shown}; with chance drawn anew {_listed(course, ', ')}"
    if sure_from_ms is None:
        return f"{text}: it was never sure"
    return f"{text}: it was sure from then on" + (f" ({what})" if what else "")


def _changes(certainty: Certainty) -> Iterator[Odds]:
    """The odds that differ from those before them, until it was sure."""
    shown = -1
    for odds in certainty.odds:
        if odds.shown != shown:
            yield odds
        if odds.at_ms == certainty.sure_from_ms:
            return
        shown = odds.shown


def _at_that_moment(report: Report, certainty: Certainty) -> str:
    """What happened when a finding became sure, as far as it is known: a step, a link of its chain,
    or any event."""
    at_ms = certainty.sure_from_ms
    for step in report.steps:
        at = step.trigger.at
        if step.trigger.when is None and at is not None and at.low_ms == at_ms:
            return step_text(step)
    links = [link.text for link in report.finding.chain if link.at_ms == at_ms]
    if links:
        return links[0]
    return "" if certainty.event is None else sentence_of(certainty.event)


def comment(report: Report) -> str:
    """The comment at the head of the file that repeats a finding."""
    return f"{report.group}: {meaning_of(report.finding)}.\n{found_text(report)}"


def story(report: Report) -> str:
    """The story of the file that repeats a finding."""
    return "\n".join(wrap(sentence(report), STORY_WIDTH)) + "\n"


def report_values(report: Report, file: str) -> JsonObject:
    """A report for JSON.  `file`: the scenario file that repeats the finding, "" for none."""
    certainty = report.certainty
    return {
        "finding": report.finding.name,
        "group": report.group,
        "sentence": sentence(report),
        "facts": to_builtins(report.finding),
        "steps": [step_values(step) for step in report.steps],
        "is_minimal": report.is_minimal,
        "seed": report.scenario.seed,
        "run": report.run,
        "steps_before": report.steps_before,
        "shrinking_runs": report.tries,
        "other_seeds": 0 if certainty is None else certainty.seeds,
        "other_seeds_that_show_it": 0 if certainty is None else certainty.others,
        "odds": [] if certainty is None else to_builtins(certainty.odds),
        "sure_from_ms": None if certainty is None else certainty.sure_from_ms,
        "file": file,
    }


def unknown_name(name: str) -> str:
    """The message for a finding that does not exist."""
    return f"--stop-on: {unknown('finding', name, (*NAMES, ANY))}"


def summary_text(runs: int, wall_s: float, times: Mapping[str, int]) -> str:
    """The last line of a search: `times`: the number of runs by the group of their finding."""
    spent = f"{_count(runs, 'run')} in {wall_s:.0f} s"
    if not times:
        return f"{spent}: nothing found"
    listed = ", ".join(f"{group} ({_count(count, 'run')})" for group, count in times.items())
    return f"{spent}: {listed}"


def _listed(texts: Sequence[str], mark: str = "; ") -> str:
    return mark.join([*texts[:-1], f"and {texts[-1]}"]) if len(texts) > 1 else texts[0]


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"
