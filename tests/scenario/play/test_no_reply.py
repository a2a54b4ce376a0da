"""A verdict names requests that got no reply."""

from __future__ import annotations

import pytest

from kcluster.broker.node import BrokerNode
from kcluster.contract import Request
from kcluster.protocol.apis import ApiKey
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

SCENARIO = """
topology: {brokers: 3, profile: fast, topics: {orders: {}}}
workload: {producers: {topic: orders, rate: 20/s}, consumers: {topics: orders, group: readers}}
duration: 5s
"""


@pytest.mark.pure_python
@pytest.mark.parametrize("forgotten", [None, ApiKey.FETCH])
def test_no_reply__is_judged_by_the_verdict(
    forgotten: ApiKey | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, count = BrokerNode.reply, [0]

    def reply(self: BrokerNode, request: Request, body: object) -> None:
        if request.api_key == forgotten and request.connection_id >= 0:
            count[0] += 1
            if count[0] == 20:
                return
        original(self, request, body)

    monkeypatch.setattr(BrokerNode, "reply", reply)
    verdict = run_scenario(Scenario.parse(SCENARIO), "virtual").verdict
    assert {found.name for found in verdict.violations} == ({"no-reply"} if forgotten else set())
