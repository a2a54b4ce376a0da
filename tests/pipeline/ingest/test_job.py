from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

import kafka
import msgspec

from kcluster import rule
from kcluster.cli.pipeline.ingest import command
from kcluster.pipeline.ingest.job import Counts, ingest
from kcluster.pipeline.ingest.options import BadInput, IngestDataLoss, IngestError, IngestOptions
from kcluster.pipeline.ingest.table import read_losses, read_records
from tests.foreign_clients.conftest import _sockets_left_open  # noqa: F401  # a fixture
from tests.foreign_clients.real_clients import python_admin, python_producer, python_read, until
from tests.rig.patience import PATIENCE_S
from tests.rig.spark_session import JARS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kcluster.testing.handles import TestedCluster

pytestmark = [
    pytest.mark.timeout_s(250),
    pytest.mark.clients,
    pytest.mark.kafka_cluster(brokers=3),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(params=["kcluster", pytest.param("kafka", marks=pytest.mark.slow)])
def source(request: pytest.FixtureRequest, spark: SparkSession) -> str:
    name: str = request.param
    if name == "kafka" and not JARS.is_dir():
        pytest.skip("no jars of Spark's Kafka connector: make jars")
    return name


def options(cluster: TestedCluster, topic: str, out: Path, source: str, **more: Any) -> Any:
    chosen = {"until": "once", "every_ms": 50, "idle_ms": 1_000, **more}
    return IngestOptions(cluster.bootstrap, (topic,), str(out), source=source, **chosen)


def send(producer: Any, topic: str, first: int, count: int, partitions: int = 2) -> None:
    """Record n has value v<n> and is in partition n % partitions."""
    for number in range(first, first + count):
        producer.send(topic, f"v{number}".encode(), partition=number % partitions)
    producer.flush(PATIENCE_S)


def offsets(spark: SparkSession, out: Path, partition: int = 0) -> list[int]:
    rows = read_records(spark, str(out)).where(f"partition = {partition}").collect()
    return sorted(row["offset"] for row in rows)


def found(spark: SparkSession, out: Path) -> list[tuple[int, int, int | None]]:
    rows = read_losses(spark, str(out)).collect()
    return sorted(((r["partition"], r["first"], r["last"]) for r in rows), key=str)


def held(spark: SparkSession, out: Path) -> list[tuple[int, int, bytes]]:
    rows = read_records(spark, str(out)).collect()
    return sorted((r["partition"], r["offset"], bytes(r["value"])) for r in rows)


def test_ingest__every_record_once_through_a_leaders_death_and_a_restart_of_all(
    spark: SparkSession, cluster: TestedCluster, source: str, tmp_path: Path
) -> None:
    topic, out = cluster.new_topic(partitions=2), tmp_path / "t"
    with python_producer(cluster.bootstrap, acks="all", retries=1_000) as producer:
        send(producer, topic, 0, 100)

        def act() -> None:
            cluster.kill(cluster.leader(topic, 0))
            send(producer, topic, 100, 100)
            cluster.repair()
            send(producer, topic, 200, 100)
            for broker in cluster.broker_ids:
                cluster.kill(broker, wait=False)
            cluster.repair()
            send(producer, topic, 300, 100)

        acting = threading.Thread(target=act)
        reporters: set[int] = set()

        def on_counts(counts: Counts) -> None:
            reporters.add(threading.get_ident())
            if counts.rows >= 100 and acting.ident is None:
                acting.start()

        wanted = options(cluster, topic, out, source, until="stopped")
        done = ingest(spark, wanted, on_counts, is_enough=lambda counts: counts.rows >= 400)
        acting.join()
        send(producer, topic, 400, 100)
    more = ingest(spark, options(cluster, topic, out, source))
    expected = [(r.partition, r.offset, r.value) for r in python_read(cluster.bootstrap, topic)]
    assert held(spark, out) == sorted(expected)
    assert (done.rows, more.rows, len(expected)) == (400, 100, 500)
    assert reporters == {threading.get_ident()}, "no callback may run twice at once"
    assert done.losses + more.losses == ()


@pytest.mark.slow
def test_ingest__the_connectors_offset_lookup_survives_its_leaders_death(
    spark: SparkSession, cluster: TestedCluster, tmp_path: Path
) -> None:
    """Left to itself, Kafka's admin client asks the dead leader for 60 s."""
    if not JARS.is_dir():
        pytest.skip("no jars of Spark's Kafka connector: make jars")
    topic = cluster.new_topic()
    with python_producer(cluster.bootstrap, acks="all") as producer:
        send(producer, topic, 0, 10, 1)
    dies = cluster.leader(topic, 0)
    cluster.add_rule(rule(api="ListOffsets", client="adminclient-*", nth=1, drop="request"))
    since = cluster.events()[-1].sequence

    def kill() -> None:
        cluster.wait_for(event="rule_hit", since=since, timeout_s=60)
        cluster.kill(dies)

    killing = threading.Thread(target=kill)
    killing.start()
    done = ingest(spark, options(cluster, topic, tmp_path / "t", "kafka"))
    killing.join()
    assert done.rows == 10
    assert done.seconds < 50


KILLED = """
import sys, threading
from kcluster.pipeline.ingest.job import ingest
from kcluster.pipeline.ingest.jars import jar_settings
from kcluster.pipeline.ingest.options import IngestOptions
from kcluster.pipeline.session import SMALL, open_session

bootstrap, topic, out, jars, *sources = sys.argv[1:]
settings = jar_settings(jars) if "kafka" in sources else {}
spark = open_session("local[2]", {**SMALL, "spark.driver.memory": "512m", **settings})
for source in sources:
    chosen = IngestOptions(
        bootstrap, (topic,), f"{out}/{source}", source=source, max_offsets=20, every_ms=10
    )
    threading.Thread(target=ingest, args=(spark, chosen)).start()
"""


def test_ingest__every_record_once_when_the_job_was_killed_and_restarted(
    spark: SparkSession, cluster: TestedCluster, tmp_path: Path
) -> None:
    sources = ["kcluster", *(["kafka"] if JARS.is_dir() else [])]
    topic = cluster.new_topic(partitions=2)
    with python_producer(cluster.bootstrap, acks="all") as producer:
        send(producer, topic, 0, 600)
    command = [sys.executable, "-c", KILLED, cluster.bootstrap, topic, str(tmp_path), str(JARS)]
    job = subprocess.Popen([*command, *sources], start_new_session=True)
    try:
        tables = [tmp_path / source / "records/run=ingest" for source in sources]
        patience = threading.Event()
        until(
            lambda: (
                all(len(list(table.glob("batch=*"))) >= 3 for table in tables)
                or patience.wait(0.02)
                or job.poll()
            ),
            "three batches of each",
            200,
        )
    finally:
        os.killpg(job.pid, signal.SIGKILL)  # with the JVM that it started
        job.wait()
    for source in sources:
        out = tmp_path / source
        before = read_records(spark, str(out)).count()
        assert 60 <= before < 600
        done = ingest(spark, options(cluster, topic, out, source))
        assert done.rows == 600 - before
        assert held(spark, out) == [
            (p, at, f"v{at * 2 + p}".encode()) for p in (0, 1) for at in range(300)
        ]


def test_ingest__records_deleted_meanwhile_are_reported_by_range(
    spark: SparkSession, cluster: TestedCluster, source: str, tmp_path: Path
) -> None:
    topic, out = cluster.new_topic(partitions=2), tmp_path / "t"
    with python_producer(cluster.bootstrap, acks="all") as producer:
        send(producer, topic, 0, 100)
        assert ingest(spark, options(cluster, topic, out, source)).rows == 100
        send(producer, topic, 100, 100)
    with python_admin(cluster.bootstrap) as admin:
        admin.delete_records({kafka.TopicPartition(topic, 0): 70})
    with pytest.raises(
        IngestDataLoss, match=f"{topic}-0: offsets 50..69 are lost: the log begins at 70"
    ):
        ingest(spark, options(cluster, topic, out, source))
    assert len(offsets(spark, out)) == 50
    reported: list[str] = []
    wanted = options(cluster, topic, out, source, fail_on_data_loss=False)
    done = ingest(spark, wanted, on_loss=lambda lost: reported.append(str(lost)))
    assert [(x.first, x.last) for x in done.losses] == [(50, 69)]
    assert reported == [str(done.losses[0])]
    assert found(spark, out) == [(0, 50, 69)]
    assert offsets(spark, out) == [*range(50), *range(70, 100)]
    assert offsets(spark, out, 1) == [*range(100)]
    assert ingest(spark, options(cluster, topic, out, source)).rows == 0


def test_ingest__a_recreated_topic_is_reported_by_range(
    spark: SparkSession, cluster: TestedCluster, source: str, tmp_path: Path
) -> None:
    topic, out = cluster.new_topic(), tmp_path / "t"
    with python_producer(cluster.bootstrap, acks="all") as producer:
        send(producer, topic, 0, 50, 1)
        wanted = options(cluster, topic, out, source, fail_on_data_loss=False)
        assert ingest(spark, wanted).rows == 50
        with python_admin(cluster.bootstrap) as admin:
            admin.delete_topics([topic])
            gone = ingest(spark, wanted)
            assert [(x.first, x.last) for x in gone.losses] == [(50, None)]
            assert ingest(spark, wanted).losses == ()  # reported once
            cluster.new_topic(topic, partitions=1)
            send(producer, topic, 50, 20, 1)
            ingest(spark, wanted)
            send(producer, topic, 70, 20, 1)
        ingest(spark, wanted)
    # The new topic's first records: the connector continues at its position in the old one.
    passed_over = [(0, 0, 19)] if source == "kafka" else []
    assert found(spark, out) == [*passed_over, (0, 50, None)]
    values = [bytes(row["value"]) for row in read_records(spark, str(out)).collect()]
    first = 70 if source == "kafka" else 50
    assert sorted(values) == sorted(f"v{n}".encode() for n in (*range(50), *range(first, 90)))


def test_ingest__a_log_truncated_by_an_unclean_election_is_reported_by_range(
    spark: SparkSession, cluster: TestedCluster, source: str, tmp_path: Path
) -> None:
    name, out = f"cut-{source}", tmp_path / "t"
    config: dict[str, Any] = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}
    cluster.new_topic(name, replication_factor=2, **config)
    cluster.wait_for(isr=(name, 0, 2))
    first = cluster.leader(name, 0)
    (second,) = set(cluster.call(lambda: cluster.verbs.partition(name, 0).replicas)) - {first}
    wanted = options(cluster, name, out, source, fail_on_data_loss=False)
    with python_producer(cluster.bootstrap, acks="all") as producer:
        send(producer, name, 0, 50, 1)
        cluster.kill(second)
        send(producer, name, 50, 50, 1)
        assert ingest(spark, wanted).rows == 100
        cluster.kill(first, wait=False)
        cluster.start(second)
        cluster.wait_for(leader=(name, 0, second))
    # Another producer: the brokers have lost the state of this one.
    with python_producer(cluster.bootstrap, acks="all") as producer:
        send(producer, name, 100, 80, 1)
    # Offsets 50 to 99 have other records now; the log has grown past the position of the job.
    done = ingest(spark, wanted)
    assert [(x.first, x.last) for x in done.losses] == [(50, 99)]
    assert "the log was truncated to 50, where epoch" in done.losses[0].why
    values = {int(bytes(row["value"])[1:]) for row in read_records(spark, str(out)).collect()}
    # DIFFERS: the connector continues at 100; ours reads the new records from 50 on.
    assert values == {*range(100), *range(150 if source == "kafka" else 100, 180)}
    assert done.rows == (30 if source == "kafka" else 80)


