"""Forks: the same past twice, and two futures from a moment of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kcluster.events.brokers import BrokerDown
from kcluster.operations.errors import ClusterError
from kcluster.operations.prediction import QuestionKind
from kcluster.runs.record import RunRecord
from kcluster.scenario.difference import InBoth
from kcluster.scenario.language.loader import parse_action
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.fork import Futures, fork
from kcluster.scenario.play.played import PlayedRun
from kcluster.scenario.play.running import run_scenario

SCENARIO = """
topology: {brokers: 3, topics: {orders: {config: {min.insync.replicas: 1}}}}
workload:
  producers: {topic: orders, rate: 20/s, acks: 1}
  consumers: {topics: orders, group: readers}
steps:
  - {at: 2s, slow: {nodes: followers(orders-0), latency: 300ms}, for: 8s}
  - {at: 8s, kill: any broker}
duration: 20s
"""
SEED = 3


def futures(*actions: str, at_ms: int = 5_000, for_ms: int = 15_000) -> Futures:
    steps = [parse_action(action) for action in actions]
    return fork(Scenario.parse(SCENARIO), SEED, at_ms, steps, for_ms)


def until(record: RunRecord, at_ms: int) -> dict[str, list[bytes]]:
    """The rows of each table up to a moment."""
    tables: dict[str, Any] = {
        "notes": record.notes,
        "moves": record.moves,
        "leaders": record.leaders,
    }
    return {
        name: [msgspec.json.encode(row) for row in rows if row.at_ms <= at_ms]
        for name, rows in tables.items()
    }


def deaths(record: RunRecord) -> list[int]:
    return [row.event.broker for row in record.notes if isinstance(row.event, BrokerDown)]


def test_fork__both_futures_have_the_same_past_as_the_run() -> None:
    found = futures("kill: leader(orders-0)")
    whole = run_scenario(Scenario.parse(SCENARIO), "virtual", SEED).record()
    past = until(whole, found.at_ms)
    assert len(past["moves"]) > 100
    assert until(found.here.record, found.at_ms) == past
    assert until(found.there.record, found.at_ms)["moves"] == past["moves"]


def test_fork__a_step_that_waits_is_left_with_its_time_limit() -> None:
    waiting = "steps: [{at: 4s, when: elr(orders-0) > 5, within: 4s, kill: 2}]\nduration: 20s\n"
    scenario = Scenario.parse(SCENARIO[: SCENARIO.index("steps:")] + waiting)
    found = fork(scenario, SEED, 5_000, [parse_action("kill: leader(orders-0)")], 10_000)
    assert found.here.problems == found.there.problems == ()


def test_fork__the_choice_loses_records_and_doing_nothing_does_not() -> None:
    found = futures("kill: leader(orders-0)")
    assert found.here.verdict.outcome == "valid"
    assert {each.name for each in found.there.verdict.anomalies} >= {"lost-write"}
    assert found.there.problems == ()


def test_fork__the_difference_is_one_sentence() -> None:
    found = futures("kill: leader(orders-0)")
    lost = found.difference.lost.there
    assert lost > 5
    assert found.difference.text == (
        f"With acks=1, {lost} acknowledged records are lost, the first ack of orders-0"
        " comes 8.3 s later, and broker 3 leads orders-0 instead of broker 2."
    )
    assert futures("isolate: 3").difference.text == "Clients notice no difference."
    fewer = replace(found.difference, lost=InBoth(5, 2), failed=InBoth(0, 3), first_acks=())
    words = "2 acknowledged records are lost instead of 5, 3 sends fail"
    assert words in fewer.text
    same = replace(found.difference, lost=InBoth(5, 5), first_acks=())
    assert "no further records are lost" in same.text
    assert "is acknowledged for 4.0 s" in futures("kill: [1, 2, 3]", for_ms=4_000).difference.text


def test_fork__later_steps_of_the_scenario_are_not_played() -> None:
    found = futures("isolate: 3")
    assert deaths(found.here.record) == deaths(found.there.record) == []
    assert deaths(run_scenario(Scenario.parse(SCENARIO), "virtual", SEED).record()) != []


def test_fork__an_action_that_is_impossible_there_is_named() -> None:
    found = futures("start: 1", at_ms=1_000, for_ms=1_000)
    assert found.here.problems == ()
    assert found.there.problems == ("start: broker 1 is up",)


def test_fork__a_moment_outside_the_run_is_refused() -> None:
    with pytest.raises(ClusterError, match="50000 ms is not a moment of this run"):
        futures(at_ms=50_000)


def test_played_run__has_its_whole_record_and_forks_at_a_moment_of_its_clock() -> None:
    run = PlayedRun(run_scenario(Scenario.parse(SCENARIO), "virtual", SEED))
    rows, until_ms = run.recorded_since(-1)
    assert until_ms == run.clock().now_ms == run.info.ended_ms
    assert len(rows["notes"]) == len(run.record.notes)
    at_ms = run.info.began_ms + 5_000
    found = run.fork([parse_action("isolate: 3")], at_ms, 1_000)
    assert found.at_ms == at_ms
    later = found.there.rows_after(at_ms)
    assert set(later) == set(rows)
    assert all(row.at_ms > at_ms for table in later.values() for row in table)


def test_played_run__asks_what_an_action_at_a_moment_leads_to() -> None:
    run = PlayedRun(run_scenario(Scenario.parse(SCENARIO), "virtual", SEED))
    began_ms = run.info.began_ms
    asked = run.questions(parse_action("kill: leader(orders-0)"), began_ms + 5_000)
    leader = next(question for question in asked if question.kind is QuestionKind.LEADER)
    found = run.fork([parse_action("kill: leader(orders-0)")], began_ms + 5_000, 12_000)
    leaders = [row.leader for row in found.there.record.leaders if row.at_ms > found.at_ms]
    assert leaders[0] == leader.answer
    with pytest.raises(ClusterError, match="is not a moment of this run"):
        run.questions(parse_action("kill: 1"), began_ms + 50_000)
