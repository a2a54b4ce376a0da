"""The exceptions of the source; each text is one line.

Owns: the exceptions.  Never: decides when to raise one (options.py, client.py, loading.py do).
Kafka: OffsetOutOfRangeException, TimeoutException, ConfigException; of Spark's connector, its error
classes in KafkaExceptions.

    SourceError
        OptionError     an unknown option, or an invalid value
        Unreachable     no answer, or no leader, within the time limit
        DataLoss        offsets are lost and failOnDataLoss is on
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kcluster.pipeline.source.losses import Lost

_MAX_SHOWN: Final = 10


class SourceError(Exception):
    """The base of the errors of a read or a write; the text is one line."""


class OptionError(SourceError):
    """The error for an unknown option, or an invalid value."""


class Unreachable(SourceError):
    """The error for a broker, or a partition's leader, that did not answer in time."""


class DataLoss(SourceError):
    """The error for lost offsets that should be read."""

    def __init__(self, lost: Iterable[Lost]) -> None:
        self.lost = tuple(lost)
        more = len(self.lost) - _MAX_SHOWN
        shown = "; ".join(map(str, self.lost[:_MAX_SHOWN]))
        rest = f"; and {more} more" if more > 0 else ""
        super().__init__(f"{shown}{rest} (failOnDataLoss is true)")
