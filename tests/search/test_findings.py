"""What of a run is a finding of a search."""

from __future__ import annotations

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


def test_findings__a_run_that_left_no_time_to_send_anything_has_none() -> None:
    result = run_scenario(Scenario.parse(DOWN_FROM_THE_START), "virtual")
    assert result.verdict.ground is Ground.NOTHING_SENT
    assert findings_of(result) == ()
