"""The messages that consumers of a group exchange through JoinGroup and SyncGroup.

Owns: decoding a subscription or an assignment of any version, encoding an assignment.  Never:
raises because of a client's bytes.  Kafka: ConsumerProtocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct as Layout
from typing import Any, Final

from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec
from kcluster.protocol.errors import ProtocolError

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""Protocol type of members whose metadata can be read."""
HIGHEST_VERSION: Final = 3
SUBSCRIPTION: Final = "ConsumerProtocolSubscription"
ASSIGNMENT: Final = "ConsumerProtocolAssignment"

_INT16: Final = Layout(">h")


def decode_consumer_message(name: str, data: bytes, highest: int = HIGHEST_VERSION) -> Any:
    """Decode a SUBSCRIPTION or an ASSIGNMENT; None if the bytes are neither.  A message of a newer
    version than the highest known one is read as that version, with whose fields it begins.
    `highest`: the highest version to be read."""
    if len(data) < 2:
        return None
    (version,) = _INT16.unpack_from(data)
    if version < 0:
        return None
    try:
        return record_codec(name, min(version, highest)).decode(data, 2)
    except ProtocolError:
        return None


def encode_assignment(partitions: Mapping[str, Sequence[int]], subscription: bytes) -> bytes:
    """An assignment (topic -> partitions) in the version of a member's subscription."""
    version = _INT16.unpack_from(subscription)[0] if len(subscription) >= _INT16.size else 0
    version = max(0, min(version, HIGHEST_VERSION))
    entry = m.ConsumerProtocolAssignment.TopicPartition
    body = m.ConsumerProtocolAssignment(
        assigned_partitions=[
            entry(topic=topic, partitions=list(some)) for topic, some in partitions.items()
        ]
    )
    return _INT16.pack(version) + record_codec(ASSIGNMENT, version).encode(body)
