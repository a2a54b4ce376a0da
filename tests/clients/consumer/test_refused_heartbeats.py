"""A coordinator that refuses every heartbeat for a while: its members go on, and so does time.

Kafka's clients join again without a backoff; over links without latency that must not become an
endless loop at one moment.
"""

from __future__ import annotations

from collections import Counter

import pytest

from kcluster.protocol.apis import ApiKey
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

REFUSED = """
topology: {brokers: 1, profile: fast, topics: {orders: {}}}
workload:
  producers: {topic: orders, name: shop, rate: 20/s}
  consumers: {topics: orders, name: packer, group: packing, %s}
duration: 2s
steps:
  - {at: %s, rule: {api: %s, answer: %s}, for: 300ms}
"""
SHARE = ("share: true", "ShareGroupHeartbeat", ApiKey.SHARE_GROUP_HEARTBEAT)
CONSUMER = ("group_protocol: consumer", "ConsumerGroupHeartbeat", ApiKey.CONSUMER_GROUP_HEARTBEAT)


@pytest.mark.parametrize("begins", ["0ms", "800ms"])
@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"])
@pytest.mark.parametrize(("kind", "api", "key"), [SHARE, CONSUMER], ids=["share", "consumer"])
def test_refused_heartbeats__the_member_joins_again_but_not_twice_at_one_moment(
    kind: str, api: str, key: ApiKey, error: str, begins: str
) -> None:
    result = run_scenario(Scenario.parse(REFUSED % (kind, begins, api, error)), "virtual")
    assert result.passed, result.failures
    beats = Counter(
        at_ms for at_ms, _, reply in result.recorder.answers if reply.request.api_key == key
    )
    assert max(beats.values()) <= 2, beats.most_common(3)
    assert len(beats) > 50
