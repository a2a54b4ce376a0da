"""What of a run is a finding of a search."""

from __future__ import annotations

import pytest

from kcluster.broker.replication.isr import IsrChanges
from kcluster.checks.verdict_facts import Ground
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from kcluster.search.findings import findings_of

DOWN_FROM_THE_START = """
topology: {brokers: 1, profile: fast, topics: {orders: {}}}
workload: {producers: {topic: orders, name: shop, rate: 20/s, transactions: {every: 4}}}
duration: 1s
steps: [{at: 0ms, kill: 1}]
"""

DOWN_AND_UP = """
topology: {brokers: 2, profile: fast, topics: {orders: {assignment: [[1, 2]]}}}
workload: {producers: {topic: orders, name: shop, rate: 20/s}}
duration: 1s
steps: [{at: 500ms, kill: 2, for: 200ms}]
"""


def test_findings__a_run_that_left_no_time_to_send_anything_has_none() -> None:
    result = run_scenario(Scenario.parse(DOWN_FROM_THE_START), "virtual")
    assert result.verdict.ground is Ground.NOTHING_SENT
    assert findings_of(result) == ()


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_findings__what_keeps_a_run_from_its_rest_has_a_subject_and_a_story(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(IsrChanges, "propose_expansions", lambda *_: None)
    result = run_scenario(Scenario.parse(DOWN_AND_UP), "virtual")
    (found,) = findings_of(result)
    assert (found.name, found.subject) == ("not-at-rest", "orders-0")
    assert "broker 2 is not in the ISR [1]; its log ends at" in found.detail
    assert [(entry.at_ms, entry.text) for entry in found.chain] == [
        (500, "broker 2: process killed; written data survives"),
        (590, "broker 2 fenced: no heartbeat for 90 ms"),
        (590, "orders-0: ISR [1, 2] -> [1]: broker 2 fenced: no heartbeat for 90 ms"),
    ]
