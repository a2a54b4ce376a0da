"""Scenario files: their meaning, and every mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.actions.brokers import KillBrokers
from kcluster.scenario.language.loader import ScenarioError, one_line, parse_action
from kcluster.scenario.language.scenario import Scenario

WHOLE = """\
story: |
  A leader dies under load; another takes over.
topology:
  brokers: 3
  profile: fast
  topics:
    orders: {partitions: 2, replication_factor: 3}
workload:
  producers:
    - {topic: orders, rate: 100/s, size: 1KiB, linger: 5ms}
  consumers: {topics: orders, group: billing, members: 2}
steps:
  - at: 2s
    kill: leader(orders-0)
    as: victim
    for: 3s
  - when: isr(orders-0) == 3
    kill: {brokers: "all but victim", how: power}
  - every: 1s..2s
    times: 3
    pause: any broker
checks:
  anomalies: {lost-write: some}
  errors: [NOT_LEADER_OR_FOLLOWER]
  acked: ">= 10"
"""


def test_scenario__reads_every_section_of_a_file() -> None:
    scenario = Scenario.parse(WHOLE, "dir/leader_dies.yaml")
    assert scenario.name == "leader_dies"
    producer = scenario.workload.producers[0]
    assert (producer.name, producer.rate_per_s, producer.size_bytes) == ("producer", 100.0, 1024)
    assert scenario.workload.consumers[0].topics == ("orders",)
    first, second, third = scenario.steps
    assert isinstance(first.action, KillBrokers)
    assert (first.options.as_, first.trigger.at and first.trigger.at.low_ms) == ("victim", 2_000)
    assert isinstance(second.action, KillBrokers)
    assert second.action.how == "power"
    assert (third.verb, third.trigger.times) == ("pause", 3)
    assert scenario.checks.anomalies["lost-write"].holds(5)


def test_scenario__reads_a_topology_from_another_file(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text("brokers: 2\ntopics: {orders: {}}\n")
    (tmp_path / "s.yaml").write_text("topology: small.yaml\n")
    assert len(Scenario.load(tmp_path / "s.yaml").topology.brokers) == 2


WRONG = (
    ("storey: x", "no such key of a scenario; did you mean story?"),
    ("topology: {brokers: three}", "topology.brokers"),
    ("topology: nowhere.yaml", "no such file"),
    ("steps: [{at: 5s, kil: 1}]", "did you mean kill?"),
    ("steps: [{at: 5s}]", "a step has one action"),
    ("steps: [{at: 5s, kill: 1, pause: 2}]", "both kill and pause"),
    ("steps: [{at: soon, kill: 1}]", "not a time"),
    ("steps: [{at: 5s, kill: {brokers: 1, how: gently}}]", "there are kill, clean, power, wipe"),
    ("steps: [{at: 5s, kill: {borkers: 1}}]", "did you mean brokers?"),
    ("steps: [{at: 5s, kill:}]", "this is empty; it must be leader"),
    (
        "steps: [{at: 5s, restart: {brokers: controller, new_address: true}}]",
        "s.yaml:1:49 steps[0].restart.new_address: the controller has no address to change",
    ),
    (
        "steps: [{restart: {brokers: '1, 3000', new_address: true}}]",
        "the controller has no address to change",
    ),
    ("steps: [{at: 5s, kill: 1}, {at: 2s, kill: 2}]", "comes before the step above it"),
    ("steps: [{times: 3, kill: 1}]", "times needs every"),
    ("steps: [{elect: orders-0, for: 5s}]", "elect cannot be undone, so it takes no for"),
    ("steps: {at: 5s}", "it must be a list of steps"),
    ("steps: [fill_disk: any clients]", "fill_disk takes brokers, not clients"),
    ("steps: [{restart: 1, down: 10s}]", "down: a key of restart; write it inside, as in"),
    ("steps: [explode]", "no such action or key of a step; kcluster scenario help actions lists"),
    ("steps: [kill 1]", "steps[0]: kill 1: a colon is missing; write kill: 1"),
    ("steps: [isolte leader(orders-0)]", "a colon is missing; write isolate: leader(orders-0)"),
    ("steps: [{at: 1s, slow 3}]", "a colon is missing; write it as in slow: {nodes: 3, latency:"),
    ("steps: [{kill: {nodes: 1}}]", "no such key of kill; did you mean brokers?"),
    ("steps: [{isolate: {brokers: 1}}]", "no such key of isolate; did you mean nodes?"),
    ("steps: [{slow: {nodes: 1, latency_ms: 50}}]", "write latency, and the unit with the value"),
    (
        "steps: [{slow: {nodes: 1, latency: 50}}]",
        "steps[0].slow.latency: 50 what? Write 50ms, 50s or 50m",
    ),
    ("steps: [{kill: 1, for: 1}]", "steps[0].for: 1: 1 what? Write 1ms, 1s or 1m"),
    ("workload: {consumers: {topics: o, count: 2}}", "did you mean members?"),
    (
        "workload: {consumers: {topics: 'o, p', group: g}}",
        "o, p is not a topic's name; write [orders, bills] for several topics",
    ),
    ("checks: {writes_unavailable: < 100}", "< 100: 100 what? Write 100ms, 100s or 100m"),
    (
        "steps: [{create_topic: {name: o, config: {min_insync_replica: 2}}}]",
        "no such topic config; did you mean min.insync.replicas?",
    ),
    (
        "{workload: {producers: {topic: o, name: sh}}, steps: [{fill_disk: sh}]}",
        "sh is a client; fill_disk",
    ),
    ("workload: {producers: {}}", "workload.producers.topic"),
    ("workload: {producers: {topic: orders, rate: fast}}", "not a rate like 50/s"),
    ("workload: {consumers: {group: g}}", "topics, partitions: one of them must be given"),
    ("workload: {producers: {topic: o, acks: 1, idempotent: true}}", "needs acks all"),
    ("workload: {consumers: {topics: o}}", "a consumer that subscribes to topics needs one"),
    ("steps: [{at: 5s, kill: 9}]", "there is no broker 9; the brokers are 1, 2, 3"),
    ("steps: [{at: 5s, kill: victim}]", "no step gives this name"),
    ("steps: [{at: 5s, kill: rack z}]", "no such rack"),
    ("steps: [{when: 5 acked by shop, kill: 1}]", "shop: no such client"),
    (
        "{topology: {brokers: 1, topics: {orders: {}}}, steps: [{kill: leader(ordres-0)}]}",
        "did you mean orders?",
    ),
    (
        "{topology: {brokers: 1, topics: {orders: {}}}, checks: {at_end: [isr(orders-1) < 2]}}",
        "orders has 1 partition, not one numbered 1",
    ),
    ("checks: {anomalies: {lost-rite: 1}}", "did you mean lost-write?"),
    ("checks: {causes: [unclean-electon]}", "did you mean unclean-election?"),
    ("checks: {causes: [truncat, NOT_LEADER_OR_FOLOWER]}", "mean NOT_LEADER_OR_FOLLOWER?"),
    ("checks: {causes: disk}", "did you mean one of disk-loss, disk-full, slow-disk?"),
    ("checks: {causes: [broker 1 lost its disk]}", "no such cause; there are unclean.leader"),
    ("checks: {causes: [{acks: 1}]}", "it must be a cause: unclean.leader.election.enable=true,"),
    ("checks: {errors: [NOT_LEADER]}", "no such error of Kafka"),
    ("checks: {acked: lots}", "no number"),
    ("duration: 5 parsecs", "not a time"),
    ("- a list", "a scenario is a mapping"),
    ("", "empty"),
)


@pytest.mark.parametrize(("text", "expected"), WRONG, ids=[text[:40] for text, _ in WRONG])
def test_scenario__a_problem_is_reported_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(ScenarioError) as error:
        Scenario.parse(text, "s.yaml")
    assert expected in str(error.value)
    if text and "nowhere" not in text:
        assert str(error.value).startswith("s.yaml:1:")


def test_scenario__reports_all_problems_at_once_in_order() -> None:
    text = "steps:\n  - {at: 5x, kill: 1}\n  - {at: 5s, kil: 1}\nchecks: {acked: lots}\n"
    with pytest.raises(ScenarioError) as error:
        Scenario.parse(text, "s.yaml")
    assert [problem.line for problem in error.value.problems] == [2, 3, 4]


def test_scenario__a_path_counts_all_steps_and_a_bad_step_still_gives_its_names() -> None:
    text = """\
