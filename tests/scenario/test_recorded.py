"""What was done to a cluster, written as a scenario that does it again on either clock."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.actions.admin import CreateTopic
from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.handle.virtual import VirtualDriver
from kcluster.scenario.language.loader import parse_action
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.virtual import VirtualStage, run_virtual
from kcluster.scenario.recorded import RecordedClient, scenario_of, steps_of

TOPOLOGY = Topology.of(
    brokers=[
        {"id": 1, "rack": "a"},
        {"id": 2},
        {"id": 3, "config": {"replica.lag.time.max.ms": "20000"}},
    ],
    topics={"orders": {"assignment": [[1, 2, 3]], "config": {"min.insync.replicas": "2"}}},
    network={"default_latency_ms": 1, "links": [{"between": [1, 2], "latency_ms": 5}]},
)


class Lab:
    """A cluster in virtual time, to which actions are done one second apart."""

    def __init__(self) -> None:
        self.driver = VirtualDriver(TOPOLOGY, 1)
        self.stage = VirtualStage(self.driver, 1, Ledger())
        self.stage.start()
        self.driver.run_for(1_000)
        self.began_ms = self.driver.now_ms

    def do(self, *actions: str) -> None:
        for text in actions:
            step = parse_action(text)
            self.stage.perform(step.action, step.options.as_, step.options.undone_after_ms)
            self.driver.run_for(1_000)

    def steps(self) -> list[tuple[int, str, Any, int | None]]:
        found = steps_of(self.driver.notes, tuple(TOPOLOGY.topics), self.began_ms, (1, 2, 3))
        return [(step.at_ms, step.verb, step.keys, step.for_ms) for step in found]

    def scenario(self) -> Scenario:
        text = scenario_of(self.driver.notes, TOPOLOGY, "lab", self.began_ms)
        return Scenario.parse(text)


@pytest.fixture
def lab() -> Lab:
    return Lab()


def test_recorded__each_action_is_a_step_at_its_time(lab: Lab) -> None:
    lab.do(
        "kill: 3",
        "start: 3",
        "kill: {brokers: 2, how: power}",
        "start: 2",
        "pause: 3",
        "resume: 3",
        "create_topic: {name: audit, partitions: 2, replication_factor: 3}",
        "add_partitions: {topic: audit, to: 3}",
        "set_config: {topics: [audit], config: {retention.ms: '1000'}}",
        "delete_topic: audit",
    )
    audit = {"name": "audit", "partitions": 2, "replication_factor": 3}
    assert [(at, verb, keys) for at, verb, keys, _ in lab.steps()] == [
        (0, "kill", 3),
        (1_000, "start", 3),
        (2_000, "kill", {"brokers": 2, "how": "power"}),
        (3_000, "start", 2),
        (4_000, "pause", 3),
        (5_000, "resume", 3),
        (6_000, "create_topic", audit),
        (7_000, "add_partitions", {"topic": "audit", "to": 3}),
        (8_000, "set_config", {"topics": ["audit"], "config": {"retention.ms": "1000"}}),
        (9_000, "delete_topic", "audit"),
    ]


def test_recorded__what_was_undone_is_one_step_with_its_duration(lab: Lab) -> None:
    lab.do("isolate: {nodes: 1, others: [2, controller], one_way: true}", "heal")
    lab.do("slow: {nodes: 3, others: 1, latency: 40ms}", "heal")
    lab.do("rule: {api: Produce, partition: orders-0, answer: NOT_LEADER_OR_FOLLOWER}")
    lab.do("clear_rules")
    rule = {"api": ["Produce"], "partition": "orders-0", "answer": "NOT_LEADER_OR_FOLLOWER"}
    isolated = {"nodes": 1, "others": [2, "controller"], "one_way": True}
    slow = {"nodes": 3, "others": 1, "latency": "40ms"}
    assert lab.steps() == [
        (0, "isolate", isolated, 1_000),
        (2_000, "slow", slow, 1_000),
        (4_000, "rule", rule, 1_000),
    ]


def test_recorded__all_links_of_a_node_have_no_other_side(lab: Lab) -> None:
    lab.do("slow: {nodes: [2, 3], latency: 40ms}", "heal")
    assert lab.steps() == [(0, "slow", {"nodes": [2, 3], "latency": "40ms"}, 1_000)]


def test_recorded__a_halt_and_the_start_after_it_are_one_step(lab: Lab) -> None:
    """A `start` by itself could come while the broker still shuts down, or its disk is full."""
    lab.do("stop: 1", "start: 1", "fill_disk: {brokers: 2}")
    lab.stage.verbs.free_disk(2)
    lab.do("start: 2")
    assert lab.steps() == [(0, "stop", 1, 1_000), (2_000, "fill_disk", 2, 1_000)]


def test_recorded__brokers_that_come_and_go_and_the_controller(lab: Lab) -> None:
    lab.do("add_broker: {id: 4, rack: b}", "kill: 3")
    lab.do("reassign: {partition: orders-0, to: [1, 2, 4]}", "remove_broker: 3")
    lab.do("kill: controller", "start: controller", "pause: controller", "resume: controller")
    assert [(verb, keys) for _, verb, keys, _ in lab.steps()] == [
        ("add_broker", {"id": 4, "rack": "b"}),
        ("kill", 3),
        ("reassign", {"partition": "orders-0", "to": [1, 2, 4]}),
        ("remove_broker", 3),
        ("kill", "controller"),
        ("start", "controller"),
        ("pause", "controller"),
        ("resume", "controller"),
    ]
    result = run_virtual(lab.scenario(), 1, lambda now_ms, of_ms: None)
    assert result.failures == []


def test_recorded__a_rule_has_the_calls_to_which_it_applies(lab: Lab) -> None:
    lab.do(
        "rule: {api: Produce, version: 9..11, every: 2, times: 3, probability: 50%, close: before}",
        "rule: {api: Metadata, nth: 4, stale: true}",
    )
    assert [keys for _, _, keys, _ in lab.steps()] == [
        {
            "api": ["Produce"],
            "version": "9..11",
            "every": 2,
            "times": 3,
            "probability": 0.5,
            "close": "before",
        },
        {"api": ["Metadata"], "nth": 4, "stale": True},
    ]
    assert [step.verb for step in lab.scenario().steps] == ["rule", "rule"]


def test_recorded__a_topic_gets_records_while_it_exists(lab: Lab) -> None:
    lab.do("create_topic: {name: audit, partitions: 2, replication_factor: 3}")
    lab.do("delete_topic: audit")
    (orders, audit) = lab.scenario().workload.producers
    assert (orders.topic, orders.start_ms, orders.stop_ms) == ("orders", 0, None)
    assert (audit.topic, audit.start_ms, audit.stop_ms) == ("audit", 0, 1_000)


def test_recorded__the_file_repeats_the_faults(lab: Lab) -> None:
    lab.do("kill: 1", "wait", "start: 1", "move: {partition: orders-0, to: 3}")
    scenario = lab.scenario()
    assert scenario.topology.topics == TOPOLOGY.topics
    assert scenario.topology.network == TOPOLOGY.network
    assert [broker.rack for broker in scenario.topology.brokers] == ["a", None, None]
    result = run_virtual(scenario, 1, lambda now_ms, of_ms: None)
    kinds = [note.event.kind for note in result.notes[result.first_note :]]
    assert "broker_down" in kinds
    assert "leader_elected" in kinds
    assert result.verdict.outcome == "valid"
    assert result.failures == []


def test_recorded__without_actions_it_is_a_scenario_too(lab: Lab) -> None:
    assert lab.scenario().steps == ()


def test_recorded__a_topic_that_a_recorded_client_creates_is_no_step(lab: Lab) -> None:
    lab.do("create_topic: audit", "create_topic: {name: bills, partitions: 2}")
    clients = [RecordedClient("producers", {"name": "shop", "topic": "audit"}, 0)]
    text = scenario_of(lab.driver.notes, TOPOLOGY, "lab", lab.began_ms, clients)
    scenario = Scenario.parse(text)
    (step,) = scenario.steps
    assert isinstance(step.action, CreateTopic)
    assert step.action.name == "bills"
    assert run_virtual(scenario, 1, lambda *_: None).failures == []
