"""DeleteRecords as a step: logs start later on every replica, and nothing counts as lost."""

from __future__ import annotations

from kcluster.events.partitions import RecordsDeleted
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from kcluster.scenario.recorded import steps_of

HEAD = """\
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers: {topic: orders, rate: 50/s}
  consumers: {topics: orders, group: readers}
duration: 3s
steps:
"""


def play(*steps: str) -> RunResult:
    return run_scenario(Scenario.parse(HEAD + "".join(f"  - {x}\n" for x in steps)), "virtual")


def deleted(result: RunResult) -> list[int]:
    events = [note.event for note in result.notes]
    return [event.low_watermark for event in events if isinstance(event, RecordsDeleted)]


def test_delete_records__the_log_starts_later_and_nothing_counts_as_lost() -> None:
    result = play(
        "{at: 1s, delete_records: {partition: orders-0, before: 20}}",
        "{at: 2s, delete_records: orders-0}",
    )
    first, second = deleted(result)
    assert first == 20
    assert 90 <= second <= 101
    assert not result.failures
    steps = steps_of(result.notes, ("orders",), result.began_ms, (1, 2, 3))
    assert [step.keys for step in steps] == [
        {"partition": "orders-0", "before": 20},
        {"partition": "orders-0", "before": second},
    ]


def test_delete_records__a_refusal_fails_the_run() -> None:
    result = play("{at: 1s, delete_records: {partition: orders-0, before: 999}}")
    assert result.failures == ["delete_records: OFFSET_OUT_OF_RANGE"]
    result = play("{at: 1s, kill: 1}", "delete_records: orders-0")
    assert "its leader, broker 1, is down" in result.failures[0]
