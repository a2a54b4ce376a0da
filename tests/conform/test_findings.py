"""Grouping equal differences, and counting by API."""

from __future__ import annotations

from kcluster.conform.comparing import NOTHING
from kcluster.conform.findings import Deviation, Result, counted, grouped
from kcluster.conform.projection import Projection

PATH = "answer.topics#{}.error_code"


def result(name: str, *deviations: Deviation, api: str = "Fetch") -> Result:
    return Result(name, api, same=2, different=len(deviations), untried=0, deviations=deviations)


def of(case: str, at: int, versions: str, api: str = "Fetch", kafka: object = "A") -> Deviation:
    return Deviation(case, api, versions, PATH.format(at), kafka, "B")


def test_grouped__equal_values_of_several_cases_are_one_difference() -> None:
    results = [result("f: a", of("f: a", 0, "4-6")), result("f: b", of("f: b", 3, "5-9"))]
    (found,) = grouped(results)
    assert (found.api, found.versions, found.path) == ("Fetch", "4-9", "answer.topics[].error_code")
    assert (found.kafka, found.cluster) == ("A", "B")
    assert found.cases == ("f: a", "f: b")


def test_grouped__another_value_is_another_difference() -> None:
    results = [result("f: a", of("f: a", 0, "4"), of("f: a", 0, "4", kafka=NOTHING))]
    assert [(one.kafka, one.has_kafka) for one in grouped(results)] == [("A", True), (None, False)]


def test_counted__a_difference_counts_for_the_api_that_shows_it() -> None:
    shown = of("f: a", 0, "4", api="DescribeGroups")
    states = Result("f: a", "Fetch", same=3, different=0, untried=1, deviations=(shown, shown))
    found = {one.api: one for one in counted([states], {"Fetch": "4-18"})}
    assert (found["Fetch"].same, found["Fetch"].different, found["Fetch"].untried) == (3, 0, 1)
    assert (found["DescribeGroups"].different, found["DescribeGroups"].listed) == (1, "")


def test_projection__what_the_operator_sets_is_left_out_by_value() -> None:
    rows = [
        {"name": "a", "value": "1", "config_source": 5, "synonyms": []},
        {"name": "b", "value": "2", "config_source": 1, "synonyms": [{"source": 1}, {"source": 5}]},
    ]
    assert Projection().of(rows) == [
        {"name": "a"},
        {"name": "b", "value": "2", "config_source": 1, "synonyms": [{"source": 1}]},
    ]


def test_projection__with_one_broker_leaders_and_replicas_are_left_out() -> None:
    of_one = Projection(has_three_brokers=False)
    state = "leader 2 epoch 0 replicas [2, 3, 1] isr [1, 2, 3] offsets 0 to 4"
    assert of_one.of(state) == "epoch 0 offsets 0 to 4"
    assert of_one.of({"leader_id": 3, "error_message": "text", "error_code": "A"}) == {
        "leader_id": "<brokers>", "error_code": "A",
    }  # fmt: skip
    assert of_one.of({"leader_id": -1}) == {"leader_id": -1}, "no leader is no leader"
