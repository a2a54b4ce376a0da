"""A client's connections: who can be asked, what is under way, when it has taken too long.

Owns: one connection to each broker with its API versions, requests in flight and their timeouts,
reconnect backoff, and asking for metadata.  Never: knows what a request is for.
Kafka: NetworkClient, ClusterConnectionStates, InFlightRequests, NodeApiVersions;
KIP-580 (exponential backoff), KIP-899 and KIP-1102 (rebootstrap).

A client calls `poll` at the beginning of each of its turns, and forwards `on_reply` and
`on_disconnected`; whoever sent a request is called back in the same turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from kcluster.clients.ledger import Ledger, Partition, Told
from kcluster.clients.metadata import NOBODY, Metadata, backoff_ms
from kcluster.clients.wire import Wire
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, VERSIONS, ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.timers import NEVER_MS

DISCONNECTED: Final = "DISCONNECTED"
REQUEST_TIMED_OUT: Final = "REQUEST_TIMED_OUT"
UNSUPPORTED_VERSION: Final = "UNSUPPORTED_VERSION"
"""Why a request got no answer."""

API_VERSIONS_VERSION: Final = 4
_METADATA: Final = int(ApiKey.METADATA)
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_OURS: Final = {
    key: (low, high - APIS[key].is_latest_unstable) for key, (low, high) in VERSIONS.items()
}
"""By API: the versions that this client speaks."""


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


class InFlightRequest(Struct):
    """A request under way.  `context` is the sender's own."""

    correlation_id: int
    broker_id: int
    api_key: int
    version: int
    sent_ms: int
    timeout_at_ms: int
    on_answer: OnAnswer
    context: Any


OnAnswer = Callable[[InFlightRequest, Any, str, int], None]
"""(request, answer or None, why there is none or "", now_ms)."""


