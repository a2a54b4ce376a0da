"""Rows as columns: a table is {column: its values}, which in JSON is less than half as long.

Owns: the columns of rows.  Never: chooses rows, encodes them.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import astuple

Columns = dict[str, Sequence[object]]


def columns_of(rows: Sequence[Struct]) -> Columns:
    """The columns of rows; empty without rows."""
    if not rows:
        return {}
    columns = map(list, zip(*map(astuple, rows), strict=True))
    return dict(zip(rows[0].__struct_fields__, columns, strict=True))


def columns_of_values(rows: Sequence[Mapping[str, object]]) -> Columns:
    """The columns of rows that are mappings with the same keys."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
