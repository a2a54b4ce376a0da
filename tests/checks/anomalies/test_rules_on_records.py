"""A rule that copies or alters records: the anomaly names the rule, not a setting or a bug."""

from __future__ import annotations

import pytest

from kcluster.checks.settings import Setting
from kcluster.checks.verdict import Verdict
from kcluster.evidence.causes import Cause
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

TEXT = """
topology: {{brokers: 1, profile: fast, topics: {{orders: {{}}}}}}
workload:
  producers: {{topic: orders, name: shop, rate: 100/s, idempotent: {idempotent}}}
  consumers: {{partitions: orders-0, name: reader}}
duration: 500ms
steps:
  - {{at: 200ms, rule: {{{rule}}}}}
"""


def verdict(rule: str, idempotent: str = "true") -> Verdict:
    text = TEXT.format(rule=rule, idempotent=idempotent)
    found: Verdict = run_scenario(Scenario.parse(text), "virtual").verdict
    return found


@pytest.mark.parametrize("idempotent", ["true", "false"])
def test_verdict__a_copy_is_a_duplicate_by_the_rule(idempotent: str) -> None:
    (found,) = verdict("duplicate: true, nth: 2", idempotent).anomalies
    assert (found.name, found.allowed) == ("duplicate", Setting.COPIED)
    assert found.causes == (Cause.FAULT_RULE,)
    assert [entry.text for entry in found.chain[1:2]] == [
        "rule rule-1: Produce from client-100000 to broker 1: appends the records a second time"
    ]
    assert not any("did not get the answer" in entry.text for entry in found.chain)


def test_audit__a_copy_has_the_rule_as_its_cause() -> None:
    text = TEXT.format(rule="duplicate: true, nth: 2", idempotent="true")
    judged = run_scenario(Scenario.parse(text), "virtual").recorder.judged
    assert judged is not None
    ((found,),) = judged.anomalies.values()
    assert found.name == "duplicate"
    assert found.cause.startswith("Produce from client-100000")


def test_verdict__a_changed_value_was_never_in_the_log() -> None:
    (found,) = verdict("corrupt: value, nth: 2").anomalies
    assert (found.name, found.allowed) == ("inconsistent-offsets", Setting.ALTERED)
    assert Cause.FAULT_RULE in found.causes


def test_verdict__a_wrong_crc_stops_the_consumer() -> None:
    (found,) = verdict("corrupt: crc, nth: 2").anomalies
    assert (found.name, found.allowed) == ("unseen", Setting.ALTERED)
    assert found.causes == (Cause.FAULT_RULE,)


@pytest.mark.parametrize(
    "rule", ["api: Fetch, empty: true", "schema_id: 7", "api: Fetch, max_version: 4"]
)
def test_verdict__other_effects_lose_nothing(rule: str) -> None:
    assert not verdict(rule).anomalies
