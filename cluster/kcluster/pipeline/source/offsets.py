"""Offsets as JSON, in the formats of the connector: in options and in checkpoints.

Owns: these formats and their checks.  Never: resolves an offset (lookups.py), reads a checkpoint
(Spark does).
Kafka: of Spark's connector JsonUtils and KafkaSourceOffset.

    {"orders": {"0": 23, "1": -2}}     offsets by topic and partition; -2 is earliest, -1 latest
    {"orders": [0, 1]}                 partitions, for `assign`

A stream's position has the first format, with the leader epoch and the topic id beside it:

    {"orders": {"0": 23}, "orders:epoch": {"0": 4}, "orders:id": {"0": high, "1": low}}

A topic's name has no colon.  Checkpoints of the connector can be read.  They have neither epochs
nor ids, so losses before the first batch are detected from offsets alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kcluster.config.files.numbers import whole_number
from kcluster.json_types import JsonObject
from kcluster.pipeline.source.errors import OptionError
from kcluster.pipeline.source.losses import NO_EPOCH

LATEST: Final = -1
EARLIEST: Final = -2
_EPOCH: Final = ":epoch"
_ID: Final = ":id"
_HALF: Final = 1 << 64

Key = tuple[str, int]
"""(topic, partition)."""


class Mark(Struct, frozen=True):
    """A position in a partition: the offset, the leader epoch at that time, the topic's id."""

    offset: int
    epoch: int = NO_EPOCH
    topic_id: str = ""


def parse_partitions(option: str, text: str) -> dict[str, list[int]]:
    """The partitions in `{"orders": [0, 1]}`; OptionError for another shape."""
    by_topic = _object(option, text)
    for topic, partitions in by_topic.items():
        if not isinstance(partitions, list) or not all(
            type(index) is int and index >= 0 for index in partitions
        ):
            raise OptionError(f'{option}: {topic}: partitions are numbers, as in {{"a": [0, 1]}}')
    if not any(by_topic.values()):
        raise OptionError(f"{option}: it has no partition")
    return by_topic


def parse_offsets(option: str, text: str, least: int = EARLIEST) -> dict[Key, int]:
    """The offsets in `{"orders": {"0": 23}}`; OptionError for another shape, or numbers below
    `least`."""
    offsets: dict[Key, int] = {}
    for topic, partitions in _object(option, text).items():
        if not isinstance(partitions, dict):
            raise OptionError(f'{option}: {topic}: it must be {{"partition": number}}')
        for index, offset in partitions.items():
            number = whole_number(index)
            if number is None:
                raise OptionError(f"{option}: {topic}: {index!r} is not a partition")
            if type(offset) is not int or offset < least:
                raise OptionError(f"{option}: {topic}-{index}: {offset!r} is not allowed")
            offsets[topic, number] = offset
    return offsets


def to_json(marks: Mapping[Key, Mark]) -> dict[str, dict[str, int]]:
    """A stream's position as JSON, sorted, so that equal positions have equal text."""
    values: dict[str, dict[str, int]] = {}
    for (topic, partition), mark in sorted(marks.items()):
        values.setdefault(topic, {})[str(partition)] = mark.offset
        if mark.epoch != NO_EPOCH:
            values.setdefault(topic + _EPOCH, {})[str(partition)] = mark.epoch
        if mark.topic_id:
            high, low = divmod(int(mark.topic_id, 16), _HALF)
            # Java's longs have a sign.
            values[topic + _ID] = {"0": _signed(high), "1": _signed(low)}
    return values


def from_json(position: Mapping[str, Mapping[str, int]]) -> dict[Key, Mark]:
    """The position from JSON that `to_json` or the connector wrote."""
    marks: dict[Key, Mark] = {}
    for topic, offsets in position.items():
        if ":" in topic:
            continue
        epochs = position.get(topic + _EPOCH, {})
        halves = position.get(topic + _ID)
        topic_id = ""
        if halves is not None:
            topic_id = f"{halves['0'] % _HALF:016x}{halves['1'] % _HALF:016x}"
        for partition, offset in offsets.items():
            epoch = epochs.get(partition, NO_EPOCH)
            marks[topic, int(partition)] = Mark(offset, epoch, topic_id)
    return marks


def _signed(half: int) -> int:
    return half - _HALF if half >= _HALF >> 1 else half


def _object(option: str, text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise OptionError(f"{option}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise OptionError(f'{option}: it must be an object, as in {{"orders": …}}')
    return value
