"""Phrases that the texts of several anomalies share.

Owns: the names of neighbouring records, and the verb's number.  Never: a whole sentence. Kafka: no
counterpart.
"""

from __future__ import annotations

from kcluster.checks.anomalies.base import Group
from kcluster.evidence.history import shown


def records_of(group: Group) -> str:
    """The records of an anomaly: `b`, or `offsets 4 to 6 (3 records, b to d)`."""
    first, last = group[0], group[-1]
    if len(group) == 1:
        return shown(first.value)
    span = f"{len(group):,} records, {shown(first.value)} to {shown(last.value)}"
    return span if first.offset < 0 else f"offsets {first.offset} to {last.offset} ({span})"


def offsets_of(group: Group) -> str:
    """The offsets of an anomaly: `4`, or `4 to 6`."""
    first, last = group[0], group[-1]
    return f"{first.offset}" if len(group) == 1 else f"{first.offset} to {last.offset}"


def place_of(group: Group) -> str:
    """The place of an anomaly's record: ` at offset 4` for one record; empty for several, which are
    named with their offsets."""
    return f" at offset {group[0].offset}" if len(group) == 1 and group[0].offset >= 0 else ""


def and_more(group: Group) -> str:
    """The number of further records, `, and 2 more`, if the text describes the first record
    alone."""
    return f", and {len(group) - 1:,} more" if len(group) > 1 else ""


def are(group: Group) -> str:
    return "is" if len(group) == 1 else "are"


def were(group: Group) -> str:
    return "was" if len(group) == 1 else "were"
