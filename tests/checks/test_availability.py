"""Windows in which a partition was unavailable, and the reported reasons."""

from __future__ import annotations

from kcluster.checks.availability import Window
from kcluster.checks.verdict import Verdict
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from tests.property.clients import Consumer, Producer
from tests.rig.stage import Hand, Stage


def with_clients(stage: Stage, acks: int = -1) -> None:
    producer = Producer(stage.ledger, "p0", "orders", 0, acks, 1_000 if acks else -1, 20, 3)
    consumer = Consumer(stage.ledger, "c0", "orders", 0, anywhere=False)
    for client in (producer, consumer):
        stage.client_ids[client.name] = stage.add_client(client).client_id
    stage.run_for(2_000)


def window(verdict: Verdict, kind: str, after_ms: int) -> Window:
    """The longest window of a kind that began at this time or later."""
    found = [x for x in verdict.windows if x.kind == kind and x.from_ms >= after_ms - 1_000]
    return max(found, key=lambda x: x.duration_ms)


def reasons(found: Window) -> str:
    return "\n".join(link.text for link in found.reasons)


def test_windows__of_a_leader_that_died_last_until_another_is_elected() -> None:
    stage = Stage()
    with_clients(stage)
    died_ms = stage.now_ms
    stage.kill(1)
    stage.run_for(8_000)
    verdict = stage.verdict()
    for kind in ("writes", "reads"):
        found = window(verdict, kind, died_ms)
        assert 2_000 < found.duration_ms < 4_500
        assert found.is_over
        assert "leader 1 went down: process killed" in reasons(found)
        assert "not noticed until: broker 1 fenced: no heartbeat for 3000 ms" in reasons(found)
        assert "orders-0: leader 1 -> 2, epoch 1" in reasons(found)
    assert verdict.unavailable_ms("writes") >= window(verdict, "writes", died_ms).duration_ms
    long = verdict.lines(verbose=True)
    (line, *_) = [x for x in long if x.startswith("no writes to orders-0 for 2,")]
    assert "(p0)" in line
    (short,) = [x for x in verdict.lines() if x.startswith("no writes to orders-0")]
    assert ": broker 1 killed at +" in short
    assert "; noticed at +" in short


def test_windows__writes_need_min_insync_replicas_reads_do_not() -> None:
    stage = Stage(**{"min.insync.replicas": 2})
    with_clients(stage)
    stage.kill(2)
    stage.kill(3)
    stage.run_for(5_000)
    lone_leader_ms = stage.now_ms
    stage.run_for(10_000)
    stage.start(2)
    stage.start(3)
    stage.run_for(10_000)
    verdict = stage.verdict()
    found = window(verdict, "writes", lone_leader_ms - 5_000)
    assert found.duration_ms > 10_000
    assert "NOT_ENOUGH_REPLICAS" in found.errors
    assert "broker 2, in the ISR, went down" in reasons(found)
    assert "ISR [1] below min.insync.replicas 2 since: ISR [1, 3] -> [1]" in reasons(found)
    assert [
        x for x in verdict.windows if x.kind == "reads" and x.from_ms > lone_leader_ms - 5_000
    ] == []


def test_windows__a_partition_without_a_leader_has_one_to_the_end() -> None:
    stage = Stage()
    with_clients(stage)
    for broker in (2, 3, 1):
        stage.kill(broker)
        stage.run_for(4_000)
    stage.run_for(4_000)
    found = window(stage.verdict(), "writes", stage.now_ms - 9_000)
    assert not found.is_over
    assert "no leader since: leader 1 -> none" in reasons(found)


def test_windows__a_cut_off_client_has_a_separate_window() -> None:
    stage = Stage()
    with_clients(stage)
    cut_ms = stage.now_ms
    stage.cut(stage.client_ids["p0"], 1)
    stage.run_for(6_000)
    stage.heal()
    stage.run_for(10_000)
    verdict = stage.verdict()
    found = window(verdict, "writes", cut_ms)
    assert found.clients == ("p0",)
    assert "leader 1 is cut off from p0" in reasons(found)
    assert [x for x in verdict.windows if x.kind == "reads" and x.from_ms >= cut_ms] == []


def test_windows__a_paused_isr_member_makes_writes_unavailable() -> None:
    stage = Stage()
    with_clients(stage)
    paused_ms = stage.now_ms
    stage.pause(3)
    stage.run_for(8_000)
    found = window(stage.verdict(), "writes", paused_ms)
    assert "broker 3, in the ISR, was paused; acks=all waits until it has left" in reasons(found)
    assert "broker 3 fenced" in reasons(found)
    assert "ISR [1, 2, 3] -> [1, 2]" in reasons(found)


def test_windows__a_client_with_stale_metadata_has_one_with_healthy_brokers() -> None:
    stage = Stage()
    hand = Hand(stage.ledger, "h0")
    stage.client_ids["h0"] = stage.add_client(hand).client_id
    hand.now_ms = stage.now_ms
    hand.produce(2, [b"a"])
    stage.run_for(700)
    hand.produce(1, [b"a"], again=True)
    stage.run_for(100)
    (found,) = stage.verdict().windows
    assert (found.kind, found.duration_ms) == ("writes", 700)
    assert found.errors == ("NOT_LEADER_OR_FOLLOWER",)
    assert reasons(found) in ("every broker involved was healthy",) or "1 led already" in reasons(
        found
    )


def test_windows__a_stall_of_most_sends_does_not_count_as_usual() -> None:
    """The follower does not answer, and stays in the ISR for replica.lag.time.max.ms: each ack
    takes seconds, and these are most acks of the run."""
    text = """\
topology: {brokers: 2, topics: {orders: {assignment: [[1, 2]]}}}
workload: {producers: {topic: orders, rate: 20/s, stop: 20s}}
duration: 40s
steps: [{at: 2s, isolate: {nodes: 2, others: 1}, for: 20s}]
"""
    verdict = run_scenario(Scenario.parse(text), "virtual").verdict
    (window,) = [window for window in verdict.windows if window.kind == "writes"]
    assert window.duration_ms > 15_000
