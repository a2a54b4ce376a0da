"""What identifies a record of a workload: its value, or a header if it has none.

Owns: the header of tombstones, written and read.  Never: chooses a name.  Kafka: no counterpart; a
tombstone is a record with a key and a null value.
"""

from __future__ import annotations

from typing import Final

from kcluster.protocol.records.records import Header, Record

HEADER: Final = "kcluster.record"


def tombstone_headers(name: bytes) -> tuple[Header, ...]:
    """The headers of the tombstone of this name."""
    return ((HEADER, name),)


def record_name(record: Record) -> bytes | None:
    """A record's value, or its name if it has none; None for a tombstone that no workload sent."""
    if record.value is not None:
        return record.value
    return next((value for key, value in record.headers if key == HEADER), None)
