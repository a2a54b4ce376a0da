"""Spark columns of the notes table: the type of an event, and its fields.

Owns: the access of jobs to events (`is_a`, `field`, `events_of`).  Never: interprets an event.
Kafka: no counterpart.

The schema comes from the types in `kcluster.events` (tables.py): the column `event` has the fields
of all kinds, null where a kind has no such field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import json

from kcluster.events import EVENT_TYPES, AnyEvent, kind
from kcluster.events.base import TaggedEvent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FIELDS: Final = frozenset(name for each in EVENT_TYPES for name in each.__struct_fields__)


def is_a(*types: type[TaggedEvent]) -> Column:
    """Whether a note's event is of one of these types."""
    from pyspark.sql import functions as F

    return F.col("event.kind").isin(*map(kind, types))


def field(name: str) -> Column:
    """A field of the event, null for kinds without such a field; the column has the field's
    name."""
    from pyspark.sql import functions as F

    assert name in _FIELDS, name
    return F.col(f"event.`{name}`").alias(name)


def partition_of_note() -> list[str | Column]:
    """The columns `run`, `topic` and `partition` of a note."""
    return ["run", field("topic"), field("partition")]


def events_of(notes: DataFrame, *types: type[TaggedEvent]) -> list[tuple[str, int, AnyEvent]]:
    """(run, at_ms, event) of the notes of these types.  They are collected, so they must be few."""
    from pyspark.sql import functions as F

    chosen = notes.where(is_a(*types))
    rows = chosen.select("run", "at_ms", F.to_json("event").alias("event")).collect()
    decode = json.Decoder(AnyEvent).decode
    return [(row["run"], row["at_ms"], decode(row["event"])) for row in rows]
