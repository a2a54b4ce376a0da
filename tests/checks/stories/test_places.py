"""A record that was truncated and sent again: its stories are about its places in the final log."""

from __future__ import annotations

from kcluster.checks.chain.facts import RecordAppended
from kcluster.checks.settings import Setting
from kcluster.checks.verdict import Verdict
from kcluster.faults.rules import rule
from tests.checks.stories.test_explanations import repaired_verdict
from tests.rig.stage import Hand, Stage


def only_broker_1_has(value: bytes) -> tuple[Stage, Hand]:
    """A record at offset 0 of broker 1 alone, which dies.  Broker 2 leads; broker 1 will truncate
    the record, and the copy that a rule has made of it.  `a` was sent before, and refused."""
    stage = Stage()
    hand = stage.hand()
    stage.cut(1, 2)
    stage.cut(1, 3)
    stage.add_rule(rule(api="Produce", broker=1, duplicate=True))
    hand.produce(3, [b"a"])
    hand.produce(1, [value], again=value == b"a")
    stage.run_for(10)
    stage.kill(1)
    stage.heal()
    stage.run_for(5_000)
    return stage, hand


def appended(verdict: Verdict) -> list[tuple[int, int]]:
    """(offset, broker) of the appends in the story of the only anomaly."""
    (found,) = verdict.anomalies
    facts = [entry.fact for entry in found.chain]
    return [(fact.offset, fact.broker) for fact in facts if isinstance(fact, RecordAppended)]


def test_duplicate__a_truncated_append_at_the_same_offset_is_no_copy() -> None:
    stage, hand = only_broker_1_has(b"a")
    hand.produce(2, [b"a"], again=True)
    hand.produce(2, [b"a"], again=True)
    stage.run_for(100)
    verdict = repaired_verdict(stage)
    assert appended(verdict) == [(0, 2), (1, 2)]
    assert verdict.anomalies[0].allowed is Setting.NOT_IDEMPOTENT, "not by the rule"


def test_reordered__a_truncated_append_has_not_overtaken() -> None:
    stage, hand = only_broker_1_has(b"b")
    stage.hand("another").produce(2, [b"x"])
    hand.produce(2, [b"b"], again=True)
    hand.produce(2, [b"a"], again=True)
    stage.run_for(100)
    assert appended(repaired_verdict(stage)) == [(1, 2), (2, 2)]
