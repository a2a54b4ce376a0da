"""The two sources of an ingest behind one interface: opening each, and its reports of losses.

Owns: the options of each source, its offsets in a checkpoint, the origin of its losses.  Never:
handles rows or losses (job.py does).
Kafka: Spark's spark-sql-kafka-0-10, and this project's format("kcluster").
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from kcluster.pipeline.ingest.jars import HELP, has_connector
from kcluster.pipeline.ingest.losses import (
    Gaps,
    IngestBatch,
    Known,
    Offsets,
    View,
    find_losses,
    losses_at_rest,
)
from kcluster.pipeline.ingest.options import ISOLATION_LEVEL, BadInput, IngestOptions
from kcluster.pipeline.ingest.storage import SparkStorage
from kcluster.pipeline.source.errors import OptionError
from kcluster.pipeline.source.losses import Lost
from kcluster.pipeline.source.offsets import from_json
from kcluster.pipeline.source.options import read_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_TIMEOUTS: Final = {"kafka.default.api.timeout.ms": "10000", "kafka.request.timeout.ms": "10000"}
"""The connector lists offsets with Kafka's admin client, which asks a leader that has just died
until it is back, or for default.api.timeout.ms: 60 s by default.  With shorter timeouts, the next
attempt asks the new leader."""
_ATTEMPTS: Final = {"fetchOffset.numRetries": "18"}
"""The number of attempts, instead of 3: together they last as long as three with the default
timeout."""


class Source(Protocol):
    """A source of records."""

    def stream(self, spark: SparkSession, options: IngestOptions, starts: Offsets) -> DataFrame:
        """The topics from `starts`, in the connector's columns with headers.  The stream skips lost
        offsets; job.py decides whether a loss ends the job."""

    def losses(self, batch: IngestBatch, known: Known, gaps: Gaps) -> list[Lost]:
        """Ranges of a finished batch that were not read.  A repeated call returns them again."""

    def committed(self) -> None:
        """Take note that the losses of the last batch are recorded; `losses` no longer returns
        them."""

    def at_rest(self, positions: Offsets, known: Known, now: View) -> list[Lost]:
        """Losses that no batch will reveal.  Updates `known`."""


class KafkaSource:
    """The official connector.  It reports losses in its log at best, so they are derived from the
    offsets of its batches, the records read, and views of the logs (losses.py).

    It subscribes by a pattern that matches exactly the topics: subscribed by name, it fails with
    UnknownTopicOrPartitionException when a topic is deleted.
    """

    def stream(self, spark: SparkSession, options: IngestOptions, starts: Offsets) -> DataFrame:
        names = "|".join(re.escape(name) for name in options.unique_topics)
        named = {name.lower() for name in options.kafka}
        timeouts = {} if named & _TIMEOUTS.keys() else {**_TIMEOUTS, **_ATTEMPTS}
        return _opened(spark, "kafka", options, starts, {"subscribePattern": names}, timeouts)

    def losses(self, batch: IngestBatch, known: Known, gaps: Gaps) -> list[Lost]:
        return find_losses(batch, known, gaps)

    def committed(self) -> None:
        pass

    def at_rest(self, positions: Offsets, known: Known, now: View) -> list[Lost]:
        return losses_at_rest(positions, known, now)


class KclusterIngestSource:
    """format("kcluster"), which needs no jars and writes a file for each lost range.

    `place`: the directory of these files; all workers must see it.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        # An unfinished batch is planned again, and reports its losses again.
        self.committed()

    def stream(self, spark: SparkSession, options: IngestOptions, starts: Offsets) -> DataFrame:
        from kcluster.pipeline.source.register import register

        register(spark)
        chosen = {"subscribe": ",".join(options.unique_topics), "kcluster.losses": str(self._place)}
        return _opened(spark, "kcluster", options, starts, chosen, {})

    def losses(self, batch: IngestBatch, known: Known, gaps: Gaps) -> list[Lost]:
        files = sorted(self._place.glob("*.json"))
        ranges = sorted(
            (msgspec.json.decode(file.read_bytes(), type=Lost) for file in files),
            key=lambda lost: (lost.topic, lost.partition, lost.first),
        )
        return [one for one in ranges if not any(_is_within(one, other) for other in ranges)]

    def committed(self) -> None:
        for file in self._place.glob("*.json"):
            file.unlink(missing_ok=True)

    def at_rest(self, positions: Offsets, known: Known, now: View) -> list[Lost]:
        return []  # a deleted or replaced topic causes a batch


def source_of(spark: SparkSession, options: IngestOptions, storage: SparkStorage) -> Source:
    """The source named by the options; `storage`: the table's.  BadInput if this session lacks the
    connector."""
    if options.source == "kafka":
        if not has_connector(spark):
            raise BadInput(HELP)
        return KafkaSource()
    url = storage.url(f"staging/{options.run}/lost")
    is_local = url.startswith("file:")
    return KclusterIngestSource(Path(url.removeprefix("file:") if is_local else mkdtemp()))


def offsets_of(line: str) -> Offsets:
    """Offsets from a line of a checkpoint's offset log, of either source."""
    offsets: Offsets = {}
    for (topic, partition), mark in from_json(msgspec.json.decode(line)).items():
        offsets.setdefault(topic, {})[partition] = mark.offset
    return offsets


def _opened(
    spark: SparkSession,
    format_: str,
    options: IngestOptions,
    starts: Offsets,
    more: dict[str, str],
    defaults: dict[str, str],
) -> DataFrame:
    """A stream with the user's options, which override `defaults` and are overridden by `more`."""
    # Spark ignores the case of names.
    is_named = any(name.lower() == ISOLATION_LEVEL for name in options.kafka)
    chosen = {
        **defaults,
        **({} if is_named else {ISOLATION_LEVEL: options.isolation}),
        **options.kafka,
        **more,
        "kafka.bootstrap.servers": options.bootstrap,
        "includeHeaders": "true",
        "startingOffsets": msgspec.json.encode(starts).decode(),
        "failOnDataLoss": "false",  # job.py ends the job, and names the range
    }
    if options.max_offsets is not None:
        chosen["maxOffsetsPerTrigger"] = str(options.max_offsets)
    if format_ == "kcluster":
        try:
            read_settings(chosen, True)  # a worker's error would hide the text
        except OptionError as error:
            raise BadInput(str(error)) from None
    return spark.readStream.format(format_).options(**chosen).load()


def _is_within(one: Lost, other: Lost) -> bool:
    """Whether `other` covers `one`: a repeated task may report a larger lost range than before."""
    if one == other or (one.topic, one.partition) != (other.topic, other.partition):
        return False
    if one.first < other.first:
        return False
    return other.last is None or (one.last is not None and one.last <= other.last)
