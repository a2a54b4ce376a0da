"""Rules between nodes: what is late or lost, who notices, and what a file may say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.events.network import NodeRuleHit, RuleRemoved
from kcluster.events.partitions import IsrExpanded, IsrShrunk
from kcluster.events.words import text_of
from kcluster.handle.cluster import Cluster
from kcluster.scenario.language.loader import parse_action
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.perform import do
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from kcluster.scenario.recorded import steps_of

HEAD = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
  config: {replica.lag.time.max.ms: 500}
workload: {producers: {topic: orders, name: shop, rate: 50/s}}
duration: 5s
steps:
"""


def play(*steps: str) -> RunResult:
    text = HEAD + "".join(f"  - {step}\n" for step in steps)
    return run_scenario(Scenario.parse(text), "virtual")


def times_of(result: RunResult, kind: type) -> list[int]:
    return [note.at_ms - result.began_ms for note in result.notes if isinstance(note.event, kind)]


def test_node_rules__a_delayed_fetch_holds_the_watermark_back() -> None:
    result = play("{at: 1s, node_rule: {api: Fetch, from: 2, to: 1, delay: 400ms, times: 1}}")
    acks_ms = [send.ended_ms - send.sent_ms for send in result.ledger.sends]
    assert 380 <= max(acks_ms) <= 410
    assert sum(each > 20 for each in acks_ms) <= 21, "later fetches come in time"
    assert not result.failures
    hit = next(note.event for note in result.notes if isinstance(note.event, NodeRuleHit))
    assert text_of(hit) == "Fetch from broker 2 to broker 1: delays the request by 400 ms"


def test_node_rules__a_lost_answer_about_the_isr_is_asked_for_again() -> None:
    """The controller has committed the shrink: the leader learns it by metadata."""
    result = play(
        "{at: 1s, node_rule: {api: AlterPartition, drop: reply, times: 1}, for: 2s}",
        "{at: 1100ms, pause: 3, for: 1s}",
    )
    hit = next(note.event for note in result.notes if isinstance(note.event, NodeRuleHit))
    assert (hit.source, hit.destination, hit.hit) == (1, CONTROLLER_ID, 1)
    assert times_of(result, IsrShrunk)
    assert times_of(result, IsrExpanded)
    assert not result.failures


def test_node_rules__metadata_older_than_the_answer_to_alter_partition_changes_nothing() -> None:
    """Kafka: Partition.makeLeader skips a partition epoch below the one it knows."""
    late = "{api: Fetch, topic: __cluster_metadata, from: 1, delay: 2s, of: reply}"
    result = play(f"{{at: 1s, node_rule: {late}}}", "{at: 1100ms, pause: 3, for: 1s}")
    assert times_of(result, IsrShrunk)
    assert times_of(result, IsrExpanded)
    assert not result.failures


def test_node_rules__until_ends_a_rule_which_sends_what_it_delays() -> None:
    result = play(
        "{at: 1s, node_rule: {api: AlterPartition, delay: 1m}, until: 2nd node_rule_hit}",
        "{at: 1100ms, pause: 3, for: 1s}",
        "{at: 2500ms, node_rule: {api: Fetch, from: 2, delay: 1ms, times: 1}}",
    )
    ended_ms = times_of(result, RuleRemoved)[0]
    assert 2_500 <= ended_ms < 2_600, "at the second hit of any rule"
    assert times_of(result, IsrShrunk) == [ended_ms], "the shrink was on its way until then"
    assert not result.failures


def test_node_rules__a_dropped_request_is_over_when_the_rule_is_removed() -> None:
    result = play("{at: 1s, node_rule: {api: Fetch, from: 2, drop: request}, for: 300ms}")
    assert times_of(result, IsrExpanded)[0] < 3_000, "the follower does not wait for 30 s"
    assert not result.failures


@pytest.mark.parametrize("drop", ["request", "reply"])
def test_node_rules__nothing_is_wrong_after_any_lost_message(drop: str) -> None:
    result = play(
        f"{{at: 500ms, node_rule: {{drop: {drop}, every: 7}}, for: 2s}}",
        "{at: 1s, kill: leader(orders-0), for: 500ms}",
    )
    assert times_of(result, NodeRuleHit)
    assert not result.failures


def test_node_rules__the_same_on_a_live_cluster() -> None:
    topology = Topology.of(
        brokers=3, topics={"orders": {"assignment": [[1, 2, 3]]}}, profile="fast"
    )
    with Cluster(topology) as cluster:
        keys: dict[str, object] = {"api": "BrokerHeartbeat", "from": 2, "drop": "request"}
        undo = do(cluster, "node_rule", **keys)
        cluster.wait_for("isr(orders-0) < 3", within=30)
        assert [rule.name for rule in cluster.rules()] == ["node-rule-1"]
        undo()
        cluster.wait_for("isr(orders-0) = 3", within=30)
        assert not cluster.rules()


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("api: AlterPartion, drop: reply", "s.yaml:8:23 steps[0].node_rule.api"),
        ("api: AlterPartion, drop: reply", "did you mean AlterPartition?"),
        ("api: JoinGroup, drop: reply", "API between nodes"),
        ("api: Fetch", "steps[0].node_rule.delay: a rule between nodes has one effect"),
        ("delay: 1s, drop: reply", "has one effect: delay or drop"),
        ("drop: reply, jitter: 1s", "node_rule.jitter: jitter goes with delay"),
        ("from: shop, drop: reply", "shop is a client; node_rule"),
        ("to: 7, drop: reply", "there is no broker 7"),
    ],
)
def test_node_rules__a_mistake_is_named_with_its_place(keys: str, problem: str) -> None:
    with pytest.raises(ValueError) as raised:
        Scenario.parse(f"{HEAD}  - {{node_rule: {{{keys}}}}}\n", "s.yaml")
    assert problem in str(raised.value)


def test_node_rules__until_needs_an_action_that_can_be_undone() -> None:
    with pytest.raises(ValueError, match="elect cannot be undone, so it takes no until"):
        Scenario.parse(f"{HEAD}  - {{elect: orders-0, until: settled}}\n")
    with pytest.raises(ValueError, match="a single action takes no until"):
        parse_action("{kill: 1, until: settled}")


@pytest.mark.parametrize(
    "keys",
    [
        {"api": ["Fetch"], "from": 2, "to": "controller", "delay": "5ms"},
        {"of": "reply", "delay": "5ms", "jitter": "2ms", "partition": "orders-0"},
        {"api": ["WriteTxnMarkers"], "topic": "orders", "nth": 2, "times": 1, "drop": "reply"},
    ],
)
def test_node_rules__a_rule_is_recorded_as_the_step_that_repeats_it(keys: dict[str, Any]) -> None:
    result = play(f"{{at: 1s, node_rule: {json.dumps(keys)}, for: 500ms}}")
    assert not result.failures
    (step,) = steps_of(result.notes, ("orders",), result.began_ms, (1, 2, 3))
    assert (step.at_ms, step.verb, step.keys, step.for_ms) == (1_000, "node_rule", keys, 500)
