"""What a read or a write of the source ends with: one line each.

Owns: the exceptions.  Never: decides which (options.py, client.py, loading.py do).
Kafka: OffsetOutOfRangeException, TimeoutException, ConfigException; of Spark's connector, its error
classes in KafkaExceptions.

    SourceError
        OptionError     an option that cannot be
        Unreachable     nobody answers, or nobody leads, for longer than was allowed
        DataLoss        offsets are gone, and failOnDataLoss is on
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kcluster.pipeline.source.losses import Lost

_MAX_SHOWN: Final = 10


class SourceError(Exception):
    """It cannot be done; the text says why, in one line."""


class OptionError(SourceError):
    """An option that the source does not have, or a value that it cannot have."""


class Unreachable(SourceError):
    """A broker, or a partition's leader, did not answer in time."""


class DataLoss(SourceError):
    """Offsets that were to be read are gone."""

    def __init__(self, lost: Iterable[Lost]) -> None:
        self.lost = tuple(lost)
        more = len(self.lost) - _MAX_SHOWN
        shown = "; ".join(map(str, self.lost[:_MAX_SHOWN]))
        rest = f"; and {more} more" if more > 0 else ""
        super().__init__(f"{shown}{rest} (failOnDataLoss is true)")
