"""Groups of the project's own consumers while coordinators and members die."""

from __future__ import annotations

from typing import Any

from kcluster.clients.consumer.consumer import Consumer
from kcluster.clients.consumer.coordinator import MemberState
from kcluster.events.clients import GroupRebalanced
from kcluster.events.rebalance_reasons import MetadataUpdated
from kcluster.faults.rules import rule
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.clients.story import Story
from tests.rig.cluster import TOPIC

SHORT: Any = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000}


def everything(partitions: int) -> list[tuple[str, int]]:
    return [(TOPIC, number) for number in range(partitions)]


def each_once(story: Story, partitions: int) -> bool:
    """Whether every record was read once and in order, by any member."""
    return all(
        story.offsets(partition=number) == list(range(len(story.offsets(partition=number))))
        for number in range(partitions)
    )


def test_group__partitions_are_shared_and_reassigned_when_a_member_leaves() -> None:
    story = Story(partitions=6)
    producer = story.producer(count=2_000)
    members = [story.consumer(name) for name in "abc"]
    story.run(8_000)
    assert sorted(key for one in members for key in one.assignment) == everything(6)
    assert [len(one.assignment) for one in members] == [2, 2, 2]
    members[0].stop(story.driver.now_ms)
    story.run(8_000)
    assert [len(one.assignment) for one in members] == [0, 3, 3]
    assert story.until(lambda: producer.is_done)
    story.run(1_000)
    assert sum(one.records_read for one in members) == 2_000
    assert each_once(story, 6)


def test_group__a_dead_member_is_removed_after_its_session_timeout() -> None:
    story = Story(partitions=2)
    story.producer(stop_ms=30_000, keys=20)
    a, b = (story.consumer(name, **SHORT) for name in "ab")
    story.run(12_000)
    (lost,) = a.assignment
    committed = [x for x in story.ledger.commits if x.partition == lost and x.is_commit][-1].offset
    read = story.offsets("a", lost[1])[-1]
    assert 0 < committed < read
    earlier = len(story.offsets("b", lost[1]))
    a.abort(story.driver.now_ms)
    story.run(5_000)
    assert len(b.assignment) == 1
    story.run(5_000)
    assert list(b.assignment) == everything(2)
    # Records after the last commit are read again, and none is skipped.
    again = story.offsets("b", lost[1])[earlier:]
    assert again == list(range(committed, committed + len(again)))
    assert again[-1] > read
    assert ("Heartbeat", "REBALANCE_IN_PROGRESS") in story.errors("b")


def test_group__keeps_reading_and_committing_when_the_coordinator_dies() -> None:
    story = Story(partitions=2)
    story.producer()
    members = [story.consumer(name, **SHORT) for name in "ab"]
    story.run(6_000)
    dead = story.coordinator()
    commits = len(story.ledger.commits)
    generation = members[0].group.member.generation if members[0].group else None
    story.driver.kill(dead)
    story.run(25_000)
    assert story.coordinator() != dead
    assert each_once(story, 2)
    assert len(story.ledger.commits) > commits + 4
    assert sorted(key for one in members for key in one.assignment) == everything(2)
    for one in members:
        assert one.group is not None
        assert one.group.member.state is MemberState.STABLE
        assert one.coordinator.broker_id == story.coordinator()
    assert story.reads()[-1].at_ms > story.driver.now_ms - 100
    assert members[0].group is not None
    assert members[0].group.member.generation == generation


def test_group__after_committed_offsets_were_lost_everything_is_read_again() -> None:
    story = Story(config={"offsets.topic.replication.factor": 1, "log.flush.interval.messages": 1})
    story.producer(count=200)
    first = story.consumer("a")
    assert story.until(lambda: first.records_read == 200)
    first.stop(story.driver.now_ms)
    story.run(100)
    assert story.committed()[-1] == 200
    coordinator = story.coordinator()
    story.driver.kill(coordinator, "wipe")
    story.run(15_000)
    story.driver.start(coordinator)
    story.run(10_000)
    second = story.consumer("b")
    story.run(20_000)
    assert story.committed(False)[-1] == -1
    assert second.records_read == 200
    assert story.offsets("b") == list(range(200))


def test_group__a_static_member_returns_without_a_rebalance() -> None:
    story = Story(partitions=2)
    story.producer()
    a = story.consumer("a", group_instance_id="one", **SHORT)
    b = story.consumer("b", group_instance_id="two", **SHORT)
    story.run(8_000)
    had, errors = a.assignment, story.errors("b")
    a.stop(story.driver.now_ms)
    assert story.until(lambda: a.is_done, 100)
    story.run(2_000)
    again = story.consumer("again", group_instance_id="one", **SHORT)
    story.run(3_000)
    assert again.assignment == had
    assert len(b.assignment) == 1
    assert story.errors("b") == errors
    assert each_once(story, 2)


