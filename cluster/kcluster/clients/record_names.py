"""What identifies a record of a workload: its value, or a header if it has none.

Owns: the header of tombstones, written and read.  Never: chooses a name.  Kafka: no counterpart; a
tombstone is a record with a key and a null value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kcluster.protocol.records.records import Header

HEADER: Final = "kcluster.record"


def tombstone_headers(name: bytes) -> tuple[Header, ...]:
    """The headers of the tombstone of this name."""
    return ((HEADER, name),)


def tombstone_name(headers: Sequence[Header]) -> bytes | None:
    """The name of a record without a value; None for one that no workload sent."""
    return next((value for key, value in headers if key == HEADER), None)
