"""A recorder that looks from time to time: its verdicts, and its bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from kcluster.broker.node_view import BrokerNodeView
from kcluster.checks.verdict import Verdict, judge
from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.evidence.sampling import SamplingRecorder
from kcluster.handle.virtual import VirtualDriver
from kcluster.invariants.observed import ObservedPartition
from kcluster.operations.controller import controller_image
from kcluster.partition.replica import Replica
from kcluster.protocol.names import has_internal_prefix
from kcluster.runs.moment import moment_of, recorded_until
from kcluster.scenario.language.model import ProducerSpec
from kcluster.scenario.play.virtual import VirtualStage
from kcluster.scenario.play.workload import make_producer
from tests.rig.cluster import Answer, Simulated
from tests.rig.counting import calls_of
from tests.rig.requests import api_of, batch, commit_request, produce_request

SHORT_TASKS = {"log.retention.check.interval.ms": 500}
TOPICS = {"orders": {"partitions": 1, "replication_factor": 3}}


class Lab:
    """A cluster in virtual time whose producer is a stranger to the verdict: it gets no ledger."""

    def __init__(self, **config: Any) -> None:
        topology = Topology.of(brokers=3, topics=TOPICS, config=config)
        self.driver = VirtualDriver(topology, 1)
        self.stage = VirtualStage(self.driver, 1, Ledger())
        self.stage.start()
        self.recorder = SamplingRecorder(self.driver.dispatcher, self.driver.plan)

    def produce(self, count: int, acks: str = "all") -> None:
        spec = ProducerSpec("orders", name=f"p{count}", rate_per_s=100, count=count, acks=acks)
        producer = make_producer(spec, "kafka", Ledger())
        self.stage.add_client(producer.name, producer)
        self.driver.run_for(count * 10 + 2_000)

    @property
    def leader(self) -> int:
        return self.driver.status().partitions[0].leader or 0

    def verdict(self) -> Verdict:
        return judge(self.recorder, Ledger(), healed=True)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Lab]:
    """`lab(max_records=50)` keeps so few records that older ones are merged."""
    monkeypatch.setattr("kcluster.checks.verdict.keeps_a_ledger", lambda client: False)

    def make(max_records: int = 100_000, **config: Any) -> Lab:
        cluster = Lab(**config)
        cluster.recorder.max_records = max_records
        return cluster

    return make


def test_sampling__what_was_acked_is_in_the_verdict(lab: Callable[..., Lab]) -> None:
    cluster = lab()
    cluster.produce(40)
    verdict = cluster.verdict()
    assert (verdict.outcome, verdict.sent, verdict.acked, verdict.merged) == ("valid", 40, 40, 0)


def test_sampling__a_lost_record_is_named_with_its_story(lab: Callable[..., Lab]) -> None:
    cluster = lab(**{"unclean.leader.election.enable": "true"})
    lose_the_newest(cluster)
    verdict = cluster.verdict()
    assert verdict.outcome == "invalid"
    assert verdict.counts() == {"lost-write": 30}
    assert verdict.anomalies[0].chain
    assert "leader_elected" in {note.event.kind for note in cluster.recorder.notes}


def test_sampling__older_records_are_ranges_and_still_counted(lab: Callable[..., Lab]) -> None:
    cluster = lab(max_records=50)
    cluster.produce(200)
    verdict = cluster.verdict()
    assert (verdict.outcome, verdict.sent, verdict.acked) == ("valid", 200, 200)
    assert verdict.merged >= 100
    (ranges,) = cluster.recorder.ranges.values()
    assert [(one.epoch, one.first, one.acked) for one in ranges] == [(0, 0, True)]
    assert "it was judged only whether they are in the log" in "\n".join(verdict.lines())


def test_sampling__records_are_bounded_in_bytes_and_the_verdict_says_what_are_ranges(
    lab: Callable[..., Lab],
) -> None:
    cluster = lab()
    recorder = cluster.recorder
    recorder.max_bytes = 5_000
    cluster.produce(200)
    verdict = cluster.verdict()
    assert (verdict.outcome, verdict.sent, verdict.acked) == ("valid", 200, 200)
    assert verdict.merged >= 100
    held = [one.batch.size_bytes for x in recorder.partitions.values() for one in x.appends]
    assert 0 < sum(held) == recorder._kept_bytes <= 5_000


def test_sampling__large_commits_count_and_refused_batches_do_not(lab: Callable[..., Lab]) -> None:
    cluster = lab(**{"message.max.bytes": 1_000, "offset.metadata.max.bytes": 1_000_000})
    recorder, kept, stranger = cluster.recorder, [], Answer()
    recorder.max_bytes = 300_000
    cluster.driver.add_client(stranger)
    for number in range(20):
        for body in (
            produce_request("orders", 0, batch(b"x" * 50_000)),
            commit_request("g", number, metadata="y" * 30_000),
        ):
            stranger.wire.send(1, *api_of(body), body)
        cluster.driver.run_for(200)
        kept.append(recorder._kept_bytes)
    assert 100_000 < max(kept) <= 300_000
    assert len(recorder.answers) < 20


def test_sampling__what_retention_deletes_between_two_looks_is_counted(
    lab: Callable[..., Lab],
) -> None:
    cluster = lab(**{"log.retention.bytes": 1, "log.segment.bytes": 5 << 20})
    cluster.produce(3)
    stranger = Answer()
    cluster.driver.add_client(stranger)
    for _ in range(50):  # at one moment: no look between them
        body = produce_request("orders", 0, batch(*[b"x" * 250_000] * 4), acks=1)
        stranger.wire.send(cluster.leader, *api_of(body, 9), body)
    cluster.driver.run_for(500)
    verdict = cluster.verdict()
    assert (verdict.outcome, verdict.sent, verdict.acked) == ("valid", 203, 203)
    ranges = next(iter(cluster.recorder.ranges.values()))
    assert sum(one.count for one in ranges) == verdict.merged > 80
    assert "it was judged only whether they are in the log" in "\n".join(verdict.lines())


def test_sampling__a_lost_range_is_an_anomaly(lab: Callable[..., Lab]) -> None:
    cluster = lab(max_records=20, **{"unclean.leader.election.enable": "true"})
    lose_the_newest(cluster, then=60)
    verdict = cluster.verdict()
    assert verdict.outcome == "invalid"
    lost = [str(x) for x in verdict.anomalies if x.count > 1]
    assert lost == [
        "lost-write: orders-0: offsets 10 to 39, 30 records acked in leader epoch 0: not in the log"
    ]


def test_sampling__the_oldest_events_are_dropped_and_the_verdict_says_so(
    lab: Callable[..., Lab],
) -> None:
    cluster = lab()
    cluster.recorder.max_notes = 10
    for _ in range(5):
        cluster.driver.kill(1)
        cluster.driver.run_for(15_000)
        cluster.driver.start(1)
        cluster.driver.run_for(15_000)
    cluster.produce(5)
    verdict = cluster.verdict()
    assert len(cluster.recorder.notes) <= 12
    assert verdict.dropped_events >= 10
    lines = verdict.lines()
    assert f"the oldest {verdict.dropped_events} events are no longer kept" in lines


def test_sampling__old_events_that_say_how_something_is_are_kept(lab: Callable[..., Lab]) -> None:
    cluster = lab()
    cluster.driver.kill(3)
    cluster.driver.run_for(15_000)
    cluster.recorder.max_notes = 80
    for _ in range(20):
        cluster.driver.pause(1)
        cluster.driver.resume(1)
        cluster.driver.kill(2)
        cluster.driver.run_for(15_000)
        cluster.driver.start(2)
        cluster.driver.run_for(15_000)
    cluster.recorder.check_last_step()
    notes = cluster.recorder.notes
    assert len(notes) <= 80
    assert cluster.recorder.dropped_notes > 100
    assert [note.at_ms for note in notes] == sorted(note.at_ms for note in notes)
    record = recorded_until(cluster.recorder, cluster.driver.now_ms)
    moment = moment_of(record, cluster.driver.now_ms)
    assert [(str(x.state), x.fenced) for x in moment.brokers] == [
        ("up", False), ("up", False), ("down", True),
    ]  # fmt: skip


def test_sampling__leader_epochs_of_each_replica_outlive_older_ones(
    lab: Callable[..., Lab],
) -> None:
    cluster = lab()
    cluster.recorder.max_epoch_runs = 20
    for number in range(12):
        leader = cluster.driver.verbs.leader("orders", 0)
        cluster.driver.kill(leader)
        cluster.driver.run_for(12_000)
        cluster.produce(5 + number)
        cluster.driver.start(leader)
        cluster.driver.run_for(12_000)
    cluster.recorder.check_last_step()
    (observed,) = cluster.recorder.of_partition(("orders", 0))
    assert len(observed.epoch_runs) <= 20
    newest = {runs.broker: runs.epochs for runs in observed.epoch_runs}
    logs = {disk: cluster.driver.plan.disks[disk].logs[observed.key] for disk in (1, 2, 3)}
    assert newest == {broker: tuple(log.epochs.entries) for broker, log in logs.items()}


def lose_the_newest(cluster: Lab, then: int = 5) -> None:
    """Records 10 to 39 reach only the leader, which dies; a follower is elected unclean."""
    cluster.produce(10)
    driver = cluster.driver
    leader = driver.verbs.leader("orders", 0)
    followers = [broker for broker in (1, 2, 3) if broker != leader]
    for broker in followers:
        driver.kill(broker)
    driver.run_for(15_000)
    cluster.produce(30, acks="1")
    driver.kill(leader)
    driver.run_for(15_000)
    for broker in followers:
        driver.start(broker)
    driver.run_for(20_000)
    driver.start(leader)
    cluster.produce(then)
    driver.run_for(20_000)


# ---------------------------------------------------------------------- the cost of a look


class Thorough(SamplingRecorder):
    """It looks at every replica and every partition, each time."""

    def _changed_at(self, node: BrokerNodeView) -> list[Replica]:
        return node.replicas.all()

    def _read_image(self, now_ms: int) -> None:
        for topic in controller_image(self.dispatcher).topics.values():
            for found in topic.partitions:
                if not has_internal_prefix(topic.name):
                    key = (topic.topic_id, found.partition)
                    observed = self.invariants.partition(topic.name, key)
                    if observed.registration is not found:
                        observed.registration = found
                        observed.registrations.append((now_ms, found))
                        self._by_name[topic.name, found.partition] = observed


@pytest.mark.pure_python
@pytest.mark.parametrize("seed", range(4))
def test_sampling__finds_what_a_look_at_all_replicas_would_find(seed: int) -> None:
    """Produce, move, kill, lose power, delete old segments, stop the controller."""
    random = Random(seed)
    t = Simulated(of_brokers=SHORT_TASKS, segment_ms=1_000, retention_ms=5_000)
    recorders = [kind(t.dispatcher, t.plan) for kind in (SamplingRecorder, Thorough)]
    nodes = [*t.plan.disks, CONTROLLER_ID]
    for _ in range(40):
        for _ in range(random.randrange(4)):
            t.produce(random.randbytes(4), to=random.choice(list(t.plan.disks)), acks=1)
        t.run_for(random.randrange(3_000))
        node = random.choice(nodes)
        if t.dispatcher.processes[node].node is None:
            t.start(node)
        elif random.random() < 0.3:
            t.kill(node, random.choice(["kill", "power"]))
    for recorder in recorders:
        recorder.check_last_step()
    sparing, thorough = ([facts_of(x) for x in one.partitions.values()] for one in recorders)
    assert sparing == thorough
    assert len(sparing[0][0]) > 10
    assert {run.start_offset > 0 for run in sparing[0][1]} == {False, True}


def facts_of(observed: ObservedPartition) -> tuple[Sequence[Any], ...]:
    """What a recorder knows of a partition."""
    appends = [(x.at_ms, x.broker, x.epoch, x.base_offset, x.isr) for x in observed.appends]
    return observed.moves, observed.epoch_runs, appends, observed.registrations


def calls_of_a_look(partitions: int) -> int:
    """How many functions a look calls after one partition has changed."""
    topics = {"many": {"partitions": partitions, "replication_factor": 3}}
    driver = VirtualDriver(Topology.of(brokers=3, topics=topics), 1)
    driver.open()
    recorder = SamplingRecorder(driver.dispatcher, driver.plan)
    driver.run_for(1_000)
    recorder.max_epoch_runs = 1  # fewer than there are replicas
    for leader in (2, 3):
        recorder.check_last_step()
        recorder._is_urgent = True  # so that it does not look by itself
        driver.move("many", 0, leader)
        driver.run_for(10)
    return calls_of(recorder.check_last_step)


@pytest.mark.pure_python  # compiled functions are not counted
def test_sampling__a_look_costs_the_same_whatever_the_number_of_replicas() -> None:
    assert calls_of_a_look(300) == calls_of_a_look(3) > 10
