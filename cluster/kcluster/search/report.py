"""A finding of a search as facts for people: what happened, and which steps it needs.

Owns: Report and its parts; the scenario file that repeats the finding.  Never: words anything
(words.py does), runs anything.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from kcluster.scenario.language.model import Checks, Step
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.words import CountCheck
from kcluster.search.certainty import Certainty
from kcluster.search.findings import FindingKind, SearchFinding


class Report(Struct, frozen=True):
    """A finding and the scenario that shows it.  `group`: its name among the findings of a search;
    `findings`: all findings of the scenario's run; `outcome`: its verdict; `run`: the number of the
    run that showed it first, from 1; `steps_before`: the number of steps of that run; `tries`: the
    number of runs that shrinking took; `is_minimal`: whether the run was seen to pass without each
    single step; `certainty`: from which moment on it was sure, None if it was not asked for."""

    group: str
    finding: SearchFinding
    findings: tuple[SearchFinding, ...]
    scenario: Scenario
    outcome: str
    run: int
    steps_before: int
    tries: int
    is_minimal: bool
    certainty: Certainty | None = None

    @property
    def steps(self) -> Sequence[Step]:
        """The steps that it needs, in their order."""
        return self.scenario.steps


def scenario_to_write(report: Report, name: str, story: str) -> Scenario:
    """The scenario of a report as a file of its own: with this name and story, and expecting the
    findings, so that a run that shows them is as expected."""
    checks = expected(report.findings, report.outcome, report.scenario.checks)
    return structs.replace(report.scenario, name=name, story=story, checks=checks, may_edit=())


def expected(findings: Sequence[SearchFinding], outcome: str, before: Checks) -> Checks:
    """The checks that expect these findings by their names.  A crash cannot be expected: the file
    then has the scenario's own checks, and fails."""
    if any(one.kind is FindingKind.CRASH for one in findings):
        return before
    some = CountCheck(">=", 1)
    named = [(one.kind, one.name) for one in findings]
    return Checks(
        verdict=outcome,
        anomalies={name: some for kind, name in named if kind is FindingKind.ANOMALY},
        violations={name: some for kind, name in named if kind is FindingKind.VIOLATION},
        allowed_anomalies=before.allowed_anomalies,
        comes_to_rest=all(kind is not FindingKind.REST for kind, _ in named),
    )
