"""The source's own client and plans against a real cluster over TCP, without Spark."""

from __future__ import annotations

import socket
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("kafka")

import kafka

from kcluster.pipeline.source.client import BlockingConnection
from kcluster.pipeline.source.errors import DataLoss, SourceError, Unreachable
from kcluster.pipeline.source.loading import load
from kcluster.pipeline.source.losses import Lost
from kcluster.pipeline.source.options import ReadSettings, read_settings
from kcluster.pipeline.source.planning import Range
from kcluster.pipeline.source.stream import Stream, batch_ranges
from kcluster.protocol.errors import ProtocolError
from kcluster.testing.handles import TestedCluster
from tests.foreign_clients.conftest import _sockets_left_open  # noqa: F401  # a fixture
from tests.foreign_clients.real_clients import python_admin, python_producer
from tests.rig.patience import PATIENCE_S

pytestmark = [
    pytest.mark.skipif(find_spec("pyarrow") is None, reason="the extra spark is not installed"),
    pytest.mark.clients,
    pytest.mark.kafka_cluster(brokers=3),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def settings_of(
    cluster: TestedCluster, topic: str, stream: bool = True, **more: Any
) -> ReadSettings:
    options = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": topic, **more}
    if stream:
        options.setdefault("startingOffsets", "earliest")
    return read_settings(options, stream)


def send(cluster: TestedCluster, topic: str, first: int, count: int, **more: Any) -> None:
    """Record n has value v<n>, in partition 0."""
    with python_producer(
        cluster.bootstrap, **{"acks": "all", "retries": 1_000, **more}
    ) as producer:
        for number in range(first, first + count):
            producer.send(topic, f"v{number}".encode(), partition=0)
        producer.flush(PATIENCE_S)


def values(settings: ReadSettings, ranges: list[Range]) -> list[tuple[int, str]]:
    """(offset, value) of everything that the tasks read."""
    return [
        (row["offset"], row["value"].decode())
        for one in ranges
        for batch in load(settings, one)
        for row in batch.to_pylist()
    ]


def numbered(first: int, end: int) -> list[tuple[int, str]]:
    return [(number, f"v{number}") for number in range(first, end)]


def test_read__the_bounds_of_a_batch(cluster: TestedCluster) -> None:
    topic = cluster.new_topic(partitions=1)
    with python_producer(cluster.bootstrap) as producer:
        sent = [producer.send(topic, f"v{n}".encode(), partition=0) for n in range(50)]
        times = [one.get(PATIENCE_S).timestamp for one in sent]

    def read(**options: str) -> list[tuple[int, str]]:
        settings = settings_of(cluster, topic, False, **options)
        return values(settings, batch_ranges(settings))

    assert read() == numbered(0, 50)
    bounds = {"startingOffsets": f'{{"{topic}": {{"0": 5}}}}'}
    assert read(**bounds, endingOffsets=f'{{"{topic}": {{"0": 9}}}}') == numbered(5, 9)
    assert read(minPartitions="7", **{"kafka.max.partition.fetch.bytes": "200"}) == numbered(0, 50)
    first = times.index(times[30])
    assert read(startingTimestamp=str(times[30])) == numbered(first, 50)
    by_topic = f'{{"{topic}": {{"0": {times[30]}}}}}'
    assert read(endingOffsetsByTimestamp=by_topic) == numbered(0, first)
    with pytest.raises(SourceError, match=f"{topic}-0: no record is at or after timestamp"):
        read(startingTimestamp=str(times[-1] + 60_000))
    with pytest.raises(DataLoss, match=f"{topic}-0: offsets 50..59 are lost: the log ends at 50"):
        read(endingOffsets=f'{{"{topic}": {{"0": 60}}}}')
    with pytest.raises(SourceError, match=f"no such topic; did you mean {topic}"):
        batch_ranges(settings_of(cluster, f"{topic}x", False, **{"fetchOffset.numRetries": "0"}))


def test_read__a_task_follows_the_leader_and_waits_for_one(cluster: TestedCluster) -> None:
    topic = cluster.new_topic(partitions=1)
    send(cluster, topic, 0, 300, batch_size=200)
    settings = settings_of(cluster, topic, False, **{"kafka.max.partition.fetch.bytes": "500"})
    (planned,) = batch_ranges(settings)
    found: list[int] = []
    steps = iter(range(1 << 30))
    for batch in load(settings, planned):
        found += batch.column("offset").to_pylist()
        step = next(steps)
        if step == 1:  # the leader dies while its answer is under way
            cluster.kill(cluster.leader(topic, 0))
        elif step == 3:  # another takes over; this one is alive and answers that it does not lead
            live = [b for b in cluster.broker_ids if b != cluster.leader(topic, 0)]
            cluster.repair()
            cluster.move(topic, 0, live[0])
        elif step == 5:  # no leader for a while
            for broker in cluster.broker_ids:
                cluster.kill(broker, wait=False)
            threading.Thread(target=cluster.repair).start()
    assert found == list(range(300))
    assert next(steps) > 6


def test_read__without_any_answer_it_fails_at_the_timeout(cluster: TestedCluster) -> None:
    topic = cluster.new_topic(partitions=1)
    send(cluster, topic, 0, 5)
    settings = settings_of(
        cluster,
        topic,
        False,
        **{"kafka.default.api.timeout.ms": "300", "kafkaConsumer.pollTimeoutMs": "300"},
    )
    ranges = batch_ranges(settings)
    for broker in cluster.broker_ids:
        cluster.kill(broker, wait=False)
    with pytest.raises(Unreachable, match=r"no broker answers: .*refused, for 300 ms"):
        values(settings, ranges)
    with pytest.raises(Unreachable, match="no broker answers"):
        batch_ranges(settings)


def test_client__closes_a_connection_whose_broker_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        options = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "subscribe": "orders"}
        connected: list[bytes] = []

        def answer() -> None:
            sock, _ = server.accept()
            with sock:
                sock.settimeout(PATIENCE_S)
                sock.recv(1 << 16)
                sock.sendall(b"\xff" * 4)
                connected.append(sock.recv(1))

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        with pytest.raises(ProtocolError, match="frame of -1 bytes") as caught:
            BlockingConnection(("127.0.0.1", port), read_settings(options, True).client)
        answering.join(PATIENCE_S)
        assert connected == [b""], caught


