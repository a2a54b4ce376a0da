"""What a run of a search found, as values; the name under which equal findings are grouped.

Owns: SearchFinding, the findings of a run, their order and their group.  Never: judges a run
(checks/ does), words a finding (words.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct, structs

from kcluster.checks.anomalies import ANOMALIES
from kcluster.checks.asked import Asked
from kcluster.checks.chain.links import Link
from kcluster.checks.stories.rest import rest_story
from kcluster.checks.verdict_facts import UNKNOWN
from kcluster.evidence.lookups import Facts
from kcluster.invariants.violations import VIOLATIONS
from kcluster.scenario.language.model import Checks
from kcluster.scenario.language.words import CountCheck
from kcluster.scenario.outcome import REST, STEPS, VERDICT, may_occur
from kcluster.scenario.play.phases import RunResult

NOT_AT_REST: Final = "not-at-rest"
CRASH: Final = "crash"
NOT_JUDGED: Final = "not-judged"
MAX_CHAIN: Final = 12
NAMES: Final = (*VIOLATIONS, *ANOMALIES, NOT_AT_REST, NOT_JUDGED, CRASH)
"""The names of findings, but for those of a scenario's own checks."""


class FindingKind(StrEnum):
    """What found it; an earlier kind tells more about the cause than a later one."""

    VIOLATION = "violation"
    ANOMALY = "anomaly"
    CRASH = "crash"
    REST = "rest"
    CHECK = "check"
    UNKNOWN = "unknown"


class ChainLink(Struct, frozen=True):
    """An event that led to a finding."""

    at_ms: int
    text: str


class SearchFinding(Struct, frozen=True):
    """One broken promise of a run.  `name`: the invariant, the anomaly, or the check; `subject`:
    the partition or broker, "" for none; `at_ms`: since the start of the run, -1 if unknown;
    `count`: the records or reports of it; `allowed`: the setting that allows it, "" if nothing
    does; `detail`: the sentence of the verdict; `chain`: the events that led to it, oldest
    first."""

    kind: FindingKind
    name: str
    subject: str = ""
    at_ms: int = -1
    count: int = 1
    allowed: str = ""
    detail: str = ""
    chain: tuple[ChainLink, ...] = ()

    @property
    def group(self) -> str:
        """The signature of equal findings: the name, and what allows it."""
        return f"{self.name} ({self.allowed})" if self.allowed else self.name


def searched(checks: Checks) -> Checks:
    """The checks of a scenario as a search needs them: without what must happen, because other
    faults may prevent it.  An anomaly that the file expects may occur, and need not."""
    anything = CountCheck(">=", 0)
    return structs.replace(
        checks,
        verdict=None,
        anomalies=dict.fromkeys(checks.anomalies, anything),
        violations=dict.fromkeys(checks.violations, anything),
        causes=(),
        errors=(),
        events=(),
        at_end=(),
        comes_to_rest=True,
        sent=None,
        acked=None,
        failed=None,
        unknown=None,
        read=None,
        writes_unavailable_ms=None,
        reads_unavailable_ms=None,
    )


def asked_by(checks: Checks) -> Asked:
    """What the checks of a search read of a run besides its findings."""
    resumes = (checks.writes_resume_ms, checks.reads_resume_ms)
    return Asked(
        windows=any(wanted is not None for wanted in resumes),
        degraded=checks.no_offline or checks.no_unclean_election or checks.no_under_min_isr,
        reasons=False,
        states=False,
        trace=False,
    )


def findings_of(result: RunResult) -> tuple[SearchFinding, ...]:
    """The findings of a run, the most telling first: invariants by their time, then anomalies.  A
    run whose faults left no time to send anything has none."""
    found = [*_violations(result), *_anomalies(result), *_checks(result)]
    is_unknown = result.verdict.outcome == UNKNOWN and result.verdict.sent > 0
    if not found and is_unknown and result.scenario.heal:
        found.append(SearchFinding(FindingKind.UNKNOWN, NOT_JUDGED, detail=result.verdict.reason))
    return tuple(found)


def lead(findings: Iterable[SearchFinding]) -> SearchFinding | None:
    """The finding by which a run is grouped: one that no setting allows comes first."""
    return min(findings, key=lambda one: bool(one.allowed), default=None)


def _violations(result: RunResult) -> list[SearchFinding]:
    checks, verdict = result.scenario.checks, result.verdict
    found: dict[str, SearchFinding] = {}
    for violation in verdict.violations:
        if violation.name in checks.violations:
            continue
        known = found.get(violation.name)
        if known is not None:
            found[violation.name] = structs.replace(known, count=known.count + 1)
            continue
        found[violation.name] = SearchFinding(
            FindingKind.VIOLATION,
            violation.name,
            violation.subject,
            violation.at_ms - result.began_ms,
            detail=violation.text,
            chain=_chain(result, violation.chain),
        )
    return sorted(found.values(), key=lambda one: one.at_ms)


def _anomalies(result: RunResult) -> list[SearchFinding]:
    found: dict[tuple[str, str], SearchFinding] = {}
    for anomaly in result.verdict.anomalies:
        if may_occur(result.scenario.checks, anomaly):
            continue
        key = anomaly.name, str(anomaly.allowed)
        known = found.get(key)
        if known is not None:
            found[key] = structs.replace(known, count=known.count + anomaly.count)
            continue
        topic, number = anomaly.partition
        found[key] = SearchFinding(
            FindingKind.ANOMALY,
            anomaly.name,
            f"{topic}-{number}",
            anomaly.at_ms - result.began_ms if anomaly.at_ms >= 0 else -1,
            anomaly.count,
            str(anomaly.allowed),
            anomaly.text,
            _chain(result, anomaly.chain),
        )
    return list(found.values())


def _checks(result: RunResult) -> list[SearchFinding]:
    """The other checks that failed, one finding per check: not actions that were impossible."""
    found: dict[str, SearchFinding] = {}
    for failed in result.failed:
        if failed.check in (STEPS, VERDICT, "anomalies", "violations"):
            continue
        if failed.check == REST:
            found.setdefault(NOT_AT_REST, _not_at_rest(result))
        else:
            one = SearchFinding(FindingKind.CHECK, failed.check, detail=failed.text)
            found.setdefault(failed.check, one)
    return list(found.values())


def _not_at_rest(result: RunResult) -> SearchFinding:
    """The first thing for which a run waited in vain, and what last happened to it."""
    first = result.unfinished[0]
    links = rest_story(Facts(result.recorder, result.ledger), first.partition, first.broker)
    return SearchFinding(
        FindingKind.REST,
        NOT_AT_REST,
        first.subject,
        links[-1].at_ms - result.began_ms if links else -1,
        len(result.unfinished),
        detail=first.text,
        chain=_chain(result, links),
    )


def _chain(result: RunResult, links: Iterable[Link]) -> tuple[ChainLink, ...]:
    began_ms = result.began_ms
    shown = [ChainLink(entry.at_ms - began_ms, entry.text) for entry in links]
    return tuple(shown[-MAX_CHAIN:])
