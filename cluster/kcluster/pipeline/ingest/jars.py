"""The official Kafka connector: its jars, and whether a session has them.

Owns: names and versions of the jars, the session settings that load them.  Never: downloads (Spark
does).
Kafka: spark-sql-kafka-0-10, which is built with kafka-clients 3.9.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from kcluster.pipeline.ingest.options import BadInput
from kcluster.pipeline.ingest.storage import has_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED: Final = (
    "spark-sql-kafka-0-10", "spark-token-provider-kafka-0-10", "kafka-clients", "commons-pool2",
)  # fmt: skip
"""Prefixes of the names of the needed jars; pyspark has all others."""
PACKAGE: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
EXTENSIONS: Final = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
}
"""Settings of a session that a table format needs besides its package."""
_PROVIDER: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
HELP: Final = (
    "this Spark does not have the Kafka connector's jars: give their directory with --jars DIR"
    " (`make jars` downloads them to build/connector-jars), or use --source kcluster, which needs"
    " none"
)


def find_jars(directory: str) -> list[Path]:
    """The connector's jars in a directory.  BadInput names the missing ones."""
    place = Path(directory)
    if not place.is_dir():
        raise BadInput(f"{directory}: no such directory")
    jars = sorted(place.glob("*.jar"))
    for name in NEEDED:
        if not any(jar.name.startswith(name) for jar in jars):
            raise BadInput(f"{directory}: it has no {name}*.jar")
    return [jar for jar in jars if jar.name.startswith(NEEDED)]


def jar_settings(directory: str) -> dict[str, str]:
    """Settings of a session with the connector's jars of this directory."""
    return {"spark.jars": ",".join(str(jar.resolve()) for jar in find_jars(directory))}


def session_settings(
    source: str, format_: str, directory: str | None, packages: str | None
) -> dict[str, str]:
    """Settings of a session for an ingest: with the connector's jars of `directory`, or else its
    package, which Spark downloads, and with `packages`.  Raises BadInput."""
    wanted = [each.strip() for each in (packages or "").split(",") if each.strip()]
    settings = dict(EXTENSIONS.get(format_, {}))
    if source == "kafka" and directory is not None:
        settings |= jar_settings(directory)
    elif source == "kafka":
        wanted.insert(0, PACKAGE)
    if wanted:
        settings["spark.jars.packages"] = ",".join(wanted)
    return settings


def has_connector(spark: SparkSession) -> bool:
    """Whether the session has `format("kafka")`."""
    return has_class(spark, _PROVIDER)
