"""Spark as the tests use it.

Owns: the settings of the session, where the jars of the official connector are, skipping without
Java.  Never: decides which tests share a session (tests/conftest.py does).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcluster.pipeline.ingest.jars import jar_settings
from kcluster.pipeline.session import SMALL, has_java, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def session_of_tests() -> SparkSession:
    pytest.importorskip("pyspark", reason="pip install 'kcluster-sim[spark]'")
    if not has_java():
        pytest.skip("Spark needs Java 17 or newer")
    jars = jar_settings(str(JARS)) if JARS.is_dir() else {}
    return open_session("local[2]", {**SETTINGS, **jars})
