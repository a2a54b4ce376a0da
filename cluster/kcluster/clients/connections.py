"""A client's connections to the brokers, and its requests in flight.

Owns: the state and API versions of each connection, requests in flight and their timeouts,
reconnect backoff, Metadata requests, both forms of FindCoordinator.  Never: interprets responses
other than ApiVersions and Metadata.
Kafka: NetworkClient, ClusterConnectionStates, InFlightRequests, NodeApiVersions;
KIP-580 (exponential backoff), KIP-899 and KIP-1102 (rebootstrap), KIP-1242 (cluster check).

A client calls `poll` at the beginning of each turn, and forwards `on_reply` and `on_disconnected`.
The `on_response` of a request is called within the same turn.  A request without a response is in
the ledger by then; the reader of a response puts an error in it there (`refusal`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from kcluster.clients.ledger import ClientError, Ledger, Partition
from kcluster.clients.metadata import NO_BROKER, Metadata, backoff_ms
from kcluster.clients.wire import Wire, broker_of
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, VERSIONS, ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.messages import Message
from kcluster.structs import Frozen
from kcluster.timers import NEVER_MS

DISCONNECTED: Final = "DISCONNECTED"
REQUEST_TIMED_OUT: Final = "REQUEST_TIMED_OUT"
UNSUPPORTED_VERSION: Final = "UNSUPPORTED_VERSION"
"""The reasons why a request got no response."""

TRANSACTION_VERSION: Final = "transaction.version"
API_VERSIONS_VERSION: Final = 5
_METADATA: Final = int(ApiKey.METADATA)
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_PRODUCE: Final = int(ApiKey.PRODUCE)
_SASL_AUTHENTICATE: Final = int(ApiKey.SASL_AUTHENTICATE)
_FIND_COORDINATOR: Final = int(ApiKey.FIND_COORDINATOR)
_FIRST_VERSION_WITH_MANY_KEYS: Final = 4
GROUP_KEY: Final = 0
TRANSACTION_KEY: Final = 1
"""The types of a key in FindCoordinator: a group id, a transactional id."""
_SUPPORTED: Final = {
    key: (low, high - APIS[key].is_latest_unstable) for key, (low, high) in VERSIONS.items()
}
"""The lowest and highest version that this client supports, by API key."""


def _newest_common(api_keys: Any) -> int:
    """The newest version of ApiVersions that an older broker also knows; 0 if the broker's response
    does not show one."""
    newest = (one.max_version for one in api_keys if one.api_key == _API_VERSIONS)
    return min(next(newest, 0), API_VERSIONS_VERSION)


class NetworkSettings(Frozen, frozen=True):
    """The settings of a NetworkClient, by Kafka's names and with its defaults: request.timeout.ms,
    reconnect.backoff.ms and .max.ms, socket.connection.setup.timeout.ms and .max.ms,
    metadata.recovery.rebootstrap.trigger.ms, metadata.cluster.check.enable; `max_in_flight`:
    max.in.flight.requests.per.connection, 100 in a consumer."""

    request_timeout_ms: int = 30_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    connection_setup_timeout_ms: int = 10_000
    connection_setup_timeout_max_ms: int = 30_000
    max_in_flight: int = 5
    rebootstrap_trigger_ms: int = 300_000
    cluster_check: bool = True


class ClientRequest(Struct):
    """A request and its outcome.  `context` belongs to its sender."""

    correlation_id: int
    broker_id: int
    api_key: int
    version: int
    sent_ms: int
    timeout_at_ms: int
    on_response: OnResponse
    context: Any
    response: Any = None
    failure: str = ""
    """Why there is no response."""


OnResponse = Callable[[ClientRequest, int], None]
"""Called with (request, which has its response or its failure; now_ms)."""


class ConnectionState:
    """The connection to one broker.  It outlives the connection itself, for the backoff.
    Kafka: ClusterConnectionStates.NodeConnectionState."""

    __slots__ = (
        "broker_id",
        "connect_after_ms",
        "failures",
        "in_flight",
        "is_ready",
        "is_up",
        "last_attempt_ms",
        "setup_failures",
        "throttled_until_ms",
        "versions",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.is_up = False
        """Whether the connection is established, or being established."""
        self.is_ready = False
        """Whether the connection is established and the broker's API versions are known."""
        self.in_flight: deque[ClientRequest] = deque()
        self.versions: dict[int, int] = {}
        self.failures = 0
        self.setup_failures = 0
        self.last_attempt_ms = -1
        self.connect_after_ms = 0
        self.throttled_until_ms = 0

    def set_versions(self, api_keys: Any) -> None:
        """Record the versions that the broker serves, from `ApiVersionsResponse.api_keys`."""
        self.versions = {}
        for entry in api_keys:
            low, high = _SUPPORTED.get(entry.api_key, (0, -1))
            if low <= entry.max_version and entry.min_version <= high:
                self.versions[entry.api_key] = min(high, entry.max_version)