def test_stream__triggers_end_at_their_limits(cluster: TestedCluster) -> None:
    topic = cluster.new_topic(partitions=1)
    send(cluster, topic, 0, 30)
    settings = settings_of(cluster, topic, maxOffsetsPerTrigger="20", minOffsetsPerTrigger="5")
    stream = Stream(settings)
    start = stream.initial()
    first = stream.latest(start, settings.max_offsets)
    assert (start[topic], first[topic]) == ({"0": 0}, {"0": 20})
    assert values(settings, stream.ranges(start, first)) == numbered(0, 20)
    assert stream.known() == {topic: {"0": 30}}
    stream.freeze_target()
    send(cluster, topic, 30, 3)
    second = stream.latest(first, settings.max_offsets)
    assert second[topic] == {"0": 30}
    assert stream.latest(second, settings.max_offsets) == second
    stream.close()
    again = Stream(settings)
    assert again.latest(second, settings.max_offsets) == second  # fewer than the minimum
    assert again.latest(second, None)[topic] == {"0": 33}  # no limit: everything
    again.close()


def losses_of(
    cluster: TestedCluster, topic: str, start: Any, place: Path
) -> tuple[list[Lost], list[tuple[int, str]], str]:
    """(losses from a position on, values read nevertheless, the message of a failure)."""
    settings = settings_of(cluster, topic, True, **{"fetchOffset.numRetries": "1"})
    stream = Stream(settings)
    with pytest.raises(DataLoss) as failure:
        stream.ranges(start, stream.latest(start, None))
    stream.close()
    assert "\n" not in str(failure.value)
    going_on = settings_of(
        cluster,
        topic,
        True,
        failOnDataLoss="false",
        **{"fetchOffset.numRetries": "1", "kcluster.losses": str(place)},
    )
    stream = Stream(going_on)
    end = stream.latest(start, None)
    read = values(going_on, stream.ranges(start, end))
    assert stream.ranges(end, stream.latest(end, None)) == []
    stream.close()
    files = [msgspec.json.decode(file.read_bytes(), type=Lost) for file in place.iterdir()]
    return sorted(files), read, str(failure.value)