workload: {producers: [{topic: orders}, {topic: orders, name: shop, rat: 5/s}]}
steps:
  - {at: 1s, kill: {nodes: 1}, as: first}
  - {at: 2s, create_topic: {name: audit, partition: 2}}
  - {at: 3s, when: 5 acked by shop, start: first}
  - {at: 4s, move: {partition: audit-0, to: 9}}
"""
    with pytest.raises(ScenarioError) as error:
        Scenario.parse(text, "s.yaml")
    assert [problem.path for problem in error.value.problems] == [
        "workload.producers[1].rat",
        "steps[0].kill.brokers",
        "steps[0].kill.nodes",
        "steps[1].create_topic.partition",
        "steps[3].move",
    ]


def test_scenario__a_client_is_not_offered_where_a_broker_is_meant() -> None:
    text = "workload: {producers: {topic: o, name: shop}}\nsteps: [{kill: shpo}]"
    with pytest.raises(ScenarioError) as error:
        Scenario.parse(text, "s.yaml")
    assert str(error.value) == (
        "s.yaml:2:9 steps[0].kill: shpo: no step gives this name; write `as: shpo` at the step"
        " that gives it"
    )


def test_scenario__a_config_may_have_underscores_or_dots() -> None:
    text = """\
topology: {brokers: 3, config: {num_partitions: 2}, topics: {o: {config: {%s: 2}}}}
workload: {producers: {topic: o, config: {%s: 5}}}
steps: [{create_topic: {name: p, config: {%s: 2}}}]
"""
    dotted = Scenario.parse(text % ("min.insync.replicas", "linger.ms", "min.insync.replicas"))
    other = Scenario.parse(text % ("min_insync_replicas", "linger_ms", "min_insync_replicas"))
    assert other.topology.config == {"num.partitions": "2"}
    assert other.topology.topics == dotted.topology.topics
    assert (other.workload, other.steps) == (dotted.workload, dotted.steps)


def test_action__problems_of_a_single_action_have_their_paths() -> None:
    with pytest.raises(ScenarioError) as error:
        parse_action("create_topic: {topic: payments}")
    assert one_line(error.value) == (
        "create_topic.name: missing; create_topic.topic: no such key of create_topic; did you mean"
        " name?"
    )


def test_scenario__an_unknown_cause_is_reported_with_its_line_and_column() -> None:
    text = "checks:\n  causes: [acks=1, truncate]\n"
    with pytest.raises(ScenarioError) as error:
        Scenario.parse(text, "s.yaml")
    assert str(error.value).startswith("s.yaml:2:20 checks.causes[1]: truncate: no such cause;")
    allowed = "checks: {causes: [acks=1, power-loss, NOT_LEADER_OR_FOLLOWER, DISCONNECTED]}"
    assert len(Scenario.parse(allowed, "s.yaml").checks.causes) == 4


def test_scenario__clients_from_outside_may_be_named() -> None:
    text = "workload: {producers: {topic: o, name: shop}}\nsteps: [{isolate: client %s}]"
    Scenario.parse(text % "billing", "s.yaml")
    Scenario.parse(text % "sho*", "s.yaml")
    with pytest.raises(ScenarioError, match=r"did you mean shop\?"):
        Scenario.parse(text % "shpo", "s.yaml")


def test_scenario__an_unknown_topic_is_a_problem() -> None:
    text = "topology: {brokers: 1, topics: {orders: {}}}\nworkload: {producers: {topic: ordres}}"
    with pytest.raises(ScenarioError) as error:
        Scenario.parse(text, "s.yaml")
    assert "did you mean orders?" in str(error.value)
