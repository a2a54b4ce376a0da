"""The one Spark session of the tests: small, on two cores; and the cluster of a module.

Owns: its settings, skipping without Java, repairing the cluster after each test.  Never: stops the
session (others may use the same one).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcluster.pipeline.ingest.jars import jar_settings
from kcluster.pipeline.session import SMALL, has_java, open_session
from kcluster.pipeline.source.loading import close_clients

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kcluster.testing.handles import TestedCluster

SETTINGS = {
    **SMALL,
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # Spark's default one starts several processes to rename a file.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming"
    ".checkpointing.FileSystemBasedCheckpointFileManager",
}
JARS = Path(__file__).parents[2] / "build/connector-jars"
"""Of the official Kafka connector: `make jars`."""


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    pytest.importorskip("pyspark", reason="pip install 'kcluster-sim[spark]'")
    if not has_java():
        pytest.skip("Spark needs Java 17 or newer")
    jars = jar_settings(str(JARS)) if JARS.is_dir() else {}
    return open_session("local[2]", {**SETTINGS, **jars})


@pytest.fixture
def cluster(kafka_cluster_module: TestedCluster) -> Iterator[TestedCluster]:
    """The cluster of the test's module; it is repaired after each test."""
    yield kafka_cluster_module
    close_clients()  # of tests that do here what a worker of Spark does
    kafka_cluster_module.repair()
