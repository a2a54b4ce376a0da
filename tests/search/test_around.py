"""The workloads that a search draws around a topology."""

from __future__ import annotations

import pytest

from kcluster.config.files.tree import Map, from_yaml
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.writing import text_of_scenario
from kcluster.scenario.play.running import run_scenario
from kcluster.search.around import around_topology
from kcluster.search.drawn import DRAWN

TWO_TOPICS = "{brokers: 3, topics: {orders: {partitions: 2}, bills: {partitions: 1}}}"


def around(text: str, seed: int = 1) -> list[Scenario]:
    node, problems = from_yaml(text, "topology.yaml")
    assert isinstance(node, Map)
    return around_topology(node, "topology.yaml", problems, seed)


def test_around__the_seed_draws_all_workloads_but_the_first() -> None:
    first, again, other = around(TWO_TOPICS), around(TWO_TOPICS), around(TWO_TOPICS, 2)
    workloads = [each.workload for each in first]
    assert len(first) == 1 + len(DRAWN)
    assert workloads == [each.workload for each in again]
    assert [a.workload == b.workload for a, b in zip(first, other, strict=True)] == [
        True, *[False] * len(DRAWN)
    ]  # fmt: skip


def test_around__all_workloads_but_the_first_have_shorter_times() -> None:
    first, *others = around(TWO_TOPICS)
    assert first.topology.config == {}
    assert {one.topology.config["broker.session.timeout.ms"] for one in others} == {"2000"}
    for scenario in others:
        assert (
            Scenario.parse(text_of_scenario(scenario)).topology.config == scenario.topology.config
        )


@pytest.mark.parametrize(
    "text",
    [
        TWO_TOPICS.replace("brokers: 3", "brokers: 3, profile: fast"),
        TWO_TOPICS.replace("brokers: 3", 'brokers: 3, kafka_version: "3.9"'),
        TWO_TOPICS.replace("brokers: 3", 'brokers: [{id: 1, kafka_version: "3.9"}, {id: 2}]'),
    ],
)
def test_around__times_of_another_profile_or_release_stay(text: str) -> None:
    assert {len(one.topology.config) for one in around(text)} == {0}


@pytest.mark.parametrize(
    "own",
    [
        "config: {group.consumer.session.timeout.ms: 50000}, brokers: 3",
        "brokers: [{id: 1, config: {group.consumer.session.timeout.ms: 50000}}, {id: 2}, {id: 3}]",
    ],
)
def test_around__a_family_of_which_the_topology_sets_a_config_stays(own: str) -> None:
    configs = around(TWO_TOPICS.replace("brokers: 3", own))[-1].topology.config
    assert configs["broker.session.timeout.ms"] == "2000"
    assert "group.consumer.min.session.timeout.ms" not in configs
    for scenario in around(TWO_TOPICS.replace("brokers: 3", own)):
        assert run_scenario(scenario, "virtual", 1).verdict.outcome == "valid"


def test_around__clients_of_every_kind_are_drawn() -> None:
    workloads = [each.workload for seed in range(5) for each in around(TWO_TOPICS, seed)]
    consumers = [each for one in workloads for each in one.consumers]
    producers = [each for one in workloads for each in one.producers]
    assert {each.group_protocol for each in consumers} == {"classic", "consumer"}
    processors = [each for one in workloads for each in one.processors]
    assert {each.group_protocol for each in processors} == {"classic", "consumer", "streams"}
    assert {each.share for each in consumers} == {True, False}
    assert {each.isolation for each in consumers} == {"read_committed", "read_uncommitted"}
    assert {each.transactions is None for each in producers} == {True, False}
    static = [each for each in consumers if "group_instance_id" in each.config]
    assert static
    assert not any("cooperative" in str(each.config) for each in static)
    assert any("cooperative" in str(each.config) for each in consumers)
    assert all(each.transactions is not None or each.in_flight == 1 for each in producers)


def test_around__without_faults_every_workload_is_valid() -> None:
    for scenario in around(TWO_TOPICS):
        result = run_scenario(scenario, "virtual", 1)
        assert (result.verdict.outcome, result.failures) == ("valid", [])


@pytest.mark.parametrize(
    "more",
    [
        'kafka_version: "2.8"',
        'kafka_version: "4.1"',
        "profile: slow",
        "features: {share.version: 0, streams.version: 0}",
        "config: {group.min.session.timeout.ms: 9000}",
        "config: {group.coordinator.rebalance.protocols: classic}",
        "config: {group.min.session.timeout.ms: 500, group.max.session.timeout.ms: 2000}",
    ],
)
def test_around__clients_ask_for_nothing_that_the_brokers_do_not_serve(more: str) -> None:
    for scenario in around(TWO_TOPICS.replace("brokers: 3", f"brokers: 3, {more}")):
        result = run_scenario(scenario, "virtual", 1)
        assert (result.verdict.outcome, result.failures) == ("valid", [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("partitions: 1", "partitions: 1, config: {cleanup.policy: compact}"),
        ("brokers: 3", "brokers: 3, config: {log.cleanup.policy: 'compact,delete'}"),
    ],
)
def test_around__records_for_compacted_topics_have_keys(old: str, new: str) -> None:
    for scenario in around(TWO_TOPICS.replace(old, new))[:4]:
        producers = [each for each in scenario.workload.producers if each.topic == "bills"]
        assert all(each.keys for each in producers)
        assert run_scenario(scenario, "virtual", 1).verdict.outcome == "valid"


def test_around__no_client_writes_or_reads_internal_topics() -> None:
    internal = "__consumer_offsets: {assignment: [[1, 2], [2, 3]]}"
    for scenario in around(TWO_TOPICS.replace("bills: {partitions: 1}", internal)):
        used = [each.topic for each in scenario.workload.producers]
        used += [topic for each in scenario.workload.consumers for topic in each.topics]
        assert set(used) == {"orders"}
        assert run_scenario(scenario, "virtual", 1).verdict.outcome == "valid"


def test_around__one_topic_is_enough_for_every_kind_of_client() -> None:
    scenarios = around("{brokers: 3, topics: {orders: {}}}")
    consumers = [each for one in scenarios for each in one.workload.consumers]
    assert {each.group_protocol for each in consumers} == {"classic", "consumer", "streams"}
    for scenario in scenarios:
        assert run_scenario(scenario, "virtual", 1).verdict.outcome == "valid"


@pytest.mark.parametrize("rest", ["", ", topics:", ", topics: null", ", topics: {}"])
def test_around__a_topology_without_topics_gets_one(rest: str) -> None:
    assert [*around(f"{{brokers: 1{rest}}}")[0].topology.topics] == ["orders"]


def test_around__a_topology_with_internal_topics_alone_gets_one() -> None:
    of_groups = "__consumer_offsets"
    first, *_ = around(f"{{brokers: 1, topics: {{{of_groups}: {{partitions: 1}}}}}}")
    assert [*first.topology.topics] == [of_groups, "orders"]


def test_around__topics_of_a_wrong_kind_are_refused() -> None:
    with pytest.raises(ScenarioError, match="topics"):
        around("{brokers: 1, topics: 3}")
