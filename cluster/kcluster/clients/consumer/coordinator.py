"""A consumer's connection to its group coordinator, and its state as a member of the group.

Owns: FindCoordinator, the separate connection, the loss of a coordinator; MembershipState, the
fields of a member's state.  Never: joins (group.py, which also moves the state through a
rebalance), sends heartbeats (heartbeats.py), commits (commits.py). Kafka: AbstractCoordinator
(coordinator, MemberState, Generation).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from kcluster.clients.connections import (
    GROUP_KEY,
    ClientRequest,
    NetworkClient,
    OnResponse,
    RetryBackoff,
)
from kcluster.clients.consumer.settings import ConsumerSettings
from kcluster.clients.metadata import NO_BROKER, Metadata
from kcluster.clients.wire import SECOND_CONNECTION, broker_of
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.timers import NEVER_MS

NO_GENERATION: Final = -1
NO_MEMBER_ID: Final = ""
COORDINATOR_GONE: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
"""Errors of a broker that is not the group's coordinator: another one must be found."""


class MemberState(IntEnum):
    """The state of a member.  Kafka: AbstractCoordinator.MemberState."""

    UNJOINED = 0
    PREPARING_REBALANCE = 1
    COMPLETING_REBALANCE = 2
    STABLE = 3


class MembershipState:
    """A consumer's state in its group.  `generation`: (generation id, member id), as in requests.

        UNJOINED --> PREPARING_REBALANCE --> COMPLETING_REBALANCE --> STABLE
                 JoinGroup sent        JoinGroup succeeded     SyncGroup succeeded

    From STABLE a member goes to PREPARING_REBALANCE when it joins again.  `reset` leads from every
    state to UNJOINED: the member has left, or an error named it or its generation unknown.
    """

    def __init__(self) -> None:
        self.state = MemberState.UNJOINED
        self.generation_id = NO_GENERATION
        self.member_id = NO_MEMBER_ID
        self.protocol_name = ""
        self.rejoin_needed = True
        self.needs_join_prepare = True
        """Whether offsets must be committed and partitions revoked before the member joins."""
        self.rejoin_reason = ""

    @property
    def generation(self) -> tuple[int, str]:
        return self.generation_id, self.member_id

    @property
    def is_rebalancing(self) -> bool:
        return self.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

    @property
    def sends_heartbeats(self) -> bool:
        """Whether the coordinator expects heartbeats from this member."""
        return self.state in (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)

    def request_rejoin(self, reason: str) -> None:
        """Join again in the next poll()."""
        self.rejoin_reason = reason
        self.rejoin_needed = True

    def reset(self, reason: str, *, forget_member_id: bool) -> None:
        """Leave the generation, and join again."""
        self.state = MemberState.UNJOINED
        self.generation_id = NO_GENERATION
        self.protocol_name = ""
        if forget_member_id:
            self.member_id = NO_MEMBER_ID
        self.needs_join_prepare = True
        self.request_rejoin(reason)

    def reset_on_error(self, api: str, error: ErrorCode) -> None:
        """Handle an error that names the member or its generation unknown.  The member id stays
        valid after ILLEGAL_GENERATION.  Kafka: resetStateOnResponseError."""
        self.reset(
            f"encountered {error.name} from {api} response",
            forget_member_id=error is not ErrorCode.ILLEGAL_GENERATION,
        )


class EpochState(MembershipState):
    """The state of a KIP-848 member, as commits need it: `generation_id` is its epoch.  An error of
    a commit changes nothing, because the next heartbeat meets the cause."""

    def reset_on_error(self, api: str, error: ErrorCode) -> None:
        pass

    def request_rejoin(self, reason: str) -> None:
        pass