@pytest.mark.slow
def test_ingest__both_sources_give_the_same_rows(
    spark: SparkSession, cluster: TestedCluster, tmp_path: Path
) -> None:
    if not JARS.is_dir():
        pytest.skip("no jars of Spark's Kafka connector: make jars")
    topic = cluster.new_topic(
        "2026-11-21", partitions=3, retention_ms=-1
    )  # not a date, although it looks like one
    with python_producer(cluster.bootstrap, acks="all", compression_type="gzip") as producer:
        for number in range(60):
            producer.send(
                topic,
                None if number % 5 == 0 else b"\x00v%d" % number,
                key=None if number % 5 == 1 else b"k%d" % (number % 4),
                partition=number % 3,
                headers=[("trace", b"%d" % number), ("trace", b"")] if number % 2 else [],
                timestamp_ms=1_700_000_000_123 + number * 3_600_000,
            )
        producer.flush(PATIENCE_S)
    tables = {}
    for source in ("kcluster", "kafka"):
        out = tmp_path / source
        assert ingest(spark, options(cluster, topic, out, source, max_offsets=25)).batches > 1
        tables[source] = read_records(spark, str(out)).drop("batch")
    assert tables["kcluster"].schema == tables["kafka"].schema
    rows = {name: sorted(map(repr, table.collect())) for name, table in tables.items()}
    assert rows["kcluster"] == rows["kafka"]
    assert len(rows["kafka"]) == 60
    days = {row["date"].isoformat() for row in tables["kafka"].collect()}
    assert days == {"2023-11-14", "2023-11-15", "2023-11-16", "2023-11-17"}
    import pyarrow.parquet as pq

    # A reader of the files alone sees the same rows: there are no other files.
    files = sorted((tmp_path / "kafka/records").rglob("*.parquet"))
    assert sum(pq.ParquetFile(file).metadata.num_rows for file in files) == 60
    assert {file.parents[1].name for file in files} == {"topic=2026-11-21"}


