"""The encoding of subscriptions and assignments, which are opaque to the coordinator.

Owns: the bytes of subscriptions and assignments, and the user data of the sticky assignors.
Never: assigns (assignors.py), sends.
Kafka: ConsumerProtocol; StickyAssignor and CooperativeStickyAssignor for the user data.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct as Layout
from struct import error as StructError
from typing import Any, Final

from kcluster.clients.consumer.assignors import (
    COOPERATIVE_STICKY,
    NO_GENERATION,
    STICKY,
    MemberSubscription,
)
from kcluster.clients.ledger import Partition
from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec
from kcluster.protocol.consumer_protocol import (
    ASSIGNMENT,
    CONSUMER_PROTOCOL_TYPE,
    HIGHEST_VERSION,
    SUBSCRIPTION,
    decode_consumer_message,
)

PROTOCOL_TYPE: Final = CONSUMER_PROTOCOL_TYPE

_INT32: Final = Layout(">i")
_INT16: Final = Layout(">h")


def encode_subscription(
    assignor: str,
    topics: Iterable[str],
    owned: Iterable[Partition],
    last: Iterable[Partition],
    last_generation: int,
    generation: int,
    rack: str | None,
) -> bytes:
    """A member's subscription.  `owned`: its partitions.  `last`: its last assignment, of
    `last_generation`, for `sticky`, which revokes everything before it joins.  `generation`: the
    last generation that it has joined, whether it got an assignment in it or not."""
    user_data = None
    if assignor == COOPERATIVE_STICKY:
        user_data = _INT32.pack(last_generation)
    elif assignor == STICKY and last_generation != NO_GENERATION:
        user_data = _sticky_data(last, last_generation)
    entry = m.ConsumerProtocolSubscription.TopicPartition
    body = m.ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=[entry(topic, numbers) for topic, numbers in by_topic(owned).items()],
        generation_id=generation,
        rack_id=rack or None,
    )
    return record_codec(SUBSCRIPTION, HIGHEST_VERSION).encode_prefixed(body)


def decode_subscription(
    assignor: str, member_id: str, instance_id: str | None, data: bytes
) -> MemberSubscription | None:
    """A member's subscription of any version, decoded for the leader; None if it is invalid."""
    body = decode_consumer_message(SUBSCRIPTION, data)
    if body is None:
        return None
    owned = tuple(_partitions(body.owned_partitions))
    generation = body.generation_id
    if assignor == STICKY:
        owned, generation = _read_sticky_data(body.user_data)
    elif generation < 0 and assignor == COOPERATIVE_STICKY and len(body.user_data or b"") == 4:
        (generation,) = _INT32.unpack(body.user_data)
    return MemberSubscription(
        member_id, tuple(body.topics), instance_id, owned, generation, body.rack_id
    )


def encode_assignment(partitions: Iterable[Partition]) -> bytes:
    """A member's assignment, made by the leader."""
    entry = m.ConsumerProtocolAssignment.TopicPartition
    body = m.ConsumerProtocolAssignment(
        assigned_partitions=[
            entry(topic, numbers) for topic, numbers in by_topic(partitions).items()
        ]
    )
    return record_codec(ASSIGNMENT, HIGHEST_VERSION).encode_prefixed(body)


def decode_assignment(data: bytes) -> list[Partition] | None:
    """A member's partitions; None if the assignment is invalid."""
    body = decode_consumer_message(ASSIGNMENT, data)
    return None if body is None else list(_partitions(body.assigned_partitions))


def by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    """The partition numbers of each topic, in the given order."""
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    return numbers


def _partitions(entries: Iterable[Any]) -> Iterable[Partition]:
    return ((entry.topic, number) for entry in entries for number in entry.partitions)


# ------------------------------------------------------------------ user data of `sticky`


def _sticky_data(partitions: Iterable[Partition], generation: int) -> bytes:
    topics = by_topic(partitions)
    out = bytearray(_INT32.pack(len(topics)))
    for topic, numbers in topics.items():
        name = topic.encode()
        out += _INT16.pack(len(name)) + name + _INT32.pack(len(numbers))
        for number in numbers:
            out += _INT32.pack(number)
    return bytes(out + _INT32.pack(generation))


def _read_sticky_data(data: bytes | None) -> tuple[tuple[Partition, ...], int]:
    """(a member's last assignment, its generation); ((), NO_GENERATION) if the data is invalid."""
    partitions: list[Partition] = []
    if not data:
        return (), NO_GENERATION
    position = 4
    try:
        for _ in range(_INT32.unpack_from(data)[0]):
            (length,) = _INT16.unpack_from(data, position)
            topic = data[position + 2 : position + 2 + length].decode()
            position += 2 + length
            (count,) = _INT32.unpack_from(data, position)
            position += 4
            for _ in range(count):
                partitions.append((topic, _INT32.unpack_from(data, position)[0]))
                position += 4
        # Version 0 of the user data has no generation.
        has_generation = len(data) >= position + 4
        generation = _INT32.unpack_from(data, position)[0] if has_generation else NO_GENERATION
    except (StructError, UnicodeDecodeError):
        return (), NO_GENERATION
    return tuple(partitions), generation
