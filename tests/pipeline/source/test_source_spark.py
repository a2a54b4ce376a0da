"""format("kcluster") in Spark, against a real cluster and a real client."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("kafka")

from kcluster.clients.producer.partitioning import partition_of_key
from kcluster.pipeline.session import why
from kcluster.pipeline.source.columns import arrow_schema, spark_schema
from kcluster.pipeline.source.errors import OptionError, SourceError, Unreachable
from kcluster.pipeline.source.options import write_settings
from kcluster.pipeline.source.register import register, source_class
from kcluster.pipeline.source.writer import check_columns, write
from tests.foreign_clients.conftest import _sockets_left_open  # noqa: F401  # a fixture
from tests.foreign_clients.real_clients import python_producer, python_read
from tests.rig.patience import PATIENCE_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kcluster.testing.handles import TestedCluster

pytestmark = [
    pytest.mark.skipif(find_spec("pyarrow") is None, reason="the extra spark is not installed"),
    pytest.mark.clients,
    pytest.mark.kafka_cluster(brokers=3),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def send(bootstrap: str, topic: str, first: int, count: int, **more: Any) -> None:
    """Record n is in partition n % 2; some have no key, no value, headers."""
    with python_producer(bootstrap, acks="all", retries=1_000, **more) as producer:
        for number in range(first, first + count):
            producer.send(
                topic,
                partition=number % 2,
                key=None if number % 3 == 0 else b"k%d" % number,
                value=None if number % 6 == 1 else b"v%d" % number,
                headers=[("h", b"%d" % number), ("empty", b"")] if number % 5 == 0 else [],
            )
        producer.flush(PATIENCE_S)


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """Rows like those of python_read, in the order of partition and offset."""
    return sorted(
        (
            row["partition"],
            row["offset"],
            _plain(row["key"]),
            _plain(row["value"]),
            tuple((h["key"], bytes(h["value"])) for h in row["headers"] or ()),
        )
        for row in frame.collect()
    )


def read_of(bootstrap: str, topic: str) -> list[tuple[Any, ...]]:
    read = python_read(bootstrap, topic)
    return sorted((r.partition, r.offset, r.key, r.value, tuple(r.headers or ())) for r in read)


def contents(rows: list[tuple[Any, ...]]) -> list[str]:
    """Keys, values and headers, without their positions."""
    return sorted(str(row[2:]) for row in rows)


def _plain(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


# -------------------------------------------------------------------------------------- Spark


def test_source__in_spark_reads_written_records_and_writes_readable_ones(
    spark: SparkSession, cluster: TestedCluster
) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    for with_headers in (False, True):
        schema = to_arrow_schema(spark_schema(with_headers), timezone="UTC")
        assert schema.equals(arrow_schema(with_headers))
    register(spark)
    topic, copy = cluster.new_topic(partitions=2), cluster.new_topic(partitions=2)
    for number, codec in enumerate((None, "gzip", "snappy", "lz4", "zstd")):
        send(cluster.bootstrap, topic, 40 * number, 40, compression_type=codec)
    reader = spark.read.format("kcluster").option("kafka.bootstrap.servers", cluster.bootstrap)
    frame = reader.option("subscribe", topic).option("includeHeaders", "true").load()
    expected = read_of(cluster.bootstrap, topic)
    assert rows_of(frame) == expected
    assert len(expected) == 200
    writing = frame.select("key", "value", "partition", "headers").write.format("kcluster")
    writing = writing.option("kafka.bootstrap.servers", cluster.bootstrap).option("topic", copy)
    writing = writing.option("includeHeaders", "true").option("kafka.compression.type", "zstd")
    writing.mode("append").save()
    copied = read_of(cluster.bootstrap, copy)
    assert contents(copied) == contents(expected)
    assert [row[0] for row in copied] == [row[0] for row in expected]
    with pytest.raises(Exception, match="startingOffset") as raised:
        reader.option("startingOffset", "latest").load().collect()
    line = "option startingoffset: no such option; did you mean startingOffsets?"
    assert why(raised.value).endswith(line)


def test_source__a_stream_survives_a_leaders_death_and_its_own_restart_exactly_once(
    spark: SparkSession, cluster: TestedCluster, tmp_path: Path
) -> None:
    register(spark)
    topic, copy = cluster.new_topic(partitions=2), cluster.new_topic(partitions=2)
    reader = spark.readStream.format("kcluster").option(
        "kafka.bootstrap.servers", cluster.bootstrap
    )
    frame = reader.options(
        subscribe=topic, startingOffsets="earliest", includeHeaders="true", maxOffsetsPerTrigger=60
    ).load()

    def start(**trigger: Any) -> Any:
        table = frame.writeStream.format("parquet").trigger(**trigger)
        return table.option("checkpointLocation", str(tmp_path / "c")).start(str(tmp_path / "t"))

    send(cluster.bootstrap, topic, 0, 100)
    query = start(processingTime="100 milliseconds")

    def act() -> None:
        cluster.kill(cluster.leader(topic, 0))
        send(cluster.bootstrap, topic, 100, 50)

    acting = threading.Thread(target=act)
    acting.start()
    query.processAllAvailable()
    acting.join()
    query.stop()
    cluster.repair()
    send(cluster.bootstrap, topic, 150, 50)
    last = start(availableNow=True)
    last.awaitTermination()
    expected = read_of(cluster.bootstrap, topic)
    assert rows_of(spark.read.parquet(str(tmp_path / "t"))) == expected
    assert len(expected) == 200
    sizes = [progress["numInputRows"] for progress in (*query.recentProgress, *last.recentProgress)]
    assert max(sizes) <= 60
    sink = frame.writeStream.format("kcluster").trigger(availableNow=True)
    sink = sink.options(topic=copy, includeHeaders="true")
    sink = sink.option("kafka.bootstrap.servers", cluster.bootstrap)
    sink.option("checkpointLocation", str(tmp_path / "s")).start().awaitTermination()
    assert contents(read_of(cluster.bootstrap, copy)) == contents(expected)


def test_source__reaches_workers_that_have_not_imported_the_package(tmp_path: Path) -> None:
    from pyspark import cloudpickle

    source = source_class(needs=("kcluster.pipeline.source.loading",))
    pickled = cloudpickle.dumps(source)  # type: ignore[no-untyped-call]  # no types
    (tmp_path / "source").write_bytes(pickled)
    opens = (
        "import pickle, sys; sys.modules['kcluster'] = None;"
        f"source = pickle.load(open({str(tmp_path / 'source')!r}, 'rb'));"
        "print(source.name()); source.schema(None)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", opens], capture_output=True, text=True, timeout=60
    )
    assert ended.stdout == "kcluster\n"
    line = ended.stderr.splitlines()[-1]
    assert f"WorkerLacksModule: a worker's Python ({sys.executable}, " in line


# ----------------------------------------------------------------------------- writer, no Spark


def batch(**columns: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(columns)


def settings_of(cluster: TestedCluster, **more: str) -> Any:
    return write_settings({"kafka.bootstrap.servers": cluster.bootstrap, **more})


def test_writer__rows_go_to_the_partitions_of_javas_producer(cluster: TestedCluster) -> None:
    import pyarrow as pa

    topic = cluster.new_topic(partitions=3)
    keys = [f"k{n}" for n in range(50)]
    settings = settings_of(cluster, **{"kafka.batch.size": "300"})
    assert write(settings, [batch(key=keys, value=keys, topic=[topic] * 50)]) == 50
    read = python_read(cluster.bootstrap, topic)
    assert {r.key.decode(): r.partition for r in read if r.key} == {
        key: partition_of_key(key.encode(), 3) for key in keys
    }
    assert len(read) == 50
    other = cluster.new_topic(partitions=3)
    rows = batch(value=[b"v"] * 300, partition=pa.array([None, 2, 1] * 100, pa.int32()))
    write(settings_of(cluster, topic=other, **{"kafka.batch.size": "300"}), [rows])
    counts = [
        [r.partition for r in python_read(cluster.bootstrap, other)].count(n) for n in range(3)
    ]
    assert sum(counts) == 300
    assert min(counts[1:]) >= 100
    assert counts[0] > 0
    with pytest.raises(SourceError, match=f"{other} has 3 partitions; there is no partition 3"):
        write(settings, [batch(value=["v"], topic=[other], partition=[3])])
    with pytest.raises(SourceError, match="a row has no topic"):
        write(settings, [batch(value=["v"], topic=pa.array([None], pa.string()))])


def test_writer__a_leaders_death_neither_loses_nor_repeats_records(cluster: TestedCluster) -> None:
    topic = cluster.new_topic(partitions=1)

    def rows() -> Iterator[Any]:
        for number in range(10):
            if number == 4:
                cluster.kill(cluster.leader(topic, 0), wait=False)
            yield batch(value=[f"{number}-{n}" for n in range(100)])

    settings = settings_of(cluster, topic=topic, **{"kafka.batch.size": "200"})
    assert write(settings, rows()) == 1_000
    expected = [f"{number}-{n}".encode() for number in range(10) for n in range(100)]
    assert [r.value for r in python_read(cluster.bootstrap, topic)] == expected


def test_writer__batches_too_large_for_a_topic_are_split(cluster: TestedCluster) -> None:
    topic = cluster.new_topic(partitions=1, max_message_bytes=2_000)
    values = [bytes([n]) * 90 for n in range(100)]
    write(settings_of(cluster, topic=topic), [batch(value=values)])
    assert [r.value for r in python_read(cluster.bootstrap, topic)] == values
    with pytest.raises(SourceError, match=f"{topic}-0: MESSAGE_TOO_LARGE"):
        write(settings_of(cluster, topic=topic), [batch(value=[bytes(3_000)])])
    small = settings_of(cluster, topic=topic, **{"kafka.max.request.size": "100"})
    with pytest.raises(SourceError, match=r"is more than kafka.max.request.size \(100\)"):
        write(small, [batch(value=[bytes(3_000)])])


def test_writer__rows_that_cannot_be_written_are_reported_in_one_line(
    cluster: TestedCluster,
) -> None:
    settings = settings_of(cluster)
    for types, reason in (
        ({"topic": "string"}, "column value is needed"),
        ({"value": "string"}, "option topic or a column topic is needed"),
        ({"value": "int", "topic": "string"}, "column value must be string or binary, not int"),
        (
            {"value": "binary", "topic": "string", "partition": "bigint"},
            "partition must be int, not",
        ),
    ):
        with pytest.raises(OptionError, match=reason):
            check_columns(types, settings)
    brief = settings_of(cluster, **{"kafka.delivery.timeout.ms": "300"})
    topic = cluster.new_topic(partitions=1, min_insync_replicas=3)
    write(brief, [batch(value=["v"], topic=[topic])])
    cluster.kill(next(b for b in cluster.broker_ids if b != cluster.leader(topic, 0)))
    with pytest.raises(Unreachable, match=f"{topic}-0: NOT_ENOUGH_REPLICAS, for 300 ms"):
        write(brief, [batch(value=["v"], topic=[topic])])