def test_ingest__unusable_input_is_reported_in_one_line(
    spark: SparkSession, cluster: TestedCluster, tmp_path: Path
) -> None:
    topic, out = cluster.new_topic("payments-2"), tmp_path / "t"
    good = options(cluster, topic, out, "kcluster")
    assert ingest(spark, good).rows == 0
    for wrong, text in (
        ({"topics": ("payment-2",)}, "topic payment-2: no such topic; did you mean payments-2?"),
        ({"topics": ("a b",)}, "topic 'a b': a name has letters"),
        ({"source": "kcluster2"}, "source 'kcluster2': no such source; did you mean kcluster?"),
        ({"starting": "first"}, "starting 'first': no such starting; there are earliest, latest"),
        ({"bootstrap": "localhost"}, "bootstrap 'localhost': it must be host:port"),
        ({"isolation": "read_comitted"}, "no such isolation; did you mean read_committed?"),
        (
            {"isolation": "read_committed", "kafka": {"kafka.isolation.level": "read_uncommitted"}},
            "isolation 'read_committed': kafka.isolation.level is 'read_uncommitted'",
        ),
        ({"max_offsets": 0}, "max-offsets-per-trigger 0: it must be at least 1"),
        ({"kafka": {"kafka.isolation": "x"}}, "option kafka.isolation: "),
        ({"format": "delta"}, "a parquet table, not delta"),
        ({"checkpoint": str(tmp_path / "c")}, "run ingest used another checkpoint"),
    ):
        chosen = msgspec.structs.replace(good, **wrong)
        if "topics" in wrong or "kafka" in wrong:
            chosen = msgspec.structs.replace(chosen, run="other")
        with pytest.raises(IngestError, match=re.escape(text)):
            ingest(spark, chosen)
    with pytest.raises(BadInput, match="format delta: this Spark does not have it; add --packages"):
        ingest(spark, msgspec.structs.replace(good, format="delta", out=str(tmp_path / "lake")))
    (out / "ingest.json").write_text('{"version": 2, "format": "parquet"}')
    with pytest.raises(BadInput, match="a table of version 2; this kcluster writes version 1"):
        ingest(spark, good)
    (out / "ingest.json").unlink()
    with pytest.raises(BadInput, match="so it is not a table"):
        ingest(spark, good)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--topics", "order"], "topic order: no such topic; did you mean orders?"),
        (["--topics", "orders", "--for", "soon"], "--for soon: not a time like 60s"),
        (["--topics", "orders", "--source", "kafka", "--jars", "/nowhere"], "no such directory"),
        (["--topics", "orders", "--bootstrap", "127.0.0.1:1"], "no broker at 127.0.0.1:1: "),
        (["--topics", "orders", "--kafka", "isolation"], "--kafka isolation: write NAME=VALUE"),
    ],
)
def test_ingest__the_command_reports_mistakes_before_spark_starts(
    kafka_cluster_module: TestedCluster,
    words: list[str],
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "orders" not in kafka_cluster_module.call(
        lambda: kafka_cluster_module.verbs.settled.image.topics
    ):
        kafka_cluster_module.new_topic("orders")
    required = ["--bootstrap", kafka_cluster_module.bootstrap, "--out", str(tmp_path / "t")]
    with pytest.raises(SystemExit) as left:
        command.main([*required, *words], standalone_mode=False)
    assert left.value.code == 2
    reported = capsys.readouterr().err
    assert text in reported
    assert reported.count("\n") == 1
    assert not (tmp_path / "t").exists()
