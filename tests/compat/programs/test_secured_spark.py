"""Spark's own Kafka connector by TLS with each login, reading and writing while a leader dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from kcluster.handle.cluster import Cluster
from tests.compat.programs.processes import fill
from tests.foreign_clients.secured import USERS, secured, settings
from tests.rig.spark_session import JARS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 50


@pytest.mark.clients
@pytest.mark.slow
@pytest.mark.timeout_s(180)
@pytest.mark.xdist_group("spark")
def test_connector__reads_and_writes_with_each_login(spark: SparkSession) -> None:
    if not JARS.is_dir():
        pytest.skip("no jars of Spark's Kafka connector (make jars fetches them)")
    rows = spark.createDataFrame([(str(number),) for number in range(COUNT)], "value string")
    with Cluster(secured(("orders",), {})) as cluster:
        for user in USERS:
            topic = f"{user}-orders"
            fill(cluster.bootstrap, topic, COUNT)
            login = {
                f"kafka.{name}": text for name, text in settings(cluster, "java", user).items()
            }
            rows.write.format("kafka").options(**login, topic=topic).save()
            read = spark.read.format("kafka").options(**login, subscribe=topic).load()
            assert read.count() == 2 * COUNT
            if user == USERS[0]:
                cluster.kill(1)
