"""The same past with other values: what they change, for runs and for running clusters."""

from __future__ import annotations

from functools import cache

import pytest

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.parameters import ACKS, LATENCY, MIN_ISR, SESSION
from kcluster.scenario.play.played import PlayedRun
from kcluster.scenario.play.virtual import run_virtual
from kcluster.scenario.replaying import Replay, Replays, parameters_in
from kcluster.scenario.started import start_client

PAST = """
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, name: shop, rate: 20/s}}
duration: 16s
steps:
  - {at: 2s, kill: 1}
"""
LOSING = """
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, name: shop, rate: 20/s, acks: 1}}
duration: 16s
steps:
  - {at: 1s, slow: {nodes: followers(orders-0), latency: 300ms}}
  - {at: 3s, kill: 1}
"""


@cache
def run(text: str) -> PlayedRun:
    return PlayedRun(run_virtual(Scenario.parse(text), 1, lambda now_ms, of_ms: None))


def replay(text: str = PAST, at_ms: int | None = None, **values: int | str) -> Replay:
    named = {"session": SESSION, "min_isr": MIN_ISR, "acks": ACKS, "latency": LATENCY}
    changed = {named[name]: value for name, value in values.items()}
    return Replays().play(run(text), "orders-0", at_ms, changed)


def test_replay__a_shorter_session_shortens_the_gap_by_the_time_until_it_is_noticed() -> None:
    found = replay(session=3_000).difference
    here, there = found.gaps
    assert here is not None
    assert there is not None
    assert (here.noticed_ms, there.noticed_ms) == (11_000, 5_000)
    assert found.text == (
        "With broker.session.timeout.ms=3000, no client can write to orders-0 for"
        " 3.5 s instead of 9.3 s, and nothing is lost."
    )


def test_replay__equal_values_change_nothing() -> None:
    found = replay(session=9_000, acks="all", min_isr=1, latency=0).difference
    assert found.here == found.there
    assert found.text.endswith("a latency of 0 ms, clients notice no difference.")


def test_replay__acks_decide_about_records_that_followers_do_not_have() -> None:
    found = replay(LOSING, acks="all").difference
    assert (found.here.lost, found.there.lost) == (4, 0)
    assert found.text.endswith("and nothing is lost instead of 4 acknowledged records.")
    back = replay(LOSING, acks="0").difference
    assert back.text == "With acks=0, producers get no acks, and no further records are lost."


def test_replay__min_isr_above_the_rest_keeps_the_partition_from_being_written() -> None:
    found = replay(min_isr=3).difference
    assert found.gaps[1] is not None
    assert found.gaps[1].written_ms is None
    assert "for more than 74.0 s instead of 9.3 s" in found.text


def test_replay__records_wait_while_the_isr_is_below_its_minimum() -> None:
    found = replay(PAST.replace("kill: 1", "kill: 3, for: 12s"), min_isr=3).difference
    assert found.gaps == (None, None), "the leader is there"
    assert "a record waits up to 12.0 s instead of " in found.text


def test_replay__latency_makes_acks_slower() -> None:
    found = replay(at_ms=None, latency=20).difference
    assert found.here.ack_ms is not None
    assert found.there.ack_ms is not None
    assert found.there.ack_ms >= found.here.ack_ms + 60, "to the leader, to a follower, and back"


def test_replay__a_gap_that_is_open_at_the_moment_is_played_to_its_end() -> None:
    began_ms = run(PAST).info.began_ms
    found = replay(at_ms=began_ms + 4_000, session=3_000).difference
    assert [gap and gap.written_ms for gap in found.gaps] != [None, None]
    early = replay(at_ms=began_ms + 1_000, session=3_000).difference
    assert early.gaps == (None, None)
    assert early.text.endswith("clients notice no difference.")


def test_replay__the_past_with_its_own_values_is_played_once() -> None:
    replays, source = Replays(), run(PAST)
    first = replays.play(source, "orders-0", None, {SESSION: 3_000})
    second = replays.play(source, "orders-0", None, {SESSION: 6_000})
    assert second.difference.here is first.difference.here
    assert second.assumptions == ()
    after_ms = source.info.ended_ms
    last = replays.play(source, "orders-0", after_ms, {SESSION: 6_000})
    assert last.difference == second.difference, "the repair of the run is no part of its past"
    earlier = replays.play(source, "orders-0", source.info.began_ms + 5_000, {SESSION: 6_000})
    assert earlier.difference.here is not first.difference.here


def test_replay__what_the_past_does_not_have_is_refused() -> None:
    with pytest.raises(ClusterError, match="orders-7 does not exist in the past as played"):
        Replays().play(run(PAST), "orders-7", None, {})
    with pytest.raises(ClusterError, match="is not a moment of this run"):
        Replays().play(run(PAST), "orders-0", -1, {})
    with pytest.raises(ClusterError, match="not a partition"):
        parameters_in(run(PAST), "orders")


def test_replay__of_a_running_cluster() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 3, "assignment": [[1, 2, 3]]}}
    with Cluster(Topology.of(brokers=3, topics=topics, profile="fast"), seed=5) as cluster:
        start_client(cluster, {"producer": {"topic": "orders", "rate": "100/s"}})
        cluster.wait_for("high_watermark(orders-0) >= 10")
        cluster.kill(1)
        cluster.wait_for("leader(orders-0) = 2")
        cluster.pause_clock()
        session = next(each for each in parameters_in(cluster, "orders-0") if each.name == SESSION)
        found = Replays().play(cluster, "orders-0", None, {SESSION: session.most})
        here, there = found.difference.gaps
        assert here is not None
        assert there is not None
        assert there.noticed_ms is not None
        assert here.noticed_ms is not None
        assert there.noticed_ms > here.noticed_ms
        assert found.assumptions == ()
        assert cluster.leader("orders-0") == 2, "nothing has happened to the cluster itself"
