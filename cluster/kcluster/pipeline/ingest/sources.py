"""The two sources of an ingest behind one interface: how each is opened, and what it passed over.

Owns: options of each, its offsets in a checkpoint, how its losses are found.  Never: what is done
with rows and losses (job.py).
Kafka: Spark's spark-sql-kafka-0-10, and this project's format("kcluster").
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Protocol

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
from kcluster.pipeline.ingest.options import BadInput, IngestOptions
from kcluster.pipeline.ingest.storage import SparkStorage
from kcluster.pipeline.source.errors import OptionError
from kcluster.pipeline.source.losses import Lost
from kcluster.pipeline.source.offsets import from_json
from kcluster.pipeline.source.options import read_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Source(Protocol):
    """Where records come from."""

    def stream(self, spark: SparkSession, options: IngestOptions, starts: Offsets) -> DataFrame:
        """The topics from `starts`, in the columns of Kafka's connector with headers.  It goes
        over what is lost: whether that ends the job is not for it to say."""

    def losses(self, batch: IngestBatch, known: Known, gaps: Gaps) -> list[Lost]:
        """What it did not read of a batch that it has read; told again if asked again."""

    def committed(self) -> None:
        """The losses of the last batch are kept; they are not to be told again."""

    def at_rest(self, positions: Offsets, known: Known, now: View) -> list[Lost]:
        """What is lost and no batch of it will tell.  `known` is told of these."""


class KafkaSource:
    """The official connector, which tells of losses in its log, if at all: they follow from the
    offsets of its batches, what was read of these, and what the logs are.

    It is given a pattern, which matches the topics and nothing else: asked for names, it ends with
    UnknownTopicOrPartitionException when one of them is deleted.
    """

    def stream(self, spark: SparkSession, options: IngestOptions, starts: Offsets) -> DataFrame:
        names = "|".join(re.escape(name) for name in options.places)
        return _opened(spark, "kafka", options, starts, {"subscribePattern": names})

    def losses(self, batch: IngestBatch, known: Known, gaps: Gaps) -> list[Lost]:
        return find_losses(batch, known, gaps)

    def committed(self) -> None:
        pass

    def at_rest(self, positions: Offsets, known: Known, now: View) -> list[Lost]:
        return losses_at_rest(positions, known, now)


class KclusterIngestSource:
    """The one without jars: it knows what it lost, and leaves a file for each range.

    `place`: where these are left; on this machine, or where all workers see it.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        # A batch that was not ended will be planned anew.
        self.committed()

    def stream(self, spark: SparkSession, options: IngestOptions, starts: Offsets) -> DataFrame:
        from kcluster.pipeline.source.register import register

        register(spark)
        chosen = {"subscribe": ",".join(options.places), "kcluster.losses": str(self._place)}
        return _opened(spark, "kcluster", options, starts, chosen)

    def losses(self, batch: IngestBatch, known: Known, gaps: Gaps) -> list[Lost]:
        files = sorted(self._place.glob("*.json"))
        found = sorted(
            (msgspec.json.decode(file.read_bytes(), type=Lost) for file in files),
            key=lambda lost: (lost.topic, lost.partition, lost.first),
        )
        return [one for one in found if not any(_is_within(one, other) for other in found)]

    def committed(self) -> None:
        for file in self._place.glob("*.json"):
            file.unlink(missing_ok=True)

    def at_rest(self, positions: Offsets, known: Known, now: View) -> list[Lost]:
        return []  # what is gone or another makes a batch


def source_of(spark: SparkSession, options: IngestOptions, storage: SparkStorage) -> Source:
    """The source by its name; `storage`: of the table.  BadInput if this session has not what
    it needs."""
    if options.source == "kafka":
        if not has_connector(spark):
            raise BadInput(HELP)
        return KafkaSource()
    url = storage.url(f"staging/{options.run}/lost")
    is_local = url.startswith("file:")
    return KclusterIngestSource(Path(url.removeprefix("file:") if is_local else mkdtemp()))


def offsets_of(line: str) -> Offsets:
    """What the offset log of a checkpoint has of either source."""
    found: Offsets = {}
    for (topic, partition), mark in from_json(msgspec.json.decode(line)).items():
        found.setdefault(topic, {})[partition] = mark.offset
    return found


def _opened(
    spark: SparkSession, format_: str, options: IngestOptions, starts: Offsets, more: dict[str, str]
) -> DataFrame:
    chosen = {
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
            read_settings(chosen, True)  # in a worker its words would get lost
        except OptionError as error:
            raise BadInput(str(error)) from None
    return spark.readStream.format(format_).options(**chosen).load()


def _is_within(one: Lost, other: Lost) -> bool:
    """A task that was tried again may have found more gone than at first."""
    if one == other or (one.topic, one.partition) != (other.topic, other.partition):
        return False
    if one.first < other.first:
        return False
    return other.last is None or (one.last is not None and one.last <= other.last)