def position_at(cluster: TestedCluster, topic: str, offset: int) -> Any:
    stream = Stream(settings_of(cluster, topic))
    found = stream.latest(stream.initial(), offset)
    stream.close()
    assert found[topic] == {"0": offset}
    return found


def test_loss__records_were_deleted(
    cluster: TestedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = cluster.new_topic(partitions=1)
    send(cluster, topic, 0, 90)
    start = position_at(cluster, topic, 23)
    with python_admin(cluster.bootstrap) as admin:
        admin.delete_records({kafka.TopicPartition(topic, 0): 40})
    lost, read, failure = losses_of(cluster, topic, start, tmp_path)
    assert [(one.topic, one.partition, one.first, one.last) for one in lost] == [(topic, 0, 23, 39)]
    assert read == numbered(40, 90)
    line = f"{topic}-0: offsets 23..39 are lost: the log begins at 40 now"
    assert failure.startswith(line)
    assert line in capsys.readouterr().err


def test_loss__while_a_task_reads(cluster: TestedCluster, tmp_path: Path) -> None:
    topic = cluster.new_topic(partitions=1)
    send(cluster, topic, 0, 300, batch_size=200)
    start = position_at(cluster, topic, 5)
    settings = settings_of(
        cluster,
        topic,
        True,
        failOnDataLoss="false",
        **{"kcluster.losses": str(tmp_path), "kafka.max.partition.fetch.bytes": "500"},
    )
    stream = Stream(settings)
    (planned,) = stream.ranges(start, stream.latest(start, None))
    stream.close()
    batches = load(settings, planned)
    found = next(batches).column("offset").to_pylist()
    with python_admin(cluster.bootstrap) as admin:
        admin.delete_records({kafka.TopicPartition(topic, 0): 200})
    found += [offset for batch in batches for offset in batch.column("offset").to_pylist()]
    (file,) = tmp_path.iterdir()
    lost = msgspec.json.decode(file.read_bytes(), type=Lost)
    assert lost.last == 199
    assert found == [*range(5, lost.first), *range(200, 300)]


@pytest.mark.parametrize("again", [0, 10, 60], ids=["deleted", "shorter", "longer"])
def test_loss__the_topic_was_deleted(cluster: TestedCluster, tmp_path: Path, again: int) -> None:
    topic = cluster.new_topic(partitions=1)
    send(cluster, topic, 0, 40)
    start = position_at(cluster, topic, 40)
    with python_admin(cluster.bootstrap) as admin:
        admin.delete_topics([topic])
    if again:
        cluster.new_topic(topic, partitions=1)
        send(cluster, topic, 0, again)
    lost, read, _ = losses_of(cluster, topic, start, tmp_path)
    assert [(one.first, one.last) for one in lost] == [(40, None)]
    assert ("created again" if again else "deleted") in lost[0].why
    assert read == numbered(0, again)


@pytest.mark.parametrize("more", [0, 60], ids=["shorter", "longer"])
def test_loss__the_log_was_truncated(cluster: TestedCluster, tmp_path: Path, more: int) -> None:
    topic = cluster.new_topic(
        partitions=1, replication_factor=2, unclean_leader_election_enable="true"
    )
    leader = cluster.leader(topic, 0)
    send(cluster, topic, 0, 30)
    replicas = next(one.replicas for one in cluster.status().partitions if one.topic == topic)
    (other,) = (one for one in replicas if one != leader)
    cluster.kill(other)
    send(cluster, topic, 30, 20)
    start = position_at(cluster, topic, 50)
    cluster.kill(leader, wait=False)
    cluster.start(other, wait=False)
    cluster.wait_for(leader=(topic, 0, other))
    if more:
        send(cluster, topic, 30, more)
    lost, read, failure = losses_of(cluster, topic, start, tmp_path)
    assert [(one.first, one.last) for one in lost] == [(30, 49)]
    assert read == numbered(30, 30 + more)
    assert f"{topic}-0: offsets 30..49 are lost: the log " in failure
