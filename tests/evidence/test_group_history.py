"""Groups as brokers saw them: commits with their generations, departures, lookups, refusals."""

from __future__ import annotations

from kcluster.config.topology.model import Topology
from kcluster.evidence.group_history import (
    EARLIEST,
    commits_of,
    group_history,
    lookups_of,
    refusals,
)
from kcluster.protocol.apis import ApiKey
from kcluster.testing.handles import VirtualCluster
from tests.rig.stage import Stage


def consumed() -> VirtualCluster:
    """A consumer has read 50 records of orders, and committed."""
    topology = Topology.of(brokers=3, profile="fast", topics={"orders": {}, "others": {}})
    cluster = VirtualCluster(topology, 1, "consumed")
    cluster.producer("orders", rate="100/s", count=50)
    cluster.consumer(topics="orders", group="billing", name="reader")
    cluster.run_for(2_000)
    return cluster


def test_commits__name_their_group_member_generation_and_client() -> None:
    cluster = consumed()
    history = group_history(cluster.recorder, "orders")
    (began,) = history.generations
    last = history.commits[-1]
    assert (last.group, last.client, last.partition) == ("billing", "reader", ("orders", 0))
    assert (last.offset, last.error, last.is_accepted) == (50, "", True)
    assert (last.member,) == began.event.members
    assert last.generation == began.event.generation == 1
    assert history.departures == ()


def test_history__is_of_the_groups_of_a_topic_or_of_one_of_them() -> None:
    recorder = consumed().recorder
    assert group_history(recorder, "others").generations == ()
    assert group_history(recorder, "orders", "others").commits == ()
    assert group_history(recorder, "orders", "billing") == group_history(recorder, "orders")


def test_history__has_members_that_are_gone() -> None:
    cluster = consumed()
    cluster.do("isolate", nodes="client reader", others="1, 2, 3")
    cluster.run_for(5_000)
    history = group_history(cluster.recorder, "orders")
    (gone,) = history.departures
    assert gone.event.member == history.commits[-1].member
    assert history.generations[-1].event.members == ()


def test_lookups__are_the_questions_for_the_ends_of_a_log() -> None:
    (lookup,) = lookups_of(consumed().recorder)
    assert (lookup.client, lookup.partition) == ("reader", ("orders", 0))
    assert (lookup.asked, lookup.offset) == (EARLIEST, 0)


def test_refusals__are_counted_by_client_api_and_error() -> None:
    cluster = consumed()
    cluster.do("rule", api="OffsetCommit", answer="ILLEGAL_GENERATION", times=1)
    cluster.producer("orders", rate="100/s", count=50)
    cluster.run_for(2_000)
    (refused,) = [x for x in refusals(cluster.recorder) if x.api == ApiKey.OFFSET_COMMIT]
    assert (refused.client, refused.error, refused.count) == ("reader", "ILLEGAL_GENERATION", 1)
    (commit,) = [x for x in commits_of(cluster.recorder) if not x.is_accepted]
    assert (commit.at_ms, commit.error) == (refused.first_ms, refused.error)


def test_commits__from_outside_of_a_group_have_no_generation() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(1, [b"a"])
    stage.run_for(100)
    for broker in (1, 2, 3):
        hand.commit(broker, "g", 1)
    stage.run_for(1_000)
    assert {commit.generation for commit in commits_of(stage.recorder)} == {-1}
    assert {commit.error for commit in commits_of(stage.recorder)} == {"NOT_COORDINATOR"}
