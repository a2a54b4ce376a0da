"""The workloads that a search draws around a topology."""

from __future__ import annotations

import pytest

from kcluster.config.files.tree import Map, from_yaml
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from kcluster.search.around import WORKLOADS, around_topology

TWO_TOPICS = "{brokers: 3, topics: {orders: {partitions: 2}, bills: {partitions: 1}}}"


def around(text: str, seed: int = 1) -> list[Scenario]:
    node, problems = from_yaml(text, "topology.yaml")
    assert isinstance(node, Map)
    return around_topology(node, "topology.yaml", problems, seed)


def test_around__the_seed_draws_all_workloads_but_the_first() -> None:
    first, again, other = around(TWO_TOPICS), around(TWO_TOPICS), around(TWO_TOPICS, 2)
    workloads = [each.workload for each in first]
    assert len(first) == WORKLOADS
    assert workloads == [each.workload for each in again]
    assert [a.workload == b.workload for a, b in zip(first, other, strict=True)] == [
        True, *[False] * (WORKLOADS - 1)
    ]  # fmt: skip


def test_around__clients_of_every_kind_are_drawn() -> None:
    workloads = [each.workload for seed in range(5) for each in around(TWO_TOPICS, seed)]
    consumers = [each for one in workloads for each in one.consumers]
    producers = [each for one in workloads for each in one.producers]
    assert {each.group_protocol for each in consumers} == {"classic", "consumer"}
    assert {each.share for each in consumers} == {True, False}
    assert {each.isolation for each in consumers} == {"read_committed", "read_uncommitted"}
    assert {each.transactions is None for each in producers} == {True, False}
    assert any(one.processors for one in workloads)
    assert all(each.transactions is not None or each.in_flight == 1 for each in producers)


def test_around__without_faults_every_workload_is_valid() -> None:
    for scenario in around(TWO_TOPICS):
        result = run_scenario(scenario, "virtual", 1)
        assert (result.verdict.outcome, result.failures) == ("valid", [])


def test_around__records_for_compacted_topics_have_keys() -> None:
    compacted = TWO_TOPICS.replace(
        "partitions: 1", "partitions: 1, config: {cleanup.policy: compact}"
    )
    for scenario in around(compacted)[:4]:
        producers = [each for each in scenario.workload.producers if each.topic == "bills"]
        assert all(each.keys for each in producers)
        assert run_scenario(scenario, "virtual", 1).verdict.outcome == "valid"


@pytest.mark.parametrize("rest", ["", ", topics:", ", topics: null", ", topics: {}"])
def test_around__a_topology_without_topics_gets_one(rest: str) -> None:
    assert [*around(f"{{brokers: 1{rest}}}")[0].topology.topics] == ["orders"]


def test_around__topics_of_a_wrong_kind_are_refused() -> None:
    with pytest.raises(ScenarioError, match="topics"):
        around("{brokers: 1, topics: 3}")
