"""Parameters of a past: their values and ranges, and a scenario with other values."""

from __future__ import annotations

import pytest

from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.parameters import (
    ACKS,
    LATENCY,
    MIN_ISR,
    SESSION,
    Parameter,
    notes_on,
    parameters_of,
    with_values,
)

ORDERS = ("orders", 0)
PAST = """
topology:
  brokers: [{id: 1, config: {broker.session.timeout.ms: 9000}}, {id: 2}, {id: 3}]
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}, paid: {}}
workload:
  producers:
    - {topic: orders, name: shop, idempotent: true}
    - {topic: paid, name: bank, acks: 1}
steps:
  - {at: 1s, create_topic: {name: later, replication_factor: 2}}
  - {at: 2s, set_config: {topics: orders, config: {min.insync.replicas: 1}}}
"""


def past(text: str = PAST) -> Scenario:
    return Scenario.parse(text)


def found(partition: tuple[str, int], scenario: Scenario | None = None) -> dict[str, Parameter]:
    return {each.name: each for each in parameters_of(scenario or past(), partition)}


def test_parameters__present_values_and_ranges() -> None:
    orders = found(ORDERS)
    assert {name: each.value for name, each in orders.items()} == {
        SESSION: 9_000,
        ACKS: "all",
        MIN_ISR: 2,
        LATENCY: 0,
    }
    session = orders[SESSION]
    assert (session.least, session.most, session.step) == (2_500, 18_000, 500)
    assert (orders[MIN_ISR].least, orders[MIN_ISR].most) == (1, 3)
    assert found(("paid", 0))[ACKS].value == "1"


def test_parameters__of_a_topic_that_a_step_creates_and_of_one_that_a_client_creates() -> None:
    assert found(("later", 0))[MIN_ISR].most == 2
    assert set(found(("unknown", 0))) == {SESSION, LATENCY}


def test_parameters__the_session_timeout_can_stay_as_it_is_in_each_profile() -> None:
    for profile in ("kafka", "fast"):
        session = found(ORDERS, past(f"topology: {{brokers: 3, profile: {profile}}}"))[SESSION]
        assert isinstance(session.value, int)
        assert session.value in range(session.least, session.most + 1, session.step)
        assert session.least > 0


def test_parameters__a_value_holds_from_the_start() -> None:
    values: dict[str, int | str] = {SESSION: 3_000, ACKS: "1", MIN_ISR: 3, LATENCY: 40}
    changed = with_values(past(), ORDERS, values)
    assert {name: each.value for name, each in found(ORDERS, changed).items()} == values
    assert changed.topology.broker_config(1).broker_session_timeout_ms == 3_000
    shop, bank = changed.workload.producers
    assert (shop.acks, shop.idempotent) == ("1", None)
    assert bank == past().workload.producers[1], "it writes to another topic"
    assert with_values(past(), ORDERS, {}) == past()


def test_parameters__a_topic_that_a_step_creates_is_created_with_the_value() -> None:
    later = with_values(past(), ("later", 0), {MIN_ISR: 2})
    assert found(("later", 0), later)[MIN_ISR].value == 2
    assert later.steps[1] == past().steps[1]


def test_parameters__every_wrong_value_is_refused_with_its_cause() -> None:
    wrong: dict[str, int | str] = {SESSION: 100, ACKS: "2", MIN_ISR: 4, LATENCY: True, "latenzy": 3}
    with pytest.raises(ScenarioError) as refused:
        with_values(past(), ORDERS, wrong)
    assert [(each.path, each.text) for each in refused.value.problems] == [
        (
            SESSION,
            "100 is not a whole number from 2500 to 18000 ms"
            " (brokers send a heartbeat every 2000 ms)",
        ),
        (ACKS, "2 is not one of 0, 1, all"),
        (MIN_ISR, "4 is not a whole number from 1 to 3 (orders-0 has 3 replicas)"),
        (
            LATENCY,
            "True is not a whole number from 0 to 200 ms"
            " (a broker must reach the controller within broker.session.timeout.ms=9000)",
        ),
        ("latenzy", "orders-0: no such parameter; did you mean latency?"),
    ]


def test_parameters__transactions_need_acks_all() -> None:
    scenario = past("workload: {producers: {topic: t, transactions: {every: 5}}}")
    with pytest.raises(ScenarioError, match="is not one of all"):
        with_values(scenario, ("t", 0), {ACKS: "1"})


def test_parameters__notes_name_what_a_value_does_not_reach() -> None:
    assert list(notes_on(past(), ORDERS, {MIN_ISR: 3, ACKS: "0"})) == [
        "a step of the past sets min.insync.replicas again: 1",
        "shop is not idempotent then: that needs acks=all",
    ]
    assert list(notes_on(past(), ("paid", 0), {MIN_ISR: 1})) == []
