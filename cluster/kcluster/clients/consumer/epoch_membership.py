"""A client's membership in a group that has member epochs: the coordinator assigns, the member
reconciles.

Owns: the member's epoch, the times of its heartbeats, the reconciliation of its owned partitions
with its assigned ones.  Never: knows a heartbeat's message (consumer_member.py: KIP-848,
streams_member.py: KIP-1071), assigns, commits (commits.py).
Kafka: AbstractMembershipManager, AbstractHeartbeatRequestManager of AsyncKafkaConsumer.

    JOINING        epoch 0 was sent, or will be
    RECONCILING    a new assignment: commit, give up partitions outside of it, take the others
    ACKNOWLEDGING  the next heartbeat reports the owned partitions to the coordinator
    STABLE         nothing changes
    Fenced or unknown: the member gives up everything and joins again with the same member id.

Kafka's callbacks of rebalance listeners are left out: the application has none.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final
from uuid import UUID

from kcluster.clients.connections import ClientRequest, RetryBackoff
from kcluster.clients.consumer.coordinator import COORDINATOR_GONE, EpochState, MemberState
from kcluster.clients.consumer.membership import ClientMembership, MembershipParts
from kcluster.clients.ledger import Partition
from kcluster.clients.metadata import at_once_ms
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.timers import NEVER_MS

if TYPE_CHECKING:
    from kcluster.protocol.messages import (
        ConsumerGroupHeartbeatResponse,
        StreamsGroupHeartbeatResponse,
    )

    HeartbeatResponse = ConsumerGroupHeartbeatResponse | StreamsGroupHeartbeatResponse

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
_RETRIED: Final = (
    *COORDINATOR_GONE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.NETWORK_EXCEPTION,
)
_FENCED: Final = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class Reconciliation(IntEnum):
    """The states of a member.  Kafka: org.apache.kafka.clients.consumer.internals.MemberState."""

    JOINING = 0
    RECONCILING = 1
    ACKNOWLEDGING = 2
    STABLE = 3
    LEAVING = 4
    UNSUBSCRIBED = 5


class EpochMembership(ClientMembership):
    """The membership of one client; each group protocol has a subclass.  `api`: that of its
    heartbeats."""

    api: ClassVar[ApiKey]

    def __init__(self, parts: MembershipParts, member: EpochState) -> None:
        super().__init__(parts, member)
        self.reconciliation = Reconciliation.JOINING
        self._interval_ms = self._settings.heartbeat_interval_ms
        """The heartbeat interval that the coordinator has set."""
        self._next_heartbeat_ms = 0
        self._retry_heartbeat_ms = 0
        self._poll_deadline_ms = NEVER_MS
        self._is_in_flight = False
        self._backoff = RetryBackoff(self._network)
        self._has_target = False
        """Whether the last assignment is still to be reconciled."""
        self._is_committing = False
        self._sends_all = True
        """Whether the next heartbeat has every field: the member joins, or the last heartbeat had
        no answer."""
        self._sent_owned: list[Partition] | None = None

    @property
    def is_settled(self) -> bool:
        return self.reconciliation is Reconciliation.STABLE and not self._has_target

    @property
    def heartbeat_error(self) -> str:
        return self.fatal

    @property
    def heartbeat_ms(self) -> int:
        if self.fatal or self._is_in_flight or self._is_away:
            return NEVER_MS
        return min(max(self._next_heartbeat_ms, self._retry_heartbeat_ms), self._poll_deadline_ms)

    @property
    def _is_away(self) -> bool:
        return self.reconciliation in (Reconciliation.LEAVING, Reconciliation.UNSUBSCRIBED)

    def reset_poll_timer(self, now_ms: int) -> None:
        self._poll_deadline_ms = now_ms + self._settings.max_poll_interval_ms

    # ------------------------------------------------------------- what protocols differ in

    def _heartbeat(self, epoch: int, sends_all: bool, owned: list[Partition] | None) -> Message:
        """A heartbeat.  `sends_all`: with all fields; `owned`: None if they have not changed."""
        raise AssertionError(f"{type(self).__name__} must define _heartbeat")

    def _receive(self, response: HeartbeatResponse) -> bool:
        """Keep the assignment of an answer.  Returns whether it has one."""
        raise AssertionError(f"{type(self).__name__} must define _receive")

    def _wanted(self) -> list[Partition] | None:
        """The partitions of the last assignment; None until the metadata has their topics."""
        raise AssertionError(f"{type(self).__name__} must define _wanted")

    # --------------------------------------------------------------------------- in poll()

    def poll(self, now_ms: int) -> bool:
        self.retry_ms = NEVER_MS
        self.reset_poll_timer(now_ms)
        if self.reconciliation is Reconciliation.UNSUBSCRIBED and not self.is_leaving:
            self._join_again(now_ms)
        if not self._coordinator.is_ready(now_ms):
            return self.member.state is MemberState.STABLE
        self.run_heartbeats(now_ms)
        self._reconcile(now_ms)
        return True

    def _reconcile(self, now_ms: int) -> None:
        """Do the next step of the reconciliation.  Kafka: maybeReconcile."""
        if not self._has_target or self._is_committing:
            return
        wanted = self._wanted()
        if wanted is None:
            self._metadata.request_update()
            self.retry_ms = now_ms + self._settings.retry_backoff_ms
            return
        self.reconciliation = Reconciliation.RECONCILING
        kept = dict.fromkeys(wanted)
        given_up = [key for key in self._positions if key not in kept]
        if given_up and self._commits.is_auto:
            consumed = self._positions.consumed()
            for key in given_up:
                self._positions[key].pending_revocation = True
            offsets = {key: consumed[key] for key in given_up if key in consumed}
            if offsets:
                self._is_committing = True
                self._commits.send(offsets, now_ms, self._on_committed)
                return
        self._take(wanted, now_ms)

    def _on_committed(self, is_done: bool, can_retry: bool, now_ms: int) -> None:
        """Continue after the commit before a revocation; a failed commit is not repeated."""
        self._is_committing = False
        wanted = self._wanted()
        if self._has_target and wanted is not None:
            self._take(wanted, now_ms)

    def _take(self, wanted: list[Partition], now_ms: int) -> None:
        """Own exactly these partitions, and acknowledge them in the next heartbeat."""
        self._has_target = False
        if sorted(wanted) != sorted(self._positions):
            self._positions.assign(sorted(wanted))
            self._commits.fetch_committed_ms = 0
        self.reconciliation = Reconciliation.ACKNOWLEDGING
        self._next_heartbeat_ms = now_ms
        self.run_heartbeats(now_ms)

    # -------------------------------------------------------------------------- heartbeats

    def run_heartbeats(self, now_ms: int) -> None:
        if now_ms < self.heartbeat_ms:
            return
        if now_ms >= self._poll_deadline_ms:
            self.leave("consumer poll timeout has expired.", now_ms)
            return
        if not self._coordinator.is_ready(now_ms):
            self._retry_heartbeat_ms = now_ms + self._settings.retry_backoff_ms
            return
        self._send(now_ms, self.member.generation_id, self._sends_all)

    def _send(self, now_ms: int, epoch: int, sends_all: bool) -> None:
        owned: list[Partition] | None = None
        held = list(self._positions)
        if epoch >= 0 and (sends_all or held != self._sent_owned):
            self._sent_owned = owned = held
        body = self._heartbeat(epoch, sends_all, owned)
        self._is_in_flight = True
        self._sends_all = False
        if self.reconciliation is Reconciliation.ACKNOWLEDGING and not self._has_target:
            self.reconciliation = Reconciliation.STABLE
        self._next_heartbeat_ms = now_ms + self._interval_ms
        self._coordinator.send(self.api, body, now_ms, self._on_response, context=epoch)

    def _on_response(self, request: ClientRequest, now_ms: int) -> None:
        self._is_in_flight = False
        if request.context < 0:
            self.is_leaving = False
            return
        if self._is_away:
            return
        error = self._coordinator.refusal(request, now_ms)
        if error:
            self._refused(error, request.sent_ms, now_ms)
            return
        self._backoff.failures = 0
        response: HeartbeatResponse = request.response
        member = self.member
        member.member_id = response.member_id or member.member_id
        member.generation_id = response.member_epoch
        member.state = MemberState.STABLE
        self._interval_ms = response.heartbeat_interval_ms
        self._next_heartbeat_ms = max(self._next_heartbeat_ms, request.sent_ms + self._interval_ms)
        if self.reconciliation is Reconciliation.JOINING:
            self.reconciliation = Reconciliation.STABLE
        if self._receive(response):
            self._has_target = True
            self._reconcile(now_ms)
        elif self.reconciliation is Reconciliation.ACKNOWLEDGING:
            self._next_heartbeat_ms = now_ms

    def _refused(self, error: ErrorCode, sent_ms: int, now_ms: int) -> None:
        if error in _FENCED:
            self._lose_all()
            self._join_again(at_once_ms(sent_ms, now_ms))
        elif error in _RETRIED:
            self._sends_all = True
            self._retry_heartbeat_ms = self._backoff.after_failure(now_ms)
            self._next_heartbeat_ms = self._retry_heartbeat_ms
        else:
            self.fatal = error.name

    def _lose_all(self) -> None:
        """Give up all partitions: the member is no longer in the group, and they may belong to
        another one."""
        self._has_target = False
        self._is_committing = False
        self._positions.assign([])
        self.member.state = MemberState.UNJOINED

    def _join_again(self, at_ms: int) -> None:
        self.reconciliation = Reconciliation.JOINING
        self.member.generation_id = JOIN_EPOCH
        self._sends_all = True
        self._next_heartbeat_ms = self._retry_heartbeat_ms = at_ms

    def start(self, now_ms: int) -> None:
        """Draw the member id, and join with the first poll()."""
        drawn = self._network.rng.randrange(1 << 128)
        self.member.member_id = str(UUID(int=drawn, version=4))
        self._join_again(now_ms)

    # ------------------------------------------------------------------------------- leave

    def leave(self, reason: str, now_ms: int) -> bool:
        member = self.member
        was_member = member.state is MemberState.STABLE
        epoch = LEAVE_STATIC_EPOCH if self._settings.group_instance_id else LEAVE_EPOCH
        is_sent = was_member and not self._is_away and self._coordinator.is_ready(now_ms)
        if is_sent:
            self.is_leaving = True
            self._send(now_ms, epoch, False)
        self._lose_all()
        self.reconciliation = Reconciliation.UNSUBSCRIBED
        return is_sent
