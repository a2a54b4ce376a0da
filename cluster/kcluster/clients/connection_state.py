"""What a client knows of one of its connections, and of a request that is under way.

Owns: NetworkSettings, Asked, ConnectionState, which version of an API both sides know.
Never: sends or closes anything (connections.py does).
Kafka: ClusterConnectionStates.NodeConnectionState, InFlightRequest, NodeApiVersions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from kcluster.protocol.apis import APIS, VERSIONS

DISCONNECTED: Final = "DISCONNECTED"
REQUEST_TIMED_OUT: Final = "REQUEST_TIMED_OUT"
UNSUPPORTED_VERSION: Final = "UNSUPPORTED_VERSION"
"""Why a request got no answer."""

_OURS: Final = {
    key: (low, high - APIS[key].is_latest_unstable) for key, (low, high) in VERSIONS.items()
}


class NetworkSettings(Struct, frozen=True):
    """Kafka's names and defaults: request.timeout.ms, reconnect.backoff.ms and .max.ms,
    socket.connection.setup.timeout.ms and .max.ms, metadata.recovery.rebootstrap.trigger.ms;
    `max_in_flight`: max.in.flight.requests.per.connection, 100 in a consumer."""

    request_timeout_ms: int = 30_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    connection_setup_timeout_ms: int = 10_000
    connection_setup_timeout_max_ms: int = 30_000
    max_in_flight: int = 5
    rebootstrap_trigger_ms: int = 300_000


class Asked(Struct):
    """A request under way.  `context` is the sender's own."""

    correlation_id: int
    broker_id: int
    api_key: int
    version: int
    sent_ms: int
    timeout_at_ms: int
    on_answer: OnAnswer
    context: Any


OnAnswer = Callable[[Asked, Any, str, int], None]
"""(request, answer or None, why there is none or "", now_ms)."""


class ConnectionState:
    """The connection to one broker, past, present or to come."""

    __slots__ = (
        "broker_id", "failures", "in_flight", "is_ready", "is_up", "may_connect_ms",
        "setup_failures", "throttled_until_ms", "tried_ms", "versions",
    )  # fmt: skip

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.is_up = False
        """Connected, or connecting."""
        self.is_ready = False
        """Connected, and its API versions are known."""
        self.in_flight: deque[Asked] = deque()
        self.versions: dict[int, int] = {}
        self.failures = 0
        self.setup_failures = 0
        self.tried_ms = -1
        self.may_connect_ms = 0
        self.throttled_until_ms = 0

    def take_versions(self, api_keys: Any) -> None:
        """The broker told what it serves: `ApiVersionsResponse.api_keys`."""
        self.versions = {}
        for entry in api_keys:
            low, high = _OURS.get(entry.api_key, (0, -1))
            if low <= entry.max_version and entry.min_version <= high:
                self.versions[entry.api_key] = min(high, entry.max_version)
