"""A run that would go on at one moment for ever ends with a verdict that says what went on."""

from __future__ import annotations

import pytest

from kcluster.checks.verdict_facts import INVALID
from kcluster.contract import PeerRequest
from kcluster.invariants.livelock import LOOKED_AT, StepsAtOnce
from kcluster.runtime.livelock import LivelockError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play import virtual
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

PROCESSOR = """
topology:
  brokers: 1
  topics: {orders: {partitions: 1}, bills: {partitions: 1}}
  config: {group.initial.rebalance.delay.ms: 0}
workload:
  producers: {topic: orders, name: shop, count: 5, start: 3s}
  processors: {topic: orders, to: bills, name: biller, group: billing%s}
duration: 6s
"""
REFUSED = """
steps:
  - {at: 2s, rule: {api: TxnOffsetCommit, answer: %s}, for: 3s}
"""


def played(text: str) -> RunResult:
    return run_scenario(Scenario.parse(text), "virtual")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(
    "error", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "INVALID_TXN_STATE"]
)
def test_processor__whose_group_refuses_its_offsets_lets_time_pass(
    error: str, protocol: str
) -> None:
    """Each try takes retry.backoff.ms at least, and is made by a member that has joined again."""
    result = played(PROCESSOR % f", group_protocol: {protocol}" + REFUSED % error)
    assert not result.verdict.violations
    tries = [one for one in result.ledger.transactions if one.error]
    assert 0 < len(tries) <= 20


def test_processor__that_a_group_does_not_know_joins_again() -> None:
    result = played(PROCESSOR % "" + REFUSED % "UNKNOWN_MEMBER_ID")
    assert result.passed
    members: dict[bool, set[str]] = {True: set(), False: set()}
    for transaction in result.ledger.transactions:
        if transaction.offsets is not None:
            members[bool(transaction.error)].add(transaction.offsets.member)
    assert members[True]
    assert members[False]
    assert members[True].isdisjoint(members[False])


def test_livelock__ends_the_run_and_is_in_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every transaction is aborted, on purpose, and the same records are read again, at once."""
    monkeypatch.setattr(virtual, "LEAST_STEPS", 3_000)
    monkeypatch.setattr(virtual, "STEPS_EACH", 1)
    result = played(PROCESSOR % ", abort: 100%")
    assert result.verdict.outcome == INVALID
    (found,) = result.verdict.violations
    assert found.name == "livelock"
    assert "of biller" in found.text
    assert [text.partition(":")[0] for text in result.failures] == [
        "the verdict is invalid, not valid",
        "an invariant is broken",
        "it did not come to rest",
    ]


def test_steps_at_once__begin_again_with_each_millisecond() -> None:
    steps = StepsAtOnce(LOOKED_AT + 1, str)
    for now_ms in range(3):
        for _ in range(LOOKED_AT + 1):
            steps.count(now_ms, 2, PeerRequest(1, 1, "hello"))
    with pytest.raises(LivelockError, match=r"at 2 ms: .* node 2 got str 1000 times"):
        steps.count(2, 2, PeerRequest(1, 1, "hello"))
