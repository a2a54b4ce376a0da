"""What consumers get, compared with what they asked for."""

from __future__ import annotations

import pytest

from kcluster.broker.handlers.data.fetch import PendingFetch
from kcluster.broker.serving import nearest_replica
from kcluster.broker.serving.sessions import SessionPartition
from kcluster.invariants.fetch_answers import misfetched
from kcluster.partition.log.log import Log
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import Batch, parse_batches
from kcluster.protocol.records.records import Record, build_batch
from tests.invariants.test_broken_cores import names, run

TOPIC = b"t" * 16


def batch_at(offset: int, records: int = 1) -> Batch:
    some = [Record(offset + i, 0, None, b"x" * 20, ()) for i in range(records)]
    last = offset + records - 1
    return parse_batches(build_batch(some, base_offset=offset, last_offset=last))[0]


def asked(offset: int, max_bytes: int = 10_000) -> m.FetchRequest:
    kind = m.FetchRequest
    partition = kind.FetchPartition(partition=0, fetch_offset=offset)
    topic = kind.FetchTopic(topic_id=TOPIC, partitions=[partition])
    return kind(max_bytes=max_bytes, topics=[topic])


def answer(*partitions: list[Batch]) -> m.FetchResponse:
    kind = m.FetchResponse
    rows = [
        kind.PartitionData(index, high_watermark=99, records=batches)
        for index, batches in enumerate(partitions)
    ]
    return kind(responses=[kind.FetchableTopicResponse(topic_id=TOPIC, partitions=rows)])


def broken(request: m.FetchRequest, response: m.FetchResponse) -> list[str]:
    return [name for name, _ in misfetched(request, response)]


def test_answer__of_a_batch_that_holds_the_offset() -> None:
    assert broken(asked(6), answer([batch_at(5, records=3), batch_at(8)])) == []


def test_answer__behind_a_gap() -> None:
    assert broken(asked(6), answer([batch_at(9), batch_at(15)])) == []


def test_answer__that_ends_before_the_offset() -> None:
    assert broken(asked(6), answer([batch_at(5), batch_at(6)])) == ["fetch-elsewhere"]


def test_answer__out_of_order() -> None:
    assert broken(asked(6), answer([batch_at(7), batch_at(6)])) == ["fetch-elsewhere"]


def test_answer__of_a_partition_that_only_the_session_names() -> None:
    assert broken(asked(6), answer([], [batch_at(2)])) == []


def test_limit__the_first_batch_comes_whole() -> None:
    assert broken(asked(6, max_bytes=10), answer([batch_at(6)])) == []


@pytest.mark.parametrize("partitions", [[[6, 7]], [[6], [3]]])
def test_limit__with_more_than_one_batch(partitions: list[list[int]]) -> None:
    got = answer(*([batch_at(one) for one in some] for some in partitions))
    assert broken(asked(6, max_bytes=100), got) == ["fetch-over-limit"]
    assert broken(asked(6), got) == []


PORTIONS = """\
topology: {brokers: 1, topics: {orders: {partitions: 4, replication_factor: 1}}}
workload:
  producers: {topic: orders, rate: 80/s, size: 200}
  consumers: {topics: orders, group: billing, start: 2s, config: {fetch.max.bytes: 500}}
duration: 8s
"""


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_broker__that_gives_each_partition_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(PORTIONS).passed
    read = Log.read

    def read_more(self: Log, offset: int, _: int, end_offset: int, __: bool = True) -> list[Batch]:
        return read(self, offset, 10_000, end_offset)

    monkeypatch.setattr(Log, "read", read_more)
    assert "fetch-over-limit" in names(run(PORTIONS))


@pytest.mark.pure_python
def test_leader__that_denies_to_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(PORTIONS).passed
    replica_of = PendingFetch._replica_of

    def denied(fetch: PendingFetch, wanted: SessionPartition) -> Replica | ErrorCode:
        if fetch.reader.is_follower:
            return replica_of(fetch, wanted)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    monkeypatch.setattr(PendingFetch, "_replica_of", denied)
    assert "leader-denied" in names(run(PORTIONS))


RACKS = """\
topology:
  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: c}]
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
  config:
    replica.selector.class: org.apache.kafka.common.replica.RackAwareReplicaSelector
    replica.lag.time.max.ms: 1000
workload:
  producers: {topic: orders, rate: 20/s}
  consumers: {partitions: orders-0, rack: c, commit: never, config: {metadata.max.age.ms: 1000}}
duration: 8s
steps:
  - {at: 2s, isolate: {nodes: 3, others: 1}, for: 4s}
"""


@pytest.mark.pure_python
def test_leader__that_sends_a_consumer_to_a_follower_out_of_sync(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(RACKS).passed
    monkeypatch.setattr(nearest_replica, "most_caught_up", lambda _: 3)
    assert "redirected-outside" in names(run(RACKS))