def test_group__of_two_members_with_one_instance_id_the_older_is_fenced() -> None:
    story = Story(partitions=2)
    story.producer()
    a = story.consumer("a", group_instance_id="one", **SHORT)
    story.run(4_000)
    b = story.consumer("b", group_instance_id="one", **SHORT)
    story.run(8_000)
    assert (a.failed, a.is_done) == ("FENCED_INSTANCE_ID", True)
    assert b.failed == ""
    assert list(b.assignment) == everything(2)


def test_group__cooperative_members_keep_their_partitions() -> None:
    story = Story(partitions=4)
    story.producer(keys=20)
    cooperative: Any = {"partition_assignment_strategy": "cooperative-sticky", **SHORT}
    a = story.consumer("a", **cooperative)
    story.run(4_000)
    assert list(a.assignment) == everything(4)
    b = story.consumer("b", **cooperative)
    story.run(8_000)
    assert [len(a.assignment), len(b.assignment)] == [2, 2]
    assert set(a.assignment) | set(b.assignment) == set(everything(4))
    for partition in a.assignment:
        restarts = [x.restarted for x in story.reads("a") if x.partition == partition]
        assert restarts.count(True) == 1
    assert each_once(story, 4)


def test_group__sticky_members_get_their_partitions_back() -> None:
    story = Story(partitions=4)
    story.producer()
    sticky: Any = {"partition_assignment_strategy": "sticky", **SHORT}
    a = story.consumer("a", **sticky)
    b = story.consumer("b", **sticky)
    story.run(6_000)
    had = a.assignment
    c = story.consumer("c", **sticky)
    story.run(6_000)
    c.stop(story.driver.now_ms)
    story.run(6_000)
    assert a.assignment == had
    assert len(b.assignment) == 2
    assert each_once(story, 4)


def state_of(consumer: Consumer) -> MemberState:
    """Of its membership in its group."""
    assert consumer.group is not None
    return consumer.group.member.state


def test_group__a_member_that_exceeds_the_poll_interval_leaves_and_rejoins() -> None:
    story = Story()
    story.producer(count=100, rate_per_s=1_000.0)
    story.run(1_000)
    slow = story.consumer("slow", plan={"records_per_s": 10.0}, max_poll_interval_ms=2_000, **SHORT)
    story.run(1_500)
    assert state_of(slow) is MemberState.STABLE
    story.run(2_000)
    assert state_of(slow) is MemberState.UNJOINED
    story.run(12_000)
    # One poll() returned all records, and none was committed before the member was removed.
    assert state_of(slow) is MemberState.UNJOINED
    assert story.offsets("slow") == list(range(100)) * 2
    assert story.committed() == []


def test_group__with_a_commit_after_each_poll_at_most_one_poll_is_read_again() -> None:
    story = Story()
    story.producer()
    a = story.consumer("a", plan={"commit": "after_poll"}, **SHORT)
    story.run(5_000)
    a.abort(story.driver.now_ms)
    assert story.committed()[-1] >= story.offsets("a")[-1]
    b = story.consumer("b", plan={"commit": "never"}, **SHORT)
    story.run(10_000)
    assert story.offsets("b")[0] == story.offsets("a")[-1] + 1
    commits = len(story.committed())
    b.stop(story.driver.now_ms)
    story.run(500)
    assert len(story.committed()) == commits


def test_group__a_new_partition_is_assigned_when_the_leader_learns_of_it() -> None:
    story = Story(partitions=1)
    members = [story.consumer(name, metadata_max_age_ms=2_000) for name in "ab"]
    story.run(4_000)
    topic = m.CreatePartitionsRequest.CreatePartitionsTopic(TOPIC, 2, None)
    body = m.CreatePartitionsRequest([topic], 5_000, False)
    story.ask(story.leader, ApiKey.CREATE_PARTITIONS, 3, body)
    story.run(10_000)
    assert [len(one.assignment) for one in members] == [1, 1]


def test_group__a_member_that_joins_again_says_in_which_generation_it_was() -> None:
    """The Java client does, also if it got no assignment in that generation; so the group
    rebalances again for a member whose SyncGroup was lost."""
    story = Story(partitions=3)
    members = [story.consumer(name, **SHORT) for name in "ab"]
    story.run(8_000)
    assert sorted(key for one in members for key in one.assignment) == everything(3)
    of_a = f"client-{story.client_ids['a']}"
    lost = rule(api="SyncGroup", client=of_a, drop="request", close=True, times=1)
    story.driver.verbs.add_rule(lost)
    members.append(story.consumer("c", **SHORT))
    story.run(8_000)
    assert story.until(lambda: all(len(one.assignment) == 1 for one in members))
    rebalances = story.driver.events_of(GroupRebalanced)
    assert isinstance(rebalances[-1].trigger, MetadataUpdated)
