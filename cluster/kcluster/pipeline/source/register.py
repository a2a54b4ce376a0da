"""`format("kcluster")` for Spark: the classes of the Data Source API, as thin wrappers.

Owns: these classes.  Never: reads or writes itself (stream.py, loading.py, writer.py), finds the
package on a worker (shipping.py).
Kafka: of Spark's connector KafkaSourceProvider.

The classes are made in a function, so that they are pickled by value: a worker that lacks the
package can unpickle them, and their methods then report it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcluster.pipeline.session import is_local
from kcluster.pipeline.shipping import SOURCE_NEEDS, import_check, ship

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
        InputPartition,
    )
    from pyspark.sql.types import StructType

    from kcluster.pipeline.source.options import ReadSettings
    from kcluster.pipeline.source.planning import Range
    from kcluster.pipeline.source.stream import Position, Stream

FORMAT: Final = "kcluster"
_NEEDS: Final = ("kcluster.pipeline.source.loading", "numpy", "pyarrow")


def register(spark: SparkSession, ship_env: bool = False) -> None:
    """Register `format("kcluster")` with a session.  Workers of a cluster get the package;
    `ship_env`: also its dependencies, and the source's."""
    if is_local(str(spark.sparkContext.master)):
        spark.dataSource.register(source_class())
    else:
        ship(spark, SOURCE_NEEDS if ship_env else ())
        spark.dataSource.register(source_class(needs=_NEEDS))


def source_class(needs: Sequence[str] = ()) -> type[DataSource]:
    """The data source.  `needs`: modules that a worker may lack."""
    from pyspark.sql.datasource import DataSource

    check = import_check(*needs)
    readers, writers = _readers(check), _writers(check)

    class KclusterSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "kcluster"

        def schema(self) -> StructType:
            check()
            from kcluster.pipeline.source.columns import spark_schema

            text = self.options.get("includeHeaders", "false")
            return spark_schema(text.strip().lower() == "true")

        def reader(self, schema: StructType) -> DataSourceReader:
            check()
            return readers[0](_read_settings(self.options, schema, False))

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            check()
            return readers[1](_read_settings(self.options, schema, True))

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
            check()
            return writers[0](_write_settings(self.options, schema, overwrite))

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
            check()
            return writers[1](_write_settings(self.options, schema, overwrite))

    def _read_settings(options: Mapping[str, str], schema: object, is_stream: bool) -> bytes:
        import msgspec

        from kcluster.pipeline.source.columns import spark_schema
        from kcluster.pipeline.source.errors import OptionError
        from kcluster.pipeline.source.options import read_settings

        settings = read_settings(options, is_stream)
        if schema != spark_schema(settings.include_headers):
            raise OptionError("a schema is not allowed: the columns are those of Kafka's records")
        return msgspec.json.encode(settings)

    def _write_settings(options: Mapping[str, str], schema: StructType, overwrite: bool) -> bytes:
        import msgspec

        from kcluster.pipeline.source.errors import OptionError
        from kcluster.pipeline.source.options import write_settings
        from kcluster.pipeline.source.writer import check_columns

        if overwrite:
            raise OptionError("a topic cannot be overwritten: use mode append")
        settings = write_settings(options)
        check_columns({field.name: field.dataType.simpleString() for field in schema}, settings)
        return msgspec.json.encode(settings)

    return KclusterSource


def _readers(
    check: Callable[[], None],
) -> tuple[Callable[[bytes], DataSourceReader], Callable[[bytes], DataSourceStreamReader]]:
    from pyspark.sql.datasource import DataSourceReader, InputPartition

    def decoded(settings: bytes) -> ReadSettings:
        import msgspec

        from kcluster.pipeline.source.options import ReadSettings

        return msgspec.json.decode(settings, type=ReadSettings)

    def tasks(ranges: Iterable[Range]) -> list[InputPartition]:
        import msgspec

        return [InputPartition(msgspec.json.encode(one)) for one in ranges]

    def load(settings: bytes, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        check()
        import msgspec

        from kcluster.pipeline.source.loading import load
        from kcluster.pipeline.source.planning import Range

        # Spark makes a task with None if there is nothing to read.
        if partition.value is None:
            return iter(())
        return load(decoded(settings), msgspec.json.decode(partition.value, type=Range))

    class BatchReader(DataSourceReader):
        def __init__(self, settings: bytes) -> None:
            self.settings = settings

        def partitions(self) -> list[InputPartition]:
            check()
            from kcluster.pipeline.source.stream import batch_ranges

            return tasks(batch_ranges(decoded(self.settings)))

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            return load(self.settings, partition)

    return BatchReader, _stream_reader(check, decoded, tasks, load)


def _stream_reader(
    check: Callable[[], None],
    decoded: Callable[[bytes], ReadSettings],
    tasks: Callable[[Iterable[Range]], list[InputPartition]],
    load: Callable[[bytes, InputPartition], Iterator[pa.RecordBatch]],
) -> Callable[[bytes], DataSourceStreamReader]:
    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
        def __init__(self, settings: bytes) -> None:
            self.settings = settings
            self.plans: Stream | None = None

        def stream(self) -> Stream:
            if self.plans is None:
                check()
                from kcluster.pipeline.source.stream import Stream

                self.plans = Stream(decoded(self.settings))
            return self.plans

        def initialOffset(self) -> dict[str, dict[str, int]]:
            return self.stream().initial()

        def getDefaultReadLimit(self) -> ReadLimit:
            settings = decoded(self.settings)
            if settings.max_offsets is not None:
                return ReadMaxRows(settings.max_offsets)
            if settings.min_offsets is not None:
                return ReadMinRows(settings.min_offsets)
            return ReadAllAvailable()

        def latestOffset(self, start: Position, limit: ReadLimit) -> dict[str, dict[str, int]]:
            most = None
            if isinstance(limit, ReadMaxRows):
                most = limit.max_rows
            elif isinstance(limit, ReadMinRows):
                most = (1 << 63) - 1
            return self.stream().latest(start, most)

        def reportLatestOffset(self) -> dict[str, dict[str, int]] | None:
            return self.stream().known()

        def prepareForTriggerAvailableNow(self) -> None:
            self.stream().freeze_target()

        def partitions(self, start: Position, end: Position) -> list[InputPartition]:
            return tasks(self.stream().ranges(start, end))

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            return load(self.settings, partition)

        def stop(self) -> None:
            if self.plans is not None:
                self.plans.close()

    return StreamReader


def _writers(
    check: Callable[[], None],
) -> tuple[Callable[[bytes], DataSourceWriter], Callable[[bytes], DataSourceStreamWriter]]:
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceStreamArrowWriter,
        WriterCommitMessage,
    )

    def write(settings: bytes, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        check()
        import msgspec

        from kcluster.pipeline.source.options import WriteSettings
        from kcluster.pipeline.source.writer import write

        write(msgspec.json.decode(settings, type=WriteSettings), batches)
        return WriterCommitMessage()

    class BatchWriter(DataSourceArrowWriter):
        def __init__(self, settings: bytes) -> None:
            self.settings = settings

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            return write(self.settings, iterator)

    class StreamWriter(DataSourceStreamArrowWriter):
        def __init__(self, settings: bytes) -> None:
            self.settings = settings

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            return write(self.settings, iterator)

    return BatchWriter, StreamWriter
