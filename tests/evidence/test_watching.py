"""The messages between nodes that a page shows, and the sessions that heartbeats keep."""

from __future__ import annotations

import pytest

from kcluster.config.topology.model import Topology
from kcluster.evidence.watching import FETCHES_PER_READING, MAX_REQUESTS, WatchedRows, Watching
from kcluster.handle.world_cluster import WorldCluster
from kcluster.scenario.started import start_client, waiting_records


class Watched:
    """A cluster of three brokers in virtual time, with a page that reads."""

    def __init__(self) -> None:
        topics = {"orders": {"assignment": [[1, 2, 3]]}}
        self.cluster = WorldCluster(Topology.of(brokers=3, topics=topics, profile="kafka"), 1)
        self.cluster.open()
        self.watching = Watching(self.cluster.recorder)
        self.until_ms = -1
        self.read()

    def read(self) -> WatchedRows:
        after_ms, self.until_ms = self.until_ms, self.cluster.driver.now_ms() - 1
        return self.watching.read(after_ms, self.until_ms)

    def wait(self, ms: int) -> None:
        driver = self.cluster.driver
        driver.advance(driver.now_us + ms * 1000, lambda: False)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_watching__a_follower_pulls_waits_at_the_leader_and_gets_the_record(
    watched: Watched,
) -> None:
    cluster = watched.cluster
    cluster.slow_link(1, 2, latency_ms=3)
    start_client(cluster, {"producer": {"topic": "orders", "rate": "1/s"}})
    watched.wait(2_500)
    rows = [row for row in watched.read().messages if {row.source, row.destination} == {1, 2}]
    answers = [row for row in rows if row.is_answer and any(part[2] >= 0 for part in row.parts)]
    answer = answers[-1]
    (request,) = [row for row in rows if row.number == answer.number and not row.is_answer]
    assert (request.source, request.destination, request.api) == (2, 1, "Fetch")
    assert request.arrives_us == request.sent_us + 3_000
    assert answer.arrives_us == answer.sent_us + 3_000
    assert answer.sent_us >= request.arrives_us
    (topic, partition, first, last, mark), *_ = answer.parts
    assert (topic, partition, first) == ("orders", 0, last)
    assert mark == first, "the record is committed when the followers ask for the next one"


def test_watching__a_message_over_a_cut_link_is_lost(watched: Watched) -> None:
    watched.cluster.cut(2, "controller")
    watched.wait(5_000)
    beats = [row for row in watched.read().messages if row.api == "BrokerHeartbeat"]
    lost = {row.source: row.arrives_us < 0 for row in beats if not row.is_answer}
    assert lost == {1: False, 2: True, 3: False}


def test_watching__a_session_ends_nine_seconds_after_the_last_heartbeat(watched: Watched) -> None:
    cluster = watched.cluster
    watched.wait(3_000)
    cluster.kill(1, wait=False)
    watched.wait(500)
    last = [row for row in watched.read().sessions if row.broker == 1][-1]
    assert last.expires_ms == last.at_ms + 9_000
    cluster.wait_for("event broker_fenced", within="10s")
    assert cluster.driver.now_ms() == last.expires_ms


def test_watching__records_wait_while_there_is_no_leader(watched: Watched) -> None:
    cluster = watched.cluster
    start_client(cluster, {"producer": {"topic": "orders", "rate": "10/s", "name": "shop"}})
    watched.wait(1_000)
    cluster.kill(1, wait=False)
    watched.wait(4_000)
    (row,) = waiting_records(cluster)
    assert (row.client, row.topic, row.partition) == ("shop", "orders", 0)
    assert 38 <= row.count <= 41
    assert 3_900 <= row.at_ms - row.oldest_ms <= 4_100


def test_watching__a_consumers_fetch_waits_until_there_is_a_record(watched: Watched) -> None:
    cluster = watched.cluster
    consumer = {"topics": "orders", "group": "readers", "name": "reader"}
    start_client(cluster, {"consumer": consumer})
    watched.wait(5_000)
    watched.read()
    watched.wait(5_000)
    asking = watched.read().asking
    assert {row.client for row in asking} == {"reader"}
    assert ["orders-0"] in [row.partitions for row in asking if row.broker == 1]
    assert all(watched.until_ms - row.at_ms <= 500 for row in asking), "fetch.max.wait.ms"


def test_watching__shows_a_part_of_many_messages_and_nothing_unless_it_is_read(
    watched: Watched,
) -> None:
    cluster = watched.cluster
    start_client(cluster, {"producer": {"topic": "orders", "rate": "300/s"}})
    watched.wait(100)
    watched.read()
    watched.wait(100)
    fetches = [row for row in watched.read().messages if row.api == "Fetch"]
    asked = [row for row in fetches if not row.is_answer and row.source == 2]
    assert FETCHES_PER_READING <= len(asked) <= 2 * FETCHES_PER_READING
    watched.wait(2_000)
    assert len(watched.read().messages) <= 2 * MAX_REQUESTS + 10
    assert cluster.dispatcher.message_sink is not None
    watched.wait(11_000)
    assert cluster.dispatcher.message_sink is None, "nobody has read for 10 s"