class Coordinator:
    """The group coordinator.  `fatal`: the error that poll() throws, "" for none.  `retry_ms`: the
    time at which `is_ready` may change without a response; valid for the current turn of the
    consumer, which resets it."""

    def __init__(
        self, settings: ConsumerSettings, metadata: Metadata, network: NetworkClient
    ) -> None:
        self.fatal = ""
        self.retry_ms = NEVER_MS
        self._settings = settings
        self._metadata = metadata
        self._network = network
        self._connection = NO_BROKER
        self._is_finding = False
        self._find_after_ms = 0
        self._backoff = RetryBackoff(network)

    @property
    def is_known(self) -> bool:
        """Whether a coordinator is known."""
        return self._connection != NO_BROKER

    @property
    def broker_id(self) -> int:
        """The coordinator's broker id; NO_BROKER if it is unknown."""
        return NO_BROKER if self._connection == NO_BROKER else broker_of(self._connection)

    def is_ready(self, now_ms: int) -> bool:
        """Whether a request can be sent to the coordinator now.  If not, find the coordinator or
        connect to it.  Kafka: ensureCoordinatorReady."""
        connection = self._connection
        if connection != NO_BROKER:
            network = self._network
            if network.is_ready(connection, now_ms):
                return True
            if not network.connection_failed(connection):
                return False
            self._connection_lost(now_ms)
        self._find(now_ms)
        return False

    def _connection_lost(self, now_ms: int) -> None:
        self._connection = NO_BROKER
        if self._backoff.failures:
            self._find_after_ms = self._backoff.after_failure(now_ms)
        else:
            self._backoff.failures = 1

    def mark_unknown(self, now_ms: int) -> None:
        """Disconnect and find another coordinator: this one no longer coordinates, or does not
        respond. Kafka: markCoordinatorUnknown."""
        connection, self._connection = self._connection, NO_BROKER
        if connection != NO_BROKER:
            self._network.disconnect(connection, now_ms)

    # ---------------------------------------------------------------------------- finding

    def _find(self, now_ms: int) -> None:
        if self._is_finding:
            return
        if self._find_after_ms > now_ms:
            self.retry_ms = self._find_after_ms
            return
        network = self._network
        broker_id = network.least_loaded(now_ms)
        if broker_id == NO_BROKER or not network.is_ready(broker_id, now_ms):
            if broker_id == NO_BROKER:
                self._metadata.request_update()
                self._find_after_ms = now_ms + self._settings.retry_backoff_ms
                self.retry_ms = self._find_after_ms
            return
        self._is_finding = True
        group = self._settings.group_id
        network.find_coordinator(broker_id, GROUP_KEY, group, now_ms, self._on_found)

    def _on_found(self, request: ClientRequest, now_ms: int) -> None:
        self._is_finding = False
        error = self._network.refusal(request, now_ms)
        if error:
            if not error.retriable:
                self.fatal = error.name
            self._find_after_ms = self._backoff.after_failure(now_ms)
            self._metadata.request_update()
            return
        self._connection = request.response.node_id + SECOND_CONNECTION
        is_ready = self._network.is_ready(self._connection, now_ms)
        if not is_ready and self._network.connection_failed(self._connection):
            # The broker is down, and the other brokers have not noticed yet.
            self._connection_lost(now_ms)
            self._backoff.failures -= 1  # one failure, which is waited for even if it is the first
            self._find_after_ms = self._backoff.after_failure(now_ms)

    # ---------------------------------------------------------------------------- sending

    def send(
        self,
        api_key: int,
        body: Message,
        now_ms: int,
        on_response: OnResponse,
        *,
        context: object = None,
        timeout_ms: int = -1,
    ) -> None:
        """Send a request to the coordinator, which `is_ready`.  If there is no response, the
        coordinator counts as unknown when `on_response` is called."""

        def handle(request: ClientRequest, then_ms: int) -> None:
            if not request.failure:
                self._backoff.failures = 0
            elif request.broker_id == self._connection:
                self._connection = NO_BROKER
            on_response(request, then_ms)

        self._network.send(
            self._connection, api_key, body, now_ms, handle, context=context, timeout_ms=timeout_ms
        )

    def refusal(self, request: ClientRequest, now_ms: int) -> ErrorCode:
        """NetworkClient.refusal; finds the coordinator again if this broker is not it."""
        error = self._network.refusal(request, now_ms)
        if error in COORDINATOR_GONE:
            self.mark_unknown(now_ms)
        return error
