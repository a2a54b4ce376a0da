"""A member's heartbeats, which continue while its application processes records.

Owns: Heartbeat requests, and three timers: the heartbeat interval, the session timeout, the poll
interval.  Never: changes the member's state, except as a response or the poll timer demands.
Kafka: HeartbeatThread and Heartbeat; KIP-62.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.clients.connections import ClientRequest, NetworkClient, RetryBackoff
from kcluster.clients.consumer.coordinator import Coordinator, MembershipState, MemberState
from kcluster.clients.consumer.settings import ConsumerSettings
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.timers import NEVER_MS

_HEARTBEAT: Final = int(ApiKey.HEARTBEAT)
_REFUSED: Final = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
)

Leave = Callable[[str, int], bool]
"""Called with (reason, now_ms) to leave the group."""


class Heartbeats:
    """The heartbeats of one member.  `fatal`: the error that the next poll() throws, "" for
    none."""

    def __init__(
        self,
        settings: ConsumerSettings,
        network: NetworkClient,
        coordinator: Coordinator,
        member: MembershipState,
        leave: Leave,
    ) -> None:
        self.fatal = ""
        self._settings = settings
        self._coordinator = coordinator
        self._member = member
        self._leave = leave
        self._heartbeat_ms = NEVER_MS
        self._session_deadline_ms = NEVER_MS
        self._poll_deadline_ms = NEVER_MS
        self._retry_ms = 0
        """The time of the next attempt, because the coordinator was not ready."""
        self._backoff = RetryBackoff(network)

    @property
    def due_ms(self) -> int:
        """The time at which `run` must be called; NEVER_MS for never."""
        if not self._member.sends_heartbeats:
            return NEVER_MS
        return max(
            self._retry_ms,
            min(self._heartbeat_ms, self._session_deadline_ms, self._poll_deadline_ms),
        )

    def start(self, now_ms: int) -> None:
        """Start all timers, because the member has joined."""
        self._heartbeat_ms = now_ms + self._settings.heartbeat_interval_ms
        self._session_deadline_ms = now_ms + self._settings.session_timeout_ms
        self.reset_poll_timer(now_ms)

    def reset_poll_timer(self, now_ms: int) -> None:
        """Restart the poll interval, because the application has called poll()."""
        self._poll_deadline_ms = now_ms + self._settings.max_poll_interval_ms

    def run(self, now_ms: int) -> None:
        """Send a heartbeat, or act on an expired timer."""
        if now_ms < self.due_ms:
            return
        coordinator = self._coordinator
        if not coordinator.is_ready(now_ms):
            self._retry_ms = now_ms + self._settings.retry_backoff_ms
        elif now_ms >= self._session_deadline_ms:
            # No heartbeat was answered for session.timeout.ms, so find the coordinator again.
            self._session_deadline_ms = now_ms + self._settings.session_timeout_ms
            coordinator.mark_unknown(now_ms)
        elif now_ms >= self._poll_deadline_ms:
            self._leave("consumer poll timeout has expired.", now_ms)
        else:
            self._send(now_ms)

    def _send(self, now_ms: int) -> None:
        member, settings = self._member, self._settings
        self._heartbeat_ms = now_ms + settings.heartbeat_interval_ms
        body = m.HeartbeatRequest(
            settings.group_id,
            member.generation_id,
            member.member_id,
            settings.group_instance_id or None,
        )
        self._coordinator.send(
            _HEARTBEAT, body, now_ms, self._on_response, context=member.generation
        )

    def _on_response(self, request: ClientRequest, now_ms: int) -> None:
        error = self._coordinator.refusal(request, now_ms)
        member = self._member
        if not error:
            self._succeeded(now_ms)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            if member.state is MemberState.STABLE:
                member.request_rejoin("group is already rebalancing")
            self._succeeded(now_ms)
        elif error in _REFUSED:
            if member.generation != request.context:
                self._succeeded(now_ms)
                return
            member.reset_on_error("HEARTBEAT", error)
            if error is ErrorCode.FENCED_INSTANCE_ID:
                self.fatal = error.name
            else:
                self._failed(now_ms)
        else:
            if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                self.fatal = error.name
            self._failed(now_ms)

    def _succeeded(self, now_ms: int) -> None:
        self._backoff.failures = 0
        self._session_deadline_ms = now_ms + self._settings.session_timeout_ms

    def _failed(self, now_ms: int) -> None:
        self._heartbeat_ms = self._backoff.after_failure(now_ms)
