"""Which checks of a scenario fail, by their keys."""

from __future__ import annotations

import pytest

from kcluster.events.words import sentence_of
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

LEADER_DIES = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, name: shop, rate: 100/s}}
steps: [{at: 500ms, kill: 1, for: 500ms}, {at: 1500ms, kill: 2, for: 500ms}]
duration: 3s
checks: CHECKS
"""


def failed(checks: str) -> list[str]:
    scenario = Scenario.parse(LEADER_DIES.replace("CHECKS", checks))
    return [each.check for each in run_scenario(scenario, "virtual").failed]


@pytest.mark.parametrize(
    ("checks", "keys"),
    [
        ("{writes_resume: < 300ms}", []),
        ("{writes_resume: < 50ms}", ["writes_resume"]),
        ("{writes_unavailable: < 300ms, writes_resume: < 200ms}", []),
        ("{writes_unavailable: < 150ms, writes_resume: < 150ms}", ["writes_unavailable"]),
        ("{writes_resume: none, reads_resume: none}", ["writes_resume"]),
    ],
)
def test_outcome__the_longest_time_without_writes_is_not_their_sum(
    checks: str, keys: list[str]
) -> None:
    assert failed(checks) == keys


def test_outcome__writes_that_never_resume_have_not_resumed() -> None:
    scenario = Scenario.parse(
        LEADER_DIES.replace("steps: [{at: 500ms, kill: 1, for: 500ms}", "steps: [{at: 1s, kill: 1}")
        .replace(", for: 500ms}]", "}]\nheal: false")
        .replace("[[1, 2, 3]]", "[[1, 2, 3]], config: {min.insync.replicas: 2}")
        .replace("CHECKS", "{verdict: unknown, writes_resume: < 1h}")
    )
    failures = run_scenario(scenario, "virtual").failures
    assert failures == ["writes_resume: writes of orders-0 did not resume"]


ACKS_ONE = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 200/s, acks: 1}}
steps: [{at: 500ms, slow: {nodes: 1, latency: 20ms}}, {at: 1s, kill: 1, for: 500ms}]
duration: 2500ms
checks: CHECKS
"""


@pytest.mark.parametrize(
    ("checks", "keys"),
    [
        ("{}", ["verdict"] * 3),
        ("{allowed_anomalies: [lost-write, nonmonotonic-send]}", []),
        ("{allowed_anomalies: lost-write}", ["verdict"]),
        ("{allowed_anomalies: [lost-write, nonmonotonic-send], verdict: valid}", ["verdict"]),
    ],
)
def test_outcome__anomalies_that_a_setting_allows_may_be_expected(
    checks: str, keys: list[str]
) -> None:
    result = run_scenario(Scenario.parse(ACKS_ONE.replace("CHECKS", checks)), "virtual")
    assert "acks=1" in {each.allowed for each in result.verdict.anomalies}
    assert all(each.allowed for each in result.verdict.anomalies)
    assert [each.check for each in result.failed] == keys


TWO_DEATHS = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 100/s}}
steps: [{at: 500ms, kill: 1, for: 1s}, {at: 900ms..901ms, kill: 1}]
duration: 3s
"""


@pytest.mark.parametrize("drawn", ["at: 900ms..901ms, kill: 1", "at: 900ms, kill: any controller"])
def test_outcome__a_drawn_step_that_cannot_be_performed_is_skipped(drawn: str) -> None:
    text = TWO_DEATHS.replace("at: 900ms..901ms, kill: 1", drawn)
    if "controller" in drawn:
        text = text.replace("kill: 1, for", "kill: controller, for")
    result = run_scenario(Scenario.parse(text), "virtual")
    assert result.failures == []
    assert len(result.played) == 1
    (skipped,) = [note for note in result.recorder.notes if note.event.kind == "step_skipped"]
    assert 890 <= skipped.at_ms <= 910
    assert "is down" in sentence_of(skipped.event)
    assert sentence_of(skipped.event).startswith("kill (line 3)")


def test_outcome__a_fixed_step_that_cannot_be_performed_fails_the_run() -> None:
    text = TWO_DEATHS.replace("900ms..901ms", "900ms")
    result = run_scenario(Scenario.parse(text), "virtual")
    assert [each.check for each in result.failed] == ["steps"]
