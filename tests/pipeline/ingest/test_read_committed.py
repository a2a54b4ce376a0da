"""With read_committed the table holds the records of committed transactions once, and no others."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("confluent_kafka")

from kcluster.metadata.placement import coordinator_partition
from kcluster.pipeline.ingest.job import Counts, ingest
from kcluster.pipeline.ingest.options import IngestOptions
from kcluster.pipeline.ingest.table import read_records
from kcluster.protocol.names import TRANSACTION_STATE_TOPIC
from tests.foreign_clients.conftest import _sockets_left_open  # noqa: F401  # a fixture
from tests.foreign_clients.real_clients import LIMIT_S, confluent_producer
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

EACH = 10
"""The number of records in a transaction."""


def coordinator_of(cluster: TestedCluster, transactional_id: str) -> int:
    """The broker that decides the transactions of this id."""
    leaders = {
        one.partition: one.leader
        for one in cluster.status().partitions
        if one.topic == TRANSACTION_STATE_TOPIC
    }
    return leaders[coordinator_partition(transactional_id, len(leaders))] or -1


def transact(producer: Any, topic: str, number: int, commits: bool) -> None:
    """One transaction, in both partitions: `t<number>-<n>`."""
    producer.begin_transaction()
    for n in range(EACH):
        producer.produce(topic, f"t{number}-{n}".encode(), partition=n % 2)
    producer.flush(LIMIT_S)
    if commits:
        producer.commit_transaction(LIMIT_S)
    else:
        producer.abort_transaction(LIMIT_S)


@pytest.mark.parametrize("source", ["kcluster", pytest.param("kafka", marks=pytest.mark.slow)])
def test_ingest__committed_records_once_through_the_coordinators_death(
    spark: SparkSession, cluster: TestedCluster, source: str, tmp_path: Path
) -> None:
    if source == "kafka" and not JARS.is_dir():
        pytest.skip("no jars of Spark's Kafka connector: make jars")
    topic, out = cluster.new_topic(partitions=2), str(tmp_path / "t")
    committed = [number for number in range(12) if number % 3 != 1]
    wanted = {f"t{number}-{n}".encode() for number in committed for n in range(EACH)}
    name = f"shop-{source}"
    settings = {
        "transactional.id": name,
        # The last transaction is open until Spark has read all others, however busy the machine is.
        "transaction.timeout.ms": 600_000,
    }
    with confluent_producer(cluster.bootstrap, **settings) as producer:
        producer.init_transactions(LIMIT_S)
        for number in range(4):
            transact(producer, topic, number, commits=number in committed)

        def act() -> None:
            for number in range(4, 12):
                if number in (4, 6):
                    # The first of these is to be aborted, the second committed.
                    cluster.kill(coordinator_of(cluster, name), wait=False)
                transact(producer, topic, number, commits=number in committed)
                if number == 5:
                    cluster.repair()
            producer.begin_transaction()
            producer.produce(topic, b"open", partition=0)
            producer.flush(LIMIT_S)

        acting = threading.Thread(target=act)

        def on_counts(counts: Counts) -> None:
            if counts.rows and acting.ident is None:
                acting.start()

        options = IngestOptions(
            cluster.bootstrap, (topic,), out, source=source, isolation="read_committed", every_ms=50
        )
        done = ingest(
            spark,
            options,
            on_counts,
            is_enough=lambda counts: counts.rows >= len(wanted) and not acting.is_alive(),
        )
        acting.join()
        values = [bytes(row["value"]) for row in read_records(spark, out).collect()]
        assert sorted(values) == sorted(wanted)
        assert (done.rows, done.losses) == (len(wanted), ())
        producer.abort_transaction(LIMIT_S)
