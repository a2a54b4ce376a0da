"""The project's own consumer while its cluster fails: the records it gets, errors, reactions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.story import Story
from tests.rig.cluster import TOPIC

ALONE: Any = {"partitions": ((TOPIC, 0),)}


def in_order(offsets: list[int]) -> bool:
    """Whether they are 0, 1, 2, …"""
    return offsets == list(range(len(offsets)))


def test_consumer__reads_everything_in_order_and_commits_when_it_is_closed() -> None:
    story = Story()
    producer = story.producer(count=500)
    consumer = story.consumer()
    assert story.until(lambda: producer.is_done)
    story.run(100)
    consumer.stop(story.driver.now_ms)
    assert story.until(lambda: consumer.is_done, 100)
    assert in_order(story.offsets())
    assert len(story.offsets()) == 500
    assert [read.restarted for read in story.reads()] == [True] + [False] * 499
    assert story.committed(False) == [-1]
    assert story.committed()[-1] == 500
    assert consumer.failed == ""


def test_consumer__another_continues_at_the_committed_offset() -> None:
    story = Story()
    story.producer(count=1_000)
    first = story.consumer("a")
    story.run(5_000)
    first.stop(story.driver.now_ms)
    read = len(story.offsets("a"))
    second = story.consumer("b")
    assert story.until(lambda: second.records_read == 1_000 - read)
    assert read > 400
    assert story.offsets("b")[0] == read == story.committed(False)[-1]
    assert in_order(story.offsets())


def test_consumer__reads_on_when_the_leader_dies() -> None:
    story = Story()
    story.producer(count=3_000)
    consumer = story.consumer()
    story.run(5_000)
    leader = story.leader
    story.driver.kill(leader)
    story.run(20_000)
    assert story.leader != leader
    story.driver.start(leader)
    assert story.until(lambda: consumer.records_read == 3_000, 30_000)
    assert in_order(story.offsets())
    assert sum(read.restarted for read in story.reads()) == 1
    assert ("Fetch", "DISCONNECTED") in story.errors("c")
    assert all(name != "OFFSET_OUT_OF_RANGE" for _, name in story.errors("c"))


def test_consumer__reads_on_at_the_new_leader_when_leadership_moves() -> None:
    story = Story()
    story.producer()
    consumer = story.consumer()
    story.run(5_000)
    follower = story.leader % 3 + 1
    story.driver.move(TOPIC, 0, follower)
    story.run(1_000)
    assert story.leader == follower
    assert story.errors("c")[-1] == ("Fetch", "FENCED_LEADER_EPOCH")
    (position,) = consumer.positions.values()
    assert (position.leader, position.leader_epoch) == (follower, 1)
    assert in_order(story.offsets())
    assert sum(read.restarted for read in story.reads()) == 1
    assert story.reads()[-1].at_ms >= story.driver.now_ms - 50


def test_consumer__a_slow_application_gets_no_more_than_it_can_process() -> None:
    story = Story()
    story.producer(rate_per_s=200.0)
    story.consumer(plan={"records_per_s": 50.0}, max_poll_records=10)
    story.run(10_000)
    assert 480 <= len(story.offsets()) <= 510
    assert in_order(story.offsets())


# ---------------------------------------------------------------------- out of range, cut off


@pytest.mark.parametrize(
    ("policy", "first", "failed"),
    [("earliest", 60, ""), ("latest", 100, ""), ("none", None, "OFFSET_OUT_OF_RANGE")],
)
def test_consumer__out_of_range_the_reset_policy_decides(
    policy: str, first: int | None, failed: str
) -> None:
    story = Story()
    producer = story.producer(count=10)
    assert story.until(lambda: producer.is_done)
    old = story.consumer("old")
    assert story.until(lambda: old.records_read == 10)
    old.stop(story.driver.now_ms)
    more = story.producer("q", count=90)
    assert story.until(lambda: more.is_done)
    story.delete_before(60)
    consumer = story.consumer("new", auto_offset_reset=policy)
    story.run(2_000)
    last = story.producer("r", count=5)
    assert story.until(lambda: last.is_done)
    story.run(500)
    assert story.committed(False)[-1] == 10
    assert story.errors("new").count(("Fetch", "OFFSET_OUT_OF_RANGE")) == 1
    assert (consumer.failed, consumer.is_done) == (failed, bool(failed))
    assert story.offsets("new") == ([] if first is None else list(range(first, 105)))
    assert [read.restarted for read in story.reads("new")][:1] == ([] if failed else [True])


def test_consumer__no_committed_offset_and_no_reset_policy_ends_it() -> None:
    story = Story()
    story.producer()
    consumer = story.consumer(auto_offset_reset="none")
    story.run(3_000)
    assert (consumer.failed, consumer.is_done) == ("NO_OFFSET_FOR_PARTITION", True)
    assert ("OffsetFetch", "NO_OFFSET_FOR_PARTITION") in story.errors("c")


def unclean(policy: str) -> tuple[Story, Any]:
    """A consumer has read records that only the leader, alone in the ISR, has.  The leader dies
    for good, and a follower without those records is elected."""
    story = Story(
        brokers=2,
        replication_factor=2,
        config={"unclean.leader.election.enable": "true", "offsets.topic.replication.factor": 2},
    )
    story.producer(settings={"acks": 1}, stop_ms=40_000)
    first = story.consumer("first", plan=ALONE)
    story.run(2_000)
    first.stop(story.driver.now_ms)
    consumer = story.consumer(plan=ALONE, auto_offset_reset=policy)
    story.run(3_000)
    leader = story.leader
    follower = 3 - leader
    story.driver.kill(follower)
    story.run(15_000)
    before = story.offsets()[-1]
    assert before > 1_500
    story.driver.kill(leader)
    story.driver.start(follower)
    assert story.until(lambda: story.leader == follower, 30_000)
    story.run(15_000)
    return story, consumer


def test_consumer__a_truncated_log_is_read_from_where_the_logs_agree() -> None:
    story, consumer = unclean("latest")
    offsets = story.offsets("c")
    _, again = (at for at, read in enumerate(story.reads("c")) if read.restarted)
    cut = offsets[again]
    assert 400 < cut < offsets[again - 1]
    assert offsets[again:] == list(range(cut, cut + len(offsets) - again))
    assert consumer.failed == ""


def test_consumer__a_truncated_log_without_a_reset_policy_ends_it() -> None:
    story, consumer = unclean("none")
    assert consumer.failed == "LOG_TRUNCATION"
    assert ("OffsetForLeaderEpoch", "LOG_TRUNCATION") in story.errors("c")
    assert in_order(story.offsets())


# ---------------------------------------------------------------------------------- runs alike


def test_consumer__the_same_seed_gives_the_same_ledger() -> None:
    def run() -> tuple[str, list[Any], list[Any]]:
        story = Story(seed=3, partitions=4)
        story.producer()
        for name in "abc":
            story.consumer(name, session_timeout_ms=6_000)
        story.run(3_000)
        story.driver.kill(story.leader)
        story.run(9_000)
        return story.driver.trace_hash(), story.ledger.reads, story.ledger.errors

    assert run() == run()
