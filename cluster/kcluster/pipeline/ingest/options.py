"""The options of an ingest, their checks, and its errors.

Owns: the options, their allowed values, the exceptions of an ingest.  Never: asks a cluster,
reads files.
Kafka: the connector's options maxOffsetsPerTrigger, startingOffsets, failOnDataLoss, and
kafka.isolation.level.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from kcluster.config.files.problems import unknown
from kcluster.pipeline.source.losses import Lost

SOURCES: Final = ("kcluster", "kafka")
FORMATS: Final = ("parquet", "delta", "iceberg")
STARTING: Final = ("earliest", "latest")
UNTIL: Final = ("stopped", "idle", "once")
ISOLATIONS: Final = ("read_uncommitted", "read_committed")
ISOLATION_LEVEL: Final = "kafka.isolation.level"
"""The option of both sources that sets the isolation level."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_BROKER: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s:,/\[\]]+):(\d{1,5})")


class IngestError(Exception):
    """The error for an ingest that cannot begin or continue; the text is one line."""


class BadInput(IngestError):
    """The error for an ingest that cannot begin, because an option, a topic, a table or the jars
    are not valid."""


class IngestDataLoss(IngestError):
    """The error for lost offsets while failOnDataLoss is on.  `lost`: all such ranges."""

    def __init__(self, lost: tuple[Lost, ...]) -> None:
        self.lost = lost
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        super().__init__(f"{lost[0]}{more}")


class IngestOptions(Struct, frozen=True):
    """Source, topics, destination, and when the job ends.

    `until`: "once" reads what exists at the start (AvailableNow); "idle" ends when no record
    arrives for `idle_ms`; "stopped" ends after `for_ms` (None: when it is stopped).  `checkpoint`:
    a directory; "": within `out`.  `run`: the value of column `run`; each run has its own
    checkpoint.  `max_offsets`: the limit per batch; None: no limit.
    """

    bootstrap: str
    topics: tuple[str, ...]
    out: str
    source: str = "kcluster"
    format: str = "parquet"
    checkpoint: str = ""
    run: str = "ingest"
    starting: str = "earliest"
    max_offsets: int | None = None
    fail_on_data_loss: bool = True
    until: str = "stopped"
    for_ms: int | None = None
    idle_ms: int = 3_000
    every_ms: int = 500
    """Minimum time from the start of one batch to the start of the next."""
    kafka: dict[str, str] = {}
    """More options of the source, such as kafka.client.id."""
    isolation: str = "read_uncommitted"
    """The isolation level.  `read_committed`: only records of committed transactions, and records
    outside transactions."""

    def check(self) -> None:
        """Check the values; BadInput for the first invalid one."""
        self._check_words()
        named = {name.lower(): value for name, value in self.kafka.items()}.get(ISOLATION_LEVEL)
        if self.isolation != ISOLATIONS[0] and named not in (None, self.isolation):
            raise BadInput(f"isolation {self.isolation!r}: {ISOLATION_LEVEL} is {named!r}")
        if not self.topics:
            raise BadInput("no topics are given")
        for topic in self.topics:
            if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
                raise BadInput(f"topic {topic!r}: a name has letters, digits, '.', '_', '-'")
        if not _NAME.fullmatch(self.run):
            raise BadInput(f"run {self.run!r}: a name has letters, digits, '.', '_', '-'")
        for broker in self.bootstrap.split(","):
            match = _BROKER.fullmatch(broker.strip())
            if match is None or not 0 < int(match[1]) < 65_536:
                raise BadInput(
                    f"bootstrap {broker!r}: it must be host:port, or several separated by commas"
                )
        if not self.out:
            raise BadInput("no output directory is given")
        if self.max_offsets is not None and self.max_offsets < 1:
            raise BadInput(f"max-offsets-per-trigger {self.max_offsets}: it must be at least 1")

    def _check_words(self) -> None:
        for name, value, known in (
            ("source", self.source, SOURCES),
            ("format", self.format, FORMATS),
            ("starting", self.starting, STARTING),
            ("until", self.until, UNTIL),
            ("isolation", self.isolation, ISOLATIONS),
        ):
            if value not in known:
                raise BadInput(f"{name} {value!r}: {unknown(name, value, known)}")

    @property
    def unique_topics(self) -> tuple[str, ...]:
        """The topics without repetitions."""
        return tuple(dict.fromkeys(self.topics))
