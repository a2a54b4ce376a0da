"""The messages that consumers of a group exchange through JoinGroup and SyncGroup.

Owns: decoding a subscription or an assignment of any version.  Never: raises for bytes of clients.
Kafka: ConsumerProtocol.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Any, Final

from kcluster.protocol.apis import record_codec
from kcluster.protocol.errors import ProtocolError

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""Protocol type of members whose metadata can be read."""
HIGHEST_VERSION: Final = 3
SUBSCRIPTION: Final = "ConsumerProtocolSubscription"
ASSIGNMENT: Final = "ConsumerProtocolAssignment"

_INT16: Final = Layout(">h")


def decode_consumer_message(name: str, data: bytes) -> Any:
    """A SUBSCRIPTION or an ASSIGNMENT; None if the bytes are none.  A newer version is read as the
    highest one known, whose fields it begins with."""
    if len(data) < 2:
        return None
    (version,) = _INT16.unpack_from(data)
    if version < 0:
        return None
    try:
        return record_codec(name, min(version, HIGHEST_VERSION)).decode(data, 2)
    except ProtocolError:
        return None
