"""The official Kafka connector: where its jars are, and whether a session has them.

Owns: names and versions of the jars, the settings that bring them.  Never: downloads (Spark does).
Kafka: spark-sql-kafka-0-10, which is made with kafka-clients 3.9.
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
"""What the names of the jars begin with; all else is in pyspark."""
PACKAGE: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
EXTENSIONS: Final = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
}
"""What a session must be told for a table format, besides its packages."""
_PROVIDER: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
HELP: Final = (
    "the Kafka connector's jars are not in this Spark: --jars DIR with them (`make jars` fetches"
    " them to build/connector-jars), or --source kcluster, which needs none"
)


def find_jars(directory: str) -> list[Path]:
    """The jars of the connector in a directory.  BadInput names what is missing."""
    place = Path(directory)
    if not place.is_dir():
        raise BadInput(f"{directory}: no such directory of jars")
    found = sorted(place.glob("*.jar"))
    for name in NEEDED:
        if not any(jar.name.startswith(name) for jar in found):
            raise BadInput(f"{directory}: no {name}*.jar in it")
    return [jar for jar in found if jar.name.startswith(NEEDED)]


def jar_settings(directory: str) -> dict[str, str]:
    """Settings for a session that has the connector of this directory."""
    return {"spark.jars": ",".join(str(jar.resolve()) for jar in find_jars(directory))}


def session_settings(
    source: str, format_: str, directory: str | None, packages: str | None
) -> dict[str, str]:
    """Settings for a session that has what an ingest needs: the connector's jars of a directory,
    or of the package that Spark resolves by itself (network), and `packages`.  BadInput."""
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
    """Whether `format("kafka")` is there."""
    return has_class(spark, _PROVIDER)