class NetworkClient:
    """All connections of one client.  `name`: the client's name, for the ledger."""

    def __init__(
        self, name: str, settings: NetworkSettings, metadata: Metadata, ledger: Ledger
    ) -> None:
        self.name = name
        self.settings = settings
        self.metadata = metadata
        self.ledger = ledger
        self.closed = False
        self.transaction_version = 0
        """The finalized feature transaction.version, from the newest response to ApiVersions."""
        self._features_epoch = -1
        self._connections: dict[int, ConnectionState] = {}
        self._next_timeout_ms = NEVER_MS
        self._wake_ms = NEVER_MS
        self._is_metadata_in_flight = False
        self._metadata_hold_ms = 0
        """The end of a backoff that began because no broker was ready for a Metadata request."""
        self._no_metadata_since_ms = -1
        """The time at which metadata was first needed after the last successful response; for
        rebootstrap."""

    def start(self, wire: Wire, now_ms: int) -> None:
        """Attach to a wire.  Nothing is sent before `poll`."""
        self.wire = wire
        self.rng = wire.rng
        self.metadata.start(wire.broker_ids, wire.rng)

    def close(self) -> None:
        """Close every connection, without calling back for the requests in flight."""
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
        """The time at which `poll` must be called at the latest; NEVER_MS for never."""
        due_ms = self._next_timeout_ms
        if self._wake_ms < due_ms:
            due_ms = self._wake_ms
        if self._is_metadata_in_flight:
            return due_ms
        metadata_ms = self.metadata.due_ms
        if metadata_ms < self._metadata_hold_ms:
            metadata_ms = self._metadata_hold_ms
        return metadata_ms if metadata_ms < due_ms else due_ms

    def poll(self, now_ms: int) -> None:
        """Time out requests; request metadata if it is due."""
        if now_ms >= self._wake_ms:
            self._wake_ms = NEVER_MS
        if now_ms >= self._next_timeout_ms:
            self._time_out(now_ms)
        if now_ms >= self.metadata.due_ms and not self._is_metadata_in_flight and not self.closed:
            self._send_metadata_request(now_ms)

    def _time_out(self, now_ms: int) -> None:
        for connection in tuple(self._connections.values()):
            if any(request.timeout_at_ms <= now_ms for request in connection.in_flight):
                self._close_connection(connection, REQUEST_TIMED_OUT, now_ms)
        self._next_timeout_ms = min(
            (request.timeout_at_ms for x in self._connections.values() for request in x.in_flight),
            default=NEVER_MS,
        )

    def wake_at(self, at_ms: int) -> None:
        """Give the client a turn at this time at the latest."""
        self._wake_ms = min(self._wake_ms, at_ms)

    # --------------------------------------------------------------------------- sending

    def is_ready(self, broker_id: int, now_ms: int) -> bool:
        """Whether a request can be sent to a broker now.  If not, connect as soon as the backoff
        allows; the client gets a turn when the result may have changed.  Kafka: ready."""
        connection = self._connections.get(broker_id)
        if connection is not None and connection.is_ready:
            if connection.throttled_until_ms > now_ms:
                self.wake_at(connection.throttled_until_ms)
                return False
            return len(connection.in_flight) < self.settings.max_in_flight
        self._connect(broker_id, now_ms)
        return False

    def connection_failed(self, broker_id: int) -> bool:
        """Whether the last connection to a broker has ended and no new one was started."""
        connection = self._connections.get(broker_id)
        return connection is not None and not connection.is_up and connection.failures > 0

    def in_flight(self, broker_id: int) -> int:
        """The number of requests to a broker without a response."""
        connection = self._connections.get(broker_id)
        return 0 if connection is None else len(connection.in_flight)

    def version(self, broker_id: int, api_key: int) -> int:
        """The highest version that both a ready broker and this client support; -1 if there is
        none."""
        return self._connections[broker_id].versions.get(api_key, -1)

    def send(
        self,
        broker_id: int,
        api_key: int,
        body: Message,
        now_ms: int,
        on_response: OnResponse,
        *,
        context: object = None,
        version: int = -1,
        timeout_ms: int = -1,
        answered: bool = True,
    ) -> None:
        """Send a request to a broker that `is_ready`.  `on_response` is called exactly once, unless
        `answered` is False or the client is closed first.

        `version`: by default the highest that both sides support.  `timeout_ms`: by default
        request.timeout.ms.
        """
        connection = self._connections[broker_id]
        if version < 0:
            version = connection.versions.get(api_key, -1)
        timeout_at_ms = now_ms + (
            self.settings.request_timeout_ms if timeout_ms < 0 else timeout_ms
        )
        if version < 0:
            request = ClientRequest(
                0, broker_id, api_key, -1, now_ms, timeout_at_ms, on_response, context
            )
            self._end_without_response(request, UNSUPPORTED_VERSION, now_ms)
            return
        correlation_id = self.wire.send(broker_id, api_key, version, body, answered=answered)
        if answered:
            connection.in_flight.append(
                ClientRequest(
                    correlation_id,
                    broker_id,
                    api_key,
                    version,
                    now_ms,
                    timeout_at_ms,
                    on_response,
                    context,
                )
            )
            if timeout_at_ms < self._next_timeout_ms:
                self._next_timeout_ms = timeout_at_ms

    def find_coordinator(
        self,
        broker_id: int,
        key_type: int,
        key: str,
        now_ms: int,
        on_response: OnResponse,
        context: object = None,
    ) -> None:
        """Send FindCoordinator to a broker that `is_ready`.  In every version the response at
        `on_response` has the fields of one coordinator."""
        if self.version(broker_id, _FIND_COORDINATOR) < _FIRST_VERSION_WITH_MANY_KEYS:
            body = m.FindCoordinatorRequest(key=key, key_type=key_type)
        else:
            body = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])

        def handle(request: ClientRequest, then_ms: int) -> None:
            if not request.failure and request.version >= _FIRST_VERSION_WITH_MANY_KEYS:
                (request.response,) = request.response.coordinators
            on_response(request, then_ms)

        self.send(broker_id, _FIND_COORDINATOR, body, now_ms, handle, context=context)

    def disconnect(self, broker_id: int, now_ms: int) -> None:
        """Close a connection; its requests in flight end as DISCONNECTED."""
        connection = self._connections.get(broker_id)
        if connection is not None and connection.is_up:
            self._close_connection(connection, DISCONNECTED, now_ms)

    def least_loaded(self, now_ms: int) -> int:
        """A broker for a request that any broker can serve, though it may not be ready: the
        connected broker with the fewest requests in flight, else a broker that is connecting, else
        the broker with the oldest connection attempt; NO_BROKER if all are backing off.  Kafka:
        leastLoadedNode."""
        brokers = self.metadata.brokers
        count = len(brokers)
        start = self.rng.randrange(count) if count else 0
        ready = connecting = fresh = NO_BROKER
        fewest = self.settings.max_in_flight
        oldest_ms = NEVER_MS
        for step in range(count):
            broker_id = brokers[(start + step) % count]
            connection = self._connections.get(broker_id)
            if connection is None:
                if oldest_ms > -1:
                    fresh, oldest_ms = broker_id, -1
            elif connection.is_ready:
                load = len(connection.in_flight)
                if load < fewest and connection.throttled_until_ms <= now_ms:
                    ready, fewest = broker_id, load
            elif connection.is_up:
                connecting = broker_id
            elif connection.connect_after_ms <= now_ms and connection.last_attempt_ms < oldest_ms:
                fresh, oldest_ms = broker_id, connection.last_attempt_ms
        if ready != NO_BROKER:
            return ready
        return fresh if connecting == NO_BROKER else connecting

    # ------------------------------------------------------------------------- responses

    def on_reply(self, broker_id: int, correlation_id: int, body: Message, now_ms: int) -> None:
        """Handle a response, which the client forwards."""
        connection = self._connections.get(broker_id)
        if connection is None or not connection.in_flight:
            return
        request = connection.in_flight[0]
        if request.correlation_id != correlation_id:
            # An earlier response was lost on the link: over TCP the connection would have broken.
            if any(other.correlation_id == correlation_id for other in connection.in_flight):
                self._close_connection(connection, DISCONNECTED, now_ms)
            return
        connection.in_flight.popleft()
        throttle_ms = getattr(body, "throttle_time_ms", 0)
        if throttle_ms:
            connection.throttled_until_ms = max(connection.throttled_until_ms, now_ms + throttle_ms)
        request.response = body
        request.on_response(request, now_ms)

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        """Handle the end of a connection, which the client forwards."""
        connection = self._connections.get(broker_id)
        if connection is not None and connection.is_up:
            self._close_connection(connection, DISCONNECTED, now_ms, hang_up=False)

    def on_login_failed(self, broker_id: int, error: str, now_ms: int) -> None:
        """Handle the refusal of a login, which the client forwards: the connection is closed."""
        self.record_error(now_ms, _SASL_AUTHENTICATE, error)
        self.on_disconnected(broker_id, now_ms)

    # ----------------------------------------------------------------------- connections

    def _connect(self, broker_id: int, now_ms: int) -> None:
        """Start connecting, unless a connection exists or its backoff has not ended."""
        connection = self._connections.get(broker_id)
        if connection is None:
            connection = self._connections[broker_id] = ConnectionState(broker_id)
        if connection.is_up or self.closed:
            return
        if connection.connect_after_ms > now_ms:
            self.wake_at(connection.connect_after_ms)
            return
        connection.is_up = True
        connection.last_attempt_ms = now_ms
        connection.throttled_until_ms = 0
        connection.versions = {_API_VERSIONS: API_VERSIONS_VERSION}
        settings = self.settings
        # DIFFERS: a wire does not report when TCP has connected, so the connection setup timeout
        # covers the ApiVersions response, too: a paused broker is given up earlier than in Java.
        timeout_ms = backoff_ms(
            connection.setup_failures,
            settings.connection_setup_timeout_ms,
            settings.connection_setup_timeout_max_ms,
            self.rng,
        )
        self.send(
            broker_id,
            _API_VERSIONS,
            self._api_versions_request(broker_id),
            now_ms,
            self._on_versions,
            context=connection,
            timeout_ms=timeout_ms,
        )

    def _api_versions_request(self, broker_id: int) -> m.ApiVersionsRequest:
        """The request with the cluster's id, once known, and the id of the broker that should be at
        this address."""
        body = m.ApiVersionsRequest(client_software_name="kcluster", client_software_version="1")
        if self.settings.cluster_check and self.metadata.cluster_id is not None:
            body.cluster_id = self.metadata.cluster_id
            body.node_id = broker_of(broker_id)
        return body

    def _on_versions(self, request: ClientRequest, now_ms: int) -> None:
        connection: ConnectionState = request.context
        response: Any = request.response
        if request.failure:
            connection.setup_failures += 1
            return
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and request.version > 0:
            # An older broker answers in version 0 with its own versions (KIP-511).
            self.send(
                request.broker_id,
                _API_VERSIONS,
                self._api_versions_request(request.broker_id),
                now_ms,
                self._on_versions,
                context=connection,
                version=_newest_common(response.api_keys),
            )
            return
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self.record_error(now_ms, _API_VERSIONS, ErrorCode.REBOOTSTRAP_REQUIRED.name)
            self.disconnect(request.broker_id, now_ms)
            self._rebootstrap(now_ms)
            return
        connection.set_versions(response.api_keys)
        if response.finalized_features_epoch > self._features_epoch:
            self._features_epoch = response.finalized_features_epoch
            self.transaction_version = next(
                (
                    feature.max_version_level
                    for feature in response.finalized_features
                    if feature.name == TRANSACTION_VERSION
                ),
                0,
            )
        connection.is_ready = True
        self._metadata_hold_ms = 0
        connection.failures = connection.setup_failures = 0

    def _close_connection(
        self, connection: ConnectionState, failure: str, now_ms: int, *, hang_up: bool = True
    ) -> None:
        """Fail the requests in flight, oldest first, and back off.  `hang_up`: the broker's end is
        still open, and must be closed."""
        lost, connection.in_flight = connection.in_flight, deque()
        connection.is_up = connection.is_ready = False
        connection.last_attempt_ms = now_ms
        settings = self.settings
        connection.connect_after_ms = now_ms + backoff_ms(
            connection.failures,
            settings.reconnect_backoff_ms,
            settings.reconnect_backoff_max_ms,
            self.rng,
        )
        connection.failures += 1
        if hang_up:
            self.wire.disconnect(connection.broker_id)
        if self.metadata.due_ms <= now_ms and not self._is_metadata_in_flight:
            self.metadata.update_failed(now_ms)
        self.metadata.request_update()
        for request in lost:
            self._end_without_response(request, failure, now_ms)

    def _end_without_response(self, request: ClientRequest, failure: str, now_ms: int) -> None:
        if request.api_key != _PRODUCE:  # the sender adds the failure for each of its partitions
            self.record_error(now_ms, request.api_key, failure)
        request.failure = failure
        request.on_response(request, now_ms)

    # -------------------------------------------------------------------------- metadata

    def _send_metadata_request(self, now_ms: int) -> None:
        if self._no_metadata_since_ms < 0:
            self._no_metadata_since_ms = now_ms
        elif now_ms - self._no_metadata_since_ms >= self.settings.rebootstrap_trigger_ms:
            self._rebootstrap(now_ms)
        broker_id = self.least_loaded(now_ms)
        if broker_id == NO_BROKER:
            self.metadata.rebootstrap(self.wire.broker_ids)
            broker_id = self.least_loaded(now_ms)
        if broker_id == NO_BROKER or not self.is_ready(broker_id, now_ms):
            # If a connection becomes ready earlier, its response triggers a turn of the client.
            self._metadata_hold_ms = now_ms + self.settings.reconnect_backoff_ms
            return
        self._is_metadata_in_flight = True
        self.send(
            broker_id,
            _METADATA,
            self.metadata.build_request(),
            now_ms,
            self._on_metadata,
            context=self.metadata.request_version,
        )

    def _on_metadata(self, request: ClientRequest, now_ms: int) -> None:
        self._is_metadata_in_flight = False
        response: Any = request.response
        if request.failure:
            self.metadata.update_failed(now_ms)
            return
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self.record_error(now_ms, _METADATA, ErrorCode.REBOOTSTRAP_REQUIRED.name)
            self._rebootstrap(now_ms)
            return
        for topic, index, error in self.metadata.update(response, request.context, now_ms):
            is_denied = error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            partition = (topic, index) if index >= 0 or is_denied else None
            self.record_error(now_ms, _METADATA, error.name, partition)
        if response.brokers:
            self._no_metadata_since_ms = -1

    def _rebootstrap(self, now_ms: int) -> None:
        self._no_metadata_since_ms = now_ms
        for broker_id in self.metadata.brokers:
            self.disconnect(broker_id, now_ms)
        self.metadata.rebootstrap(self.wire.broker_ids)

    # ---------------------------------------------------------------------------- errors

    def refusal(self, request: ClientRequest, now_ms: int) -> ErrorCode:
        """The error of a whole request, which is put into the ledger; UNSUPPORTED_VERSION if it was
        not sent because the broker knows no such API, NETWORK_EXCEPTION if there is no response,
        NONE if all went well."""
        if request.failure == UNSUPPORTED_VERSION:
            return ErrorCode.UNSUPPORTED_VERSION
        if request.failure:
            return ErrorCode.NETWORK_EXCEPTION
        error = error_of(request.response.error_code)
        if error:
            self.record_error(now_ms, request.api_key, error.name)
        return error

    def record_error(
        self, now_ms: int, api_key: int, error: str, partition: Partition | None = None
    ) -> None:
        """Add an error to the ledger."""
        self.ledger.errors.append(
            ClientError(now_ms, self.name, APIS[api_key].name, error, partition)
        )


class RetryBackoff:
    """The exponential backoff of one kind of request.  `failures`: the number of failures in a
    row."""

    def __init__(self, network: NetworkClient) -> None:
        self.failures = 0
        self._network = network

    def after_failure(self, now_ms: int) -> int:
        """The time of the next attempt, after an attempt that failed now."""
        settings = self._network.metadata.settings
        wait_ms = backoff_ms(
            self.failures,
            settings.retry_backoff_ms,
            settings.retry_backoff_max_ms,
            self._network.rng,
        )
        self.failures += 1
        return now_ms + wait_ms
