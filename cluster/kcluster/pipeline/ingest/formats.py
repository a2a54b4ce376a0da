"""Idempotent commits of a staged batch to a Delta or Iceberg table.

Owns: how each format recognizes a batch that it already has: Delta by txnAppId and txnVersion,
Iceberg by a property of its snapshots.  Never: stages a batch, commits Parquet (table.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from kcluster.pipeline.ingest.options import BadInput, IngestError
from kcluster.pipeline.ingest.storage import SparkStorage, has_class
from kcluster.pipeline.session import why

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH: Final = "kcluster-batch"
_NEEDED: Final = {
    "delta": ("io.delta.sql.DeltaSparkSessionExtension", "io.delta:delta-spark_4.1_2.13:4.1.0"),
    "iceberg": (
        "org.apache.iceberg.spark.SparkCatalog",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
    ),
}
"""For each format a class that it needs, and the package with that class (built for Spark 4.1; none
is newer)."""


def check_format(spark: SparkSession, format_: str) -> None:
    """Check that this session can write the format; BadInput if not."""
    if format_ in _NEEDED:
        name, package = _NEEDED[format_]
        if not has_class(spark, name):
            raise BadInput(
                f"format {format_}: this Spark does not have it; add --packages {package}"
            )


def append(
    spark: SparkSession,
    format_: str,
    storage: SparkStorage,
    records: DataFrame,
    name: tuple[str, int],
) -> None:
    """Add a batch to the Delta or Iceberg table in `records/` unless the table has it.  `name`:
    (run, batch).  Raises IngestError."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    write: Callable[..., None] = _to_delta if format_ == "delta" else _to_iceberg
    try:
        write(spark, storage, records, name)
    except (PySparkException, Py4JError) as error:
        raise IngestError(f"{storage.root}: {why(error)}") from None


def read(spark: SparkSession, format_: str, storage: SparkStorage) -> DataFrame:
    """The table in `records/`, Delta or Iceberg."""
    if format_ == "delta":
        return spark.read.format("delta").load(storage.url("records"))
    return spark.table(_iceberg(spark, storage))


def _to_delta(
    spark: SparkSession, storage: SparkStorage, records: DataFrame, name: tuple[str, int]
) -> None:
    writer: Any = records.write.format("delta").mode("append").partitionBy("topic", "date")
    writer = writer.option("txnAppId", f"kcluster/{name[0]}").option("txnVersion", name[1])
    writer.save(storage.url("records"))


def _to_iceberg(
    spark: SparkSession, storage: SparkStorage, records: DataFrame, name: tuple[str, int]
) -> None:
    from pyspark.sql import functions as F

    table, mark = _iceberg(spark, storage), f"{name[0]}/{name[1]}"
    if not storage.exists("records/metadata"):
        writer: Any = records.limit(0).writeTo(table).using("iceberg")
        writer.partitionedBy("topic", "date").create()
    marks = spark.table(f"{table}.snapshots").where(F.col("summary")[_BATCH] == mark)
    if not marks.isEmpty():
        return
    records.sortWithinPartitions("topic", "date").writeTo(table).option(
        f"snapshot-property.{_BATCH}", mark
    ).append()


def _iceberg(spark: SparkSession, storage: SparkStorage) -> str:
    """The table's name, in its own catalog, whose warehouse is the directory."""
    catalog = f"kcluster_{sha256(storage.root.encode()).hexdigest()[:12]}"
    setting = f"spark.sql.catalog.{catalog}"
    spark.conf.set(setting, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{setting}.type", "hadoop")
    spark.conf.set(f"{setting}.warehouse", storage.root)
    return f"{catalog}.records"
