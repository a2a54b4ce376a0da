"""The one Spark session of the tests: two cores, small.

Owns: its settings, skipping without Java.  Never: stops it (others may use the same one).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cluster.pipeline.session import has_java, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    pytest.importorskip("pyspark", reason="pip install 'kcluster[spark]'")
    if not has_java():
        pytest.skip("Spark needs Java 17 or newer")
    return open_session("local[2]", SETTINGS)
