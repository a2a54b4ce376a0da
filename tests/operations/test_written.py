"""Moments inside brokers: a step of a scenario comes between a write and its answer."""

from __future__ import annotations

import pytest

from kcluster.events.partitions import LogTruncated
from kcluster.operations.conditions import MomentCondition, condition
from kcluster.operations.moments import NthMoment
from kcluster.operations.written import BROKERS_MOMENTS, WrittenWatch
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

HEAD = """\
topology:
  brokers: 3
  topics:
    orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}
    bills: {assignment: [[2, 3, 1]], config: {min.insync.replicas: 2}}
  config:
    offsets.topic.num.partitions: 1
    transaction.state.log.num.partitions: 1
    share.coordinator.state.topic.num.partitions: 1
    group.initial.rebalance.delay.ms: 0
    replica.lag.time.max.ms: 1000
    broker.session.timeout.ms: 500
    broker.heartbeat.interval.ms: 100
workload:
  producers: {topic: orders, name: shop, rate: 20/s, count: 40}
  consumers:
    - {topics: orders, name: reader, group: readers, commit: after_poll}
    - {topics: orders, name: packer, group: packing, share: true}
  processors: {topic: orders, to: bills, name: biller, group: billing}
duration: 4s
steps:
"""


def play(*steps: str) -> RunResult:
    text = HEAD + "".join(f"  - {step}\n" for step in steps)
    return run_scenario(Scenario.parse(text), "virtual")


def truncated(result: RunResult, topic: str) -> list[int]:
    """How many records brokers dropped that no other replica had."""
    events = [note.event for note in result.notes]
    return [
        event.from_offset - event.to_offset
        for event in events
        if isinstance(event, LogTruncated) and event.topic == topic
    ]


def test_written__a_coordinator_dies_with_a_commit_that_it_has_not_answered() -> None:
    result = play("{when: 3rd commit_written of readers, kill: coordinator(readers), for: 1s}")
    assert truncated(result, GROUP_METADATA_TOPIC) == [1]
    assert not result.failures


def test_written__a_leader_dies_before_any_follower_has_the_records() -> None:
    result = play("{when: 5th append of orders-0, kill: leader(orders-0), for: 1s}")
    assert truncated(result, "orders")
    assert not result.failures


@pytest.mark.parametrize("kind", BROKERS_MOMENTS)
def test_written__each_kind_of_moment_comes(kind: str) -> None:
    result = play(f"{{when: {kind}, pause: 3, for: 100ms}}")
    assert [played.text for played in result.played]
    assert not result.failures


def test_written__the_form_of_a_moment() -> None:
    found = condition("commit_written of billing")
    assert isinstance(found, MomentCondition)
    assert found.moment == NthMoment(1, "commit_written", "billing")
    with pytest.raises(ValueError, match="did you mean commit_written"):
        condition("2nd comit_written of billing")
    with pytest.raises(ValueError, match=r"did you mean commit_written of billing\?"):
        condition("commit_writen of billing")
    with pytest.raises(ValueError, match=r"did you mean event leader_elected of orders-0\?"):
        condition("leader_elected of orders-0")


def test_written__a_step_is_skipped_if_its_moment_does_not_come_in_time() -> None:
    result = play(
        "{at: 100ms, when: append of bills-9, within: 500ms, kill: 1, if_possible: true}",
        "{at: 200ms, when: append of orders-0, within: 500ms, pause: 2, for: 100ms}",
    )
    (pause,) = result.played
    watches = [getattr(sink, "__self__", None) for sink in result.recorder.dispatcher.step_sinks]
    assert not any(isinstance(watch, WrittenWatch) for watch in watches)
    assert pause.text.startswith("pause")
    assert 600 <= pause.at_ms - result.began_ms < 700
    assert not result.failures


def test_written__the_delay_after_a_moment_may_be_longer_than_its_limit() -> None:
    result = play("{when: append of orders-0, within: 1s, delay: 2s, pause: 3, for: 100ms}")
    assert [played.text for played in result.played]
    assert not result.failures


def test_written__a_moment_that_does_not_come_in_time_fails_the_run() -> None:
    result = play("{at: 100ms, when: append of orders-9, within: 500ms, kill: 1}")
    assert any("did not hold within 500 ms" in text for text in map(str, result.failures))