class ConnectionState:
    """The connection to one broker, past, present or to come."""

    __slots__ = (
        "broker_id",
        "failures",
        "in_flight",
        "is_ready",
        "is_up",
        "may_connect_ms",
        "setup_failures",
        "throttled_until_ms",
        "tried_ms",
        "versions",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.is_up = False
        """Connected, or connecting."""
        self.is_ready = False
        """Connected, and its API versions are known."""
        self.in_flight: deque[InFlightRequest] = deque()
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


class NetworkClient:
    """All connections of one client.

    `due_ms`: `poll` wants to be called then.  `name` is the client's, for the ledger.
    """

    def __init__(
        self, name: str, settings: NetworkSettings, metadata: Metadata, ledger: Ledger
    ) -> None:
        self.name = name
        self.settings = settings
        self.metadata = metadata
        self.ledger = ledger
        self.closed = False
        self._connections: dict[int, ConnectionState] = {}
        self._next_timeout_ms = NEVER_MS
        self._wake_ms = NEVER_MS
        self._asks_metadata = False
        self._metadata_hold_ms = 0
        """Nobody could be asked: not worth a turn of its own before this."""
        self._no_metadata_since_ms = -1

    def start(self, wire: Wire, now_ms: int) -> None:
        """The client's life begins; nothing is sent before `poll`."""
        self.wire = wire
        self.rng = wire.rng
        self.metadata.start(wire.broker_ids, wire.rng)

    def close(self) -> None:
        """Close every connection; nobody is called back."""
        self.closed = True
        self.metadata.stop()
        self._next_timeout_ms = self._wake_ms = NEVER_MS
        for connection in self._connections.values():
            if connection.is_up:
                connection.is_up = connection.is_ready = False
                connection.in_flight.clear()
                self.wire.disconnect(connection.broker_id)

    # ------------------------------------------------------------------------------ time

    @property
    def due_ms(self) -> int:
        """When `poll` has something to do, at the latest; NEVER_MS for never."""
        due_ms = self._next_timeout_ms
        if self._wake_ms < due_ms:
            due_ms = self._wake_ms
        if self._asks_metadata:
            return due_ms
        metadata_ms = self.metadata.due_ms
        if metadata_ms < self._metadata_hold_ms:
            metadata_ms = self._metadata_hold_ms
        return metadata_ms if metadata_ms < due_ms else due_ms

    def poll(self, now_ms: int) -> None:
        """Give up what took too long; ask for metadata if it is time."""
        if now_ms >= self._wake_ms:
            self._wake_ms = NEVER_MS
        if now_ms >= self._next_timeout_ms:
            self._time_out(now_ms)
        if now_ms >= self.metadata.due_ms and not self._asks_metadata and not self.closed:
            self._ask_metadata(now_ms)

    def _time_out(self, now_ms: int) -> None:
        for connection in tuple(self._connections.values()):
            if any(asked.timeout_at_ms <= now_ms for asked in connection.in_flight):
                self._drop(connection, REQUEST_TIMED_OUT, now_ms)
        self._next_timeout_ms = min(
            (asked.timeout_at_ms for x in self._connections.values() for asked in x.in_flight),
            default=NEVER_MS,
        )

    def wake_at(self, at_ms: int) -> None:
        """Have `due_ms` be this at the latest."""
        self._wake_ms = min(self._wake_ms, at_ms)

    # --------------------------------------------------------------------------- sending

    def is_ready(self, broker_id: int, now_ms: int) -> bool:
        """Whether a request can be sent to a broker now.  If not, a connection is begun as soon as
        the backoff allows, and the client has a turn when the answer may be another."""
        connection = self._connections.get(broker_id)
        if connection is not None and connection.is_ready:
            if connection.throttled_until_ms > now_ms:
                self.wake_at(connection.throttled_until_ms)
                return False
            return len(connection.in_flight) < self.settings.max_in_flight
        self._connect(broker_id, now_ms)
        return False

    def is_failed(self, broker_id: int) -> bool:
        """Whether the last connection to a broker ended, and there is none yet again."""
        connection = self._connections.get(broker_id)
        return connection is not None and not connection.is_up and connection.failures > 0

    def in_flight(self, broker_id: int) -> int:
        """How many requests to a broker have no answer yet."""
        connection = self._connections.get(broker_id)
        return 0 if connection is None else len(connection.in_flight)

    def version(self, broker_id: int, api_key: int) -> int:
        """The highest version that both know, of a broker that `is_ready`; -1 if there is none."""
        return self._connections[broker_id].versions.get(api_key, -1)

    def send(
        self,
        broker_id: int,
        api_key: int,
        body: Any,
        now_ms: int,
        on_answer: OnAnswer,
        *,
        context: Any = None,
        version: int = -1,
        timeout_ms: int = -1,
        answered: bool = True,
    ) -> None:
        """Send a request to a broker that `is_ready`; `on_answer` is called once, unless not
        `answered` or the network is closed before.

        `version`: the highest that both know, if not given.  `timeout_ms`: request.timeout.ms.
        """
        connection = self._connections[broker_id]
        if version < 0:
            version = connection.versions.get(api_key, -1)
        timeout_at_ms = now_ms + (
            self.settings.request_timeout_ms if timeout_ms < 0 else timeout_ms
        )
        if version < 0:
            asked = InFlightRequest(
                0, broker_id, api_key, -1, now_ms, timeout_at_ms, on_answer, context
            )
            on_answer(asked, None, UNSUPPORTED_VERSION, now_ms)
            return
        number = self.wire.send(broker_id, api_key, version, body, answered=answered)
        if answered:
            connection.in_flight.append(
                InFlightRequest(
                    number, broker_id, api_key, version, now_ms, timeout_at_ms, on_answer, context
                )
            )
            if timeout_at_ms < self._next_timeout_ms:
                self._next_timeout_ms = timeout_at_ms

    def disconnect(self, broker_id: int, now_ms: int) -> None:
        """Close a connection; what is under way over it is DISCONNECTED."""
        connection = self._connections.get(broker_id)
        if connection is not None and connection.is_up:
            self._drop(connection, DISCONNECTED, now_ms)

    def least_loaded(self, now_ms: int) -> int:
        """The broker to ask what any can answer: one that is connected and has least to do, else
        one that is being connected to, else the one tried longest ago; NOBODY if all of them are
        in their backoff.  It need not be ready."""
        brokers = self.metadata.brokers
        count = len(brokers)
        start = self.rng.randrange(count) if count else 0
        ready = preparing = fresh = NOBODY
        fewest = self.settings.max_in_flight
        oldest_ms = NEVER_MS
        for at in range(count):
            broker_id = brokers[(start + at) % count]
            connection = self._connections.get(broker_id)
            if connection is None:
                if oldest_ms > -1:
                    fresh, oldest_ms = broker_id, -1
            elif connection.is_ready:
                load = len(connection.in_flight)
                if load < fewest and connection.throttled_until_ms <= now_ms:
                    ready, fewest = broker_id, load
            elif connection.is_up:
                preparing = broker_id
            elif connection.may_connect_ms <= now_ms and connection.tried_ms < oldest_ms:
                fresh, oldest_ms = broker_id, connection.tried_ms
        for found in (ready, preparing):
            if found != NOBODY:
                return found
        return fresh

    # --------------------------------------------------------------------------- answers

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        """The client's."""
        connection = self._connections.get(broker_id)
        if connection is None or not connection.in_flight:
            return
        asked = connection.in_flight[0]
        if asked.correlation_id != correlation_id:
            # What came before was lost on the way: over TCP the connection would have broken.
            if any(other.correlation_id == correlation_id for other in connection.in_flight):
                self._drop(connection, DISCONNECTED, now_ms)
            return
        connection.in_flight.popleft()
        throttle_ms = getattr(body, "throttle_time_ms", 0)
        if throttle_ms:
            connection.throttled_until_ms = max(connection.throttled_until_ms, now_ms + throttle_ms)
        asked.on_answer(asked, body, "", now_ms)

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        """The client's."""
        connection = self._connections.get(broker_id)
        if connection is not None and connection.is_up:
            self._drop(connection, DISCONNECTED, now_ms, hang_up=False)

    # ----------------------------------------------------------------------- connections

    def _connect(self, broker_id: int, now_ms: int) -> None:
        """Begin, unless it is begun or must wait."""
        connection = self._connections.get(broker_id)
        if connection is None:
            connection = self._connections[broker_id] = ConnectionState(broker_id)
        if connection.is_up or self.closed:
            return
        if connection.may_connect_ms > now_ms:
            self.wake_at(connection.may_connect_ms)
            return
        connection.is_up = True
        connection.tried_ms = now_ms
        connection.throttled_until_ms = 0
        connection.versions = {_API_VERSIONS: API_VERSIONS_VERSION}
        settings = self.settings
        # DIFFERS: a wire does not tell when TCP has connected, so the time for that is the time
        # for the first answer, too; a paused broker is given up sooner than by the Java client.
        timeout_ms = backoff_ms(
            connection.setup_failures,
            settings.connection_setup_timeout_ms,
            settings.connection_setup_timeout_max_ms,
            self.rng,
        )
        body = m.ApiVersionsRequest(client_software_name="kcluster", client_software_version="1")
        self.send(
            broker_id,
            _API_VERSIONS,
            body,
            now_ms,
            self._on_versions,
            context=connection,
            timeout_ms=timeout_ms,
        )

    def _on_versions(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        connection: ConnectionState = asked.context
        if failure:
            connection.setup_failures += 1
            self.tell(now_ms, _API_VERSIONS, failure)
            return
        if body.error_code == ErrorCode.UNSUPPORTED_VERSION and asked.version > 0:
            # An older broker, which says in version 0 what it has (KIP-511).
            self.send(
                asked.broker_id,
                _API_VERSIONS,
                m.ApiVersionsRequest(),
                now_ms,
                self._on_versions,
                context=connection,
                version=0,
            )
            return
        connection.take_versions(body.api_keys)
        connection.is_ready = True
        self._metadata_hold_ms = 0
        connection.failures = connection.setup_failures = 0

    def _drop(
        self, connection: ConnectionState, failure: str, now_ms: int, *, hang_up: bool = True
    ) -> None:
        """The connection is gone, and with it what was asked over it, oldest first."""
        lost, connection.in_flight = connection.in_flight, deque()
        connection.is_up = connection.is_ready = False
        connection.tried_ms = now_ms
        settings = self.settings
        connection.may_connect_ms = now_ms + backoff_ms(
            connection.failures,
            settings.reconnect_backoff_ms,
            settings.reconnect_backoff_max_ms,
            self.rng,
        )
        connection.failures += 1
        if hang_up:
            self.wire.disconnect(connection.broker_id)
        if self.metadata.due_ms <= now_ms and not self._asks_metadata:
            self.metadata.failed(now_ms)
        self.metadata.request_update()
        for asked in lost:
            asked.on_answer(asked, None, failure, now_ms)

    # -------------------------------------------------------------------------- metadata

    def _ask_metadata(self, now_ms: int) -> None:
        if self._no_metadata_since_ms < 0:
            self._no_metadata_since_ms = now_ms
        elif now_ms - self._no_metadata_since_ms >= self.settings.rebootstrap_trigger_ms:
            self._rebootstrap(now_ms)
        broker_id = self.least_loaded(now_ms)
        if broker_id == NOBODY:
            self.metadata.rebootstrap(self.wire.broker_ids)
            broker_id = self.least_loaded(now_ms)
        if broker_id == NOBODY or not self.is_ready(broker_id, now_ms):
            # A connection that becomes ready gives the client a turn before.
            self._metadata_hold_ms = now_ms + self.settings.reconnect_backoff_ms
            return
        self._asks_metadata = True
        self.send(
            broker_id,
            _METADATA,
            self.metadata.request(),
            now_ms,
            self._on_metadata,
            context=self.metadata.wanted_version,
        )

    def _on_metadata(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        self._asks_metadata = False
        if failure:
            self.tell(now_ms, _METADATA, failure)
            self.metadata.failed(now_ms)
            return
        if body.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self.tell(now_ms, _METADATA, ErrorCode.REBOOTSTRAP_REQUIRED.name)
            self._rebootstrap(now_ms)
            return
        for topic, partition, error in self.metadata.take(body, asked.context, now_ms):
            place = (topic, partition) if partition >= 0 else None
            self.tell(now_ms, _METADATA, error.name, place)
        if body.brokers:
            self._no_metadata_since_ms = -1

    def _rebootstrap(self, now_ms: int) -> None:
        self._no_metadata_since_ms = now_ms
        for broker_id in self.metadata.brokers:
            self.disconnect(broker_id, now_ms)
        self.metadata.rebootstrap(self.wire.broker_ids)

    def tell(self, now_ms: int, api_key: int, error: str, place: Partition | None = None) -> None:
        """Write an error into the ledger."""
        self.ledger.told.append(Told(now_ms, self.name, APIS[api_key].name, error, place))
