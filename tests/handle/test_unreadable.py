"""Batches that nobody can read are in the logs: every door of the evidence still answers.

Kafka appends a compressed batch whose records have wrong lengths, too; the other batch decays on
the disks after it was appended.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.wire import Wire, produce_body
from kcluster.checks.verdict_facts import UNKNOWN
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import HEADER_BYTES
from kcluster.protocol.records.records import Record, build_batch
from kcluster.runs.directory import read_run
from kcluster.runs.explain import explain
from tests.rig.requests import batch_with_wrong_lengths

TOPICS = {"orders": {"partitions": 1, "replication_factor": 3, "assignment": [[1, 2, 3]]}}
RECORDS = [Record(0, 1_000_000, b"k", b"v%d" % at) for at in range(12)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=3, topics=TOPICS, profile="fast")) as running:
        with Wire(running.plan.addresses[1]) as wire:
            sound, wrong = bytes(build_batch(RECORDS)), batch_with_wrong_lengths(RECORDS)
            for batch in (sound, wrong, wrong):
                answer = wire.ask(ApiKey.PRODUCE, 7, produce_body("orders", 0, batch))
                assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
            wire.ask(ApiKey.FETCH, 11, fetch())
        running.call(lambda: decay(running))
        yield running


def fetch() -> Any:
    partition = m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topics = [m.FetchRequest.FetchTopic(topic="orders", partitions=[partition])]
    return m.FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics)


def decay(running: Cluster) -> None:
    """Bits of the first batch change on the disks, which share it."""
    (log,) = (log for log in running.plan.disks[1] if log.segments)
    first = log.segments[0].batches[0]
    assert not isinstance(first.buffer, bytes)
    first.buffer[HEADER_BYTES + 40 :] = b"\xff" * (first.size_bytes - HEADER_BYTES - 40)


def test_unreadable__is_a_line_of_the_verdict(cluster: Cluster) -> None:
    verdict = cluster.verdict()
    assert verdict.outcome == UNKNOWN
    assert verdict.reason == "3 batches of records cannot be read"
    assert [(x.partition, x.first, x.last) for x in verdict.unreadable] == [
        (("orders", 0), 0, 11),
        (("orders", 0), 12, 23),
        (("orders", 0), 24, 35),
    ]
    lines = [line for line in verdict.lines() if line.startswith("cannot be read: ")]
    assert lines[1].startswith("cannot be read: orders-0, offsets 12 to 23: ")
    assert lines[1].endswith("; consumers get INVALID_RECORD")
    assert '"unreadable":[' in verdict.to_json()


def test_unreadable__runs_are_saved_and_explained(cluster: Cluster, tmp_path: Path) -> None:
    record, problems = read_run(cluster.save(tmp_path))
    assert not problems
    assert [found["first"] for found in record.verdict["unreadable"]] == [0, 12, 24]
    assert list(explain(record))


def test_unreadable__a_broker_answers_who_asks_for_times(cluster: Cluster) -> None:
    topic = m.ListOffsetsRequest.ListOffsetsTopic
    partition = m.ListOffsetsRequest.ListOffsetsPartition
    with Wire(cluster.plan.addresses[1]) as wire:
        for timestamp in (0, 1_000_000, -3):
            body = m.ListOffsetsRequest(-1, 0, [topic("orders", [partition(0, -1, timestamp)])])
            (found,) = wire.ask(ApiKey.LIST_OFFSETS, 7, body).topics[0].partitions
            assert found.error_code == ErrorCode.INVALID_RECORD
