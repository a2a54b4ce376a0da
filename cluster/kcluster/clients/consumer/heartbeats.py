"""A member's heartbeats, which go on while its application works.

Owns: Heartbeat, and the three clocks: when to beat, how long without an answer, how long without
poll().  Never: changes the member's state but as an answer says.
Kafka: HeartbeatThread and Heartbeat; KIP-62.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kcluster.clients.connections import InFlightRequest, NetworkClient
from kcluster.clients.consumer.coordinator import (
    COORDINATOR_GONE,
    Coordinator,
    Membership,
    MemberState,
)
from kcluster.clients.consumer.settings import ConsumerSettings
from kcluster.clients.metadata import backoff_ms
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.timers import NEVER_MS

_HEARTBEAT: Final = int(ApiKey.HEARTBEAT)
_REFUSED: Final = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
)

Leave = Callable[[str, int], bool]
"""(reason, now_ms): leave the group."""


class Heartbeats:
    """Of one member.  `fatal`: the error that its application gets at its next poll."""

    def __init__(
        self,
        settings: ConsumerSettings,
        network: NetworkClient,
        coordinator: Coordinator,
        member: Membership,
        leave: Leave,
    ) -> None:
        self.fatal = ""
        self._settings = settings
        self._network = network
        self._coordinator = coordinator
        self._member = member
        self._leave = leave
        self._beat_ms = NEVER_MS
        self._session_ends_ms = NEVER_MS
        self._poll_ends_ms = NEVER_MS
        self._hold_ms = 0
        """Nothing can be sent before: the coordinator is looked for, or connected to."""
        self._failures = 0

    @property
    def due_ms(self) -> int:
        """When `beat` has something to do; NEVER_MS for never."""
        if not self._member.heartbeats:
            return NEVER_MS
        return max(self._hold_ms, min(self._beat_ms, self._session_ends_ms, self._poll_ends_ms))

    def begin(self, now_ms: int) -> None:
        """The coordinator has let this member in."""
        self._beat_ms = now_ms + self._settings.heartbeat_interval_ms
        self._session_ends_ms = now_ms + self._settings.session_timeout_ms
        self.polled(now_ms)

    def polled(self, now_ms: int) -> None:
        """The application is in poll()."""
        self._poll_ends_ms = now_ms + self._settings.max_poll_interval_ms

    def beat(self, now_ms: int) -> None:
        """Send a heartbeat, or see that something has taken too long."""
        if now_ms < self.due_ms:
            return
        coordinator = self._coordinator
        if not coordinator.is_ready(now_ms):
            self._hold_ms = now_ms + self._settings.retry_backoff_ms
        elif now_ms >= self._session_ends_ms:
            # No heartbeat was answered for so long: perhaps another coordinator is known by now.
            self._session_ends_ms = now_ms + self._settings.session_timeout_ms
            coordinator.mark_unknown(now_ms)
        elif now_ms >= self._poll_ends_ms:
            self._leave("consumer poll timeout has expired.", now_ms)
        else:
            self._send(now_ms)

    def _send(self, now_ms: int) -> None:
        member, settings = self._member, self._settings
        self._beat_ms = now_ms + settings.heartbeat_interval_ms
        body = m.HeartbeatRequest(
            settings.group_id,
            member.generation_id,
            member.member_id,
            settings.group_instance_id or None,
        )
        self._coordinator.ask(_HEARTBEAT, body, now_ms, self._on_answer, context=member.generation)

    def _on_answer(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        if failure:
            self._failed(now_ms)
            return
        error = error_of(body.error_code)
        if not error:
            self._answered(now_ms)
            return
        self._network.tell(now_ms, _HEARTBEAT, error.name)
        member = self._member
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            if member.state is MemberState.STABLE:
                member.request_rejoin("group is already rebalancing")
            self._answered(now_ms)
        elif error in COORDINATOR_GONE:
            self._coordinator.mark_unknown(now_ms)
            self._failed(now_ms)
        elif error in _REFUSED:
            if member.generation != asked.context:
                self._answered(now_ms)
                return
            member.refused("HEARTBEAT", error)
            if error is ErrorCode.FENCED_INSTANCE_ID:
                self.fatal = error.name
            else:
                self._failed(now_ms)
        else:
            if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                self.fatal = error.name
            self._failed(now_ms)

    def _answered(self, now_ms: int) -> None:
        self._failures = 0
        self._session_ends_ms = now_ms + self._settings.session_timeout_ms

    def _failed(self, now_ms: int) -> None:
        settings = self._settings
        self._beat_ms = now_ms + backoff_ms(
            self._failures,
            settings.retry_backoff_ms,
            settings.retry_backoff_max_ms,
            self._network.rng,
        )
        self._failures += 1
