"""A reassignment as a step with a time: it is cancelled then, or the partition moves back."""

from __future__ import annotations

from kcluster.events.partitions import ReassignmentCancelled, ReassignmentStarted
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

HEAD = """\
topology: {brokers: 4, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 50/s}}
duration: 20s
steps:
"""


def play(*steps: str, head: str = HEAD) -> RunResult:
    return run_scenario(Scenario.parse(head + "".join(f"  - {x}\n" for x in steps)), "virtual")


def moves(result: RunResult) -> list[tuple[str, tuple[int, ...]]]:
    kinds = (ReassignmentStarted, ReassignmentCancelled)
    events = [note.event for note in result.notes if isinstance(note.event, kinds)]
    return [(type(event).__name__, event.replicas) for event in events]


def test_reassign__that_has_not_ended_is_cancelled() -> None:
    result = play(
        "{at: 1s, isolate: {nodes: 4, others: 1}, for: 6s}",
        "{at: 2s, reassign: {partition: orders-0, to: [1, 2, 4]}, for: 2s}",
    )
    assert moves(result) == [
        ("ReassignmentStarted", (1, 2, 4)),
        ("ReassignmentCancelled", (1, 2, 3)),
    ]
    assert not result.failures


def test_reassign__that_has_ended_is_undone_by_moving_back() -> None:
    result = play("{at: 2s, reassign: {partition: orders-0, to: [1, 2, 4]}, for: 2s}")
    assert moves(result) == [("ReassignmentStarted", (1, 2, 4)), ("ReassignmentStarted", (1, 2, 3))]
    assert not result.failures


def test_reassign__is_not_cancelled_while_most_of_the_old_replicas_are_out_of_sync() -> None:
    """Kafka would keep broker 4 in the ELR, and then elect nothing from outside of it."""
    result = play(
        "{at: 1s, kill: '2, 3', for: 14s}",
        "{at: 11s, reassign: {partition: orders-0, to: [1, 4, 2]}, for: 2s}",
    )
    assert "ReassignmentCancelled" not in [name for name, _ in moves(result)]
    assert not result.failures


def test_cancel__of_a_move_in_progress() -> None:
    result = play(
        "{at: 1s, isolate: {nodes: 4, others: 1}, for: 6s}",
        "{at: 2s, reassign: {partition: orders-0, to: [1, 2, 4]}}",
        "{at: 3s, cancel_reassignment: orders-0}",
    )
    assert moves(result) == [
        ("ReassignmentStarted", (1, 2, 4)),
        ("ReassignmentCancelled", (1, 2, 3)),
    ]
    assert not result.failures


def test_cancel__that_kafka_refuses_changes_nothing() -> None:
    """Of the replicas before the move none is in sync; and then it has ended."""
    result = play(
        "{at: 1s, isolate: {nodes: 4, others: '1, 2, 3'}, for: 13s}",
        "{at: 2s, reassign: {partition: orders-0, to: [3, 4]}}",
        "{at: 3s, kill: '1, 2', for: 13s}",
        "{at: 13s, cancel_reassignment: orders-0}",
        "{at: 19s, cancel_reassignment: orders-0}",
        head=HEAD.replace("[[1, 2, 3]]", "[[1, 2]]"),
    )
    assert moves(result) == [("ReassignmentStarted", (3, 4))]
    assert not result.failures
