"""The final logs as rows: where each send is, and which appends are missing."""

from __future__ import annotations

from kcluster.runs.record import ContentRow
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

SCENARIO = """
name: two deaths
duration: 3s
topology:
  profile: fast
  brokers: 2
  topics: {orders: {partitions: 1, replication_factor: 2, config: {min.insync.replicas: 1}}}
workload: {producers: [{topic: orders, name: shop, rate: 200/s, acks: 1}]}
steps: [STEPS]
"""


def run(steps: str) -> tuple[RunResult, list[ContentRow]]:
    text = SCENARIO.replace("STEPS", steps)
    result = run_scenario(Scenario.parse(text, "two.yaml"), "virtual")
    return result, result.record().contents


def spans(rows: list[ContentRow], state: str) -> list[tuple[int, int, int, int]]:
    """(epoch, offset, number, count) of each row with this state."""
    return [(row.epoch, row.offset, row.number, row.count) for row in rows if row.state == state]


def test_log_contents__a_log_filled_in_order_is_one_row() -> None:
    result, rows = run("")
    count = result.verdict.acked
    assert count > 100
    assert [(row.state, row.producer, row.copy) for row in rows] == [("held", "shop", 0)]
    assert spans(rows, "held") == [(0, 0, 1, count)]
    (log,) = result.record().logs
    assert (log.topic, log.partition, log.start_offset, log.end_offset) == ("orders", 0, 0, count)
    assert [send.number for send in result.record().sends] == list(range(1, count + 1))


def test_log_contents__records_that_only_a_dead_leader_had_are_cut() -> None:
    result, rows = run(
        "{at: 500ms, slow: {nodes: leader(orders-0), others: followers(orders-0), latency: 40ms}},"
        " {at: 1s, kill: leader(orders-0), as: old}, {after: 500ms, start: old}"
    )
    lost = [each for each in result.verdict.anomalies if each.name == "lost-write"]
    cut = spans(rows, "cut")
    assert sum(count for _, _, _, count in cut) >= sum(each.count for each in lost) > 0
    held = spans(rows, "held")
    assert [epoch for epoch, *_ in held] == sorted({epoch for epoch, *_ in held})
    assert cut[0][1] == held[0][3]  # cut from where the next epoch begins
    assert {epoch for epoch, *_ in cut} == {0}


def test_log_contents__records_of_a_deleted_topic_are_marked() -> None:
    _, rows = run("{at: 1s, delete_topic: {name: orders}}")
    (gone,) = spans(rows, "deleted")
    ((_, offset, number, _),) = spans(rows, "held")  # it was created again by the next producer
    assert gone[:3] == (0, 0, 1)
    assert (offset, number) == (0, gone[3] + 1)


def test_log_contents__records_of_an_aborted_transaction_are_hidden() -> None:
    text = SCENARIO.replace("STEPS", "").replace("acks: 1", "transactions: {every: 5, abort: 50%}")
    record = run_scenario(Scenario.parse(text, "two.yaml"), "virtual").record()
    outcomes = {row.number: row.outcome for row in record.transactions}
    assert {"committed", "aborted"} <= set(outcomes.values())
    assert {row.state for row in record.contents} == {"held", "hidden"}
    for row in record.contents:
        sends = record.sends[row.number - 1 : row.number - 1 + row.count]
        found = {outcomes[send.transaction] for send in sends}
        assert found <= ({"committed"} if row.state == "held" else {"aborted", "open"}), row
