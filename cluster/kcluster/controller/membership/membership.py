"""The membership of brokers: registration, heartbeats, fencing, shutdown and unregistration.

Owns: the records for a broker's registration, heartbeat, silence, shutdown or unregistration.
Never: decides a broker's next state (liveness.py), a leader or an ISR (partitions/). Kafka:
ClusterControlManager.registerBroker, ReplicationControlManager.{processBrokerHeartbeat,
handleBrokerFenced, handleBrokerUnfenced, handleBrokerShutdown, …}.

Not done: supported features and log directories of a registration, directory failures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.contract import NoteId
from kcluster.controller.membership.liveness import BrokerState, Session, Sessions
from kcluster.controller.ports import MetadataPort, PartitionKey, PartitionsOfBrokers
from kcluster.controller.registry import Handler
from kcluster.events.brokers import (
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    ControlledShutdown,
    ControllerElected,
    RegistrationRefused,
)
from kcluster.events.reasons import Fenced, Fencing, Restarted, ShuttingDown, Unfenced
from kcluster.metadata.endpoints import endpoints_of
from kcluster.metadata.records import (
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.codec.schema import Versions
from kcluster.protocol.errors import ErrorCode

_TIMER: Final = "sessions"

MAX_CHANGES_PER_BATCH: Final = 1_000
"""A broker with more partitions leaves its ISRs in several batches, a millisecond apart, so that no
step takes long.  Kafka: QuorumController.MAX_RECORDS_PER_BATCH, which splits changes that are not
atomic."""


class _Departure(Struct):
    """A broker that is leaving its ISRs and is still in some of them."""

    reason: Fenced | ShuttingDown
    cause: NoteId | None
    remaining: list[PartitionKey]
    """The remaining partitions, of which the last is left first."""


class Membership:
    """The brokers of the cluster, and which of them are alive.

    `on_unfenced(now_ms)` is called when a broker has become active.
    """

    def __init__(
        self,
        metadata: MetadataPort,
        partitions: PartitionsOfBrokers,
        on_unfenced: Callable[[int], None],
    ) -> None:
        self.sessions = Sessions(metadata.config.broker_session_timeout_ms)
        self._metadata = metadata
        self._partitions = partitions
        self._on_unfenced = on_unfenced
        self._departures: dict[int, _Departure] = {}

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {
            "BrokerRegistrationRequest": self.register,
            "BrokerHeartbeatRequest": self.heartbeat,
            "UnregisterBrokerRequest": self.unregister,
        }

    # -------------------------------------------------------------------------- registration

    def register(
        self, request: m.BrokerRegistrationRequest, now_ms: int
    ) -> m.BrokerRegistrationResponse:
        """Register a broker.  Another incarnation may register only after its predecessor's session
        has expired.  The predecessor then leaves every ISR, and the ELRs too unless it stopped
        cleanly, which the request shows by naming the predecessor's epoch (KIP-966).  The same
        incarnation only amends its registration."""
        metadata, broker_id = self._metadata, request.broker_id
        existing = metadata.image.brokers.get(broker_id)
        if request.cluster_id != metadata.cluster_id:
            return _registration_error(ErrorCode.INCONSISTENT_CLUSTER_ID)
        same = existing is not None and existing.incarnation_id == request.incarnation_id
        if not same and existing is not None and self.sessions.is_valid(broker_id, now_ms):
            self._note_refusal(broker_id, request.incarnation_id, now_ms)
            return _registration_error(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        if not request.listeners:
            return _registration_error(ErrorCode.INVALID_REGISTRATION)
        if same:
            assert existing is not None
            return self._amend(existing, request)
        clean = existing is not None and existing.epoch == request.previous_broker_epoch
        previous_epoch = None if existing is None else existing.epoch
        cause = metadata.note(BrokerRegistered(broker_id, previous_epoch, clean, request.rack))
        self._departures.pop(broker_id, None)
        restarted = Restarted(broker_id, previous_epoch, clean)
        records = self._partitions.on_broker_restarted(restarted, cause)
        epoch = metadata.end_offset + len(records)
        registration = BrokerRegistration(
            broker_id=broker_id,
            epoch=epoch,
            endpoints=endpoints_of(request),
            rack=request.rack,
            incarnation_id=request.incarnation_id,
            features=_features(request),
        )
        self.sessions.register(broker_id, epoch).cause = cause
        metadata.commit([*records, RegisterBrokerRecord(registration, cause)])
        return m.BrokerRegistrationResponse(broker_epoch=epoch)

    def _note_refusal(self, broker_id: int, incarnation_id: bytes, now_ms: int) -> None:
        """Note the first refusal of a process, which asks again in each heartbeat interval."""
        session = self.sessions.get(broker_id)
        assert session is not None, broker_id
        assert session.last_contact_ms is not None, session
        if session.refused_incarnation != incarnation_id:
            session.refused_incarnation = incarnation_id
            left_ms = session.last_contact_ms + self.sessions.timeout_ms - now_ms
            self._metadata.note(RegistrationRefused(broker_id, left_ms))

    def _amend(
        self, existing: BrokerRegistration, request: m.BrokerRegistrationRequest
    ) -> m.BrokerRegistrationResponse:
        amended = replace(existing, endpoints=endpoints_of(request), rack=request.rack)
        session = self.sessions.get(existing.broker_id)
        assert session is not None, existing
        session.registration_offset = self._metadata.end_offset
        self._metadata.commit([RegisterBrokerRecord(amended)])
        return m.BrokerRegistrationResponse(broker_epoch=existing.epoch)

    def unregister(
        self, request: m.UnregisterBrokerRequest, _now_ms: int
    ) -> m.UnregisterBrokerResponse:
        """Remove a broker's registration.  If the broker runs, its heartbeats fail from now on."""
        broker_id = request.broker_id
        registration = self._metadata.image.brokers.get(broker_id)
        if registration is None:
            return m.UnregisterBrokerResponse(
                error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
                error_message=f"Broker ID {broker_id} is not currently registered",
            )
        cause = self._metadata.note(BrokerFenced(broker_id, Fencing.UNREGISTERED))
        reason = Fenced(broker_id, Fencing.UNREGISTERED)
        self._departures.pop(broker_id, None)
        partitions = self._partitions.in_sync_on(broker_id)
        records = self._partitions.on_broker_leaving(reason, cause, partitions)
        self.sessions.remove(broker_id)
        record = UnregisterBrokerRecord(broker_id, registration.epoch, cause)
        self._metadata.commit([*records, record])
        return m.UnregisterBrokerResponse()

    # ---------------------------------------------------------------------------- heartbeats

    def heartbeat(
        self, request: m.BrokerHeartbeatRequest, now_ms: int
    ) -> m.BrokerHeartbeatResponse:
        """Renew the session, and move the broker to its next state (liveness.py)."""
        broker_id, sessions = request.broker_id, self.sessions
        registration = self._metadata.image.brokers.get(broker_id)
        if registration is None or registration.epoch != request.broker_epoch:
            return m.BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        session = sessions.get(broker_id)
        assert session is not None, request
        session.last_contact_ms = now_ms
        if request.current_metadata_offset > session.metadata_offset:
            session.metadata_offset = request.current_metadata_offset
        if _TIMER not in self._metadata.timers:
            expiry_ms = now_ms + sessions.timeout_ms
            self._metadata.timers.set(_TIMER, expiry_ms, self.expire_sessions)
        before = state = session.state
        if broker_id not in self._departures:
            leads = self._partitions.led_by(broker_id) > 0
            state = sessions.next_state(session, request.want_fence, request.want_shut_down, leads)
        if state is not before:
            self._enter(session, registration, state, now_ms)
        return m.BrokerHeartbeatResponse(
            is_caught_up=session.metadata_offset >= session.registration_offset,
            is_fenced=state in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
            should_shut_down=state is BrokerState.SHUTDOWN_NOW,
        )

    def on_metadata_applied(self, broker_id: int, offset: int) -> None:
        """Take note that a broker has applied the metadata log up to and including `offset`."""
        session = self.sessions.get(broker_id)
        if session is not None and offset > session.metadata_offset:
            session.metadata_offset = offset

    def _enter(
        self, session: Session, registration: BrokerRegistration, state: BrokerState, now_ms: int
    ) -> None:
        match state:
            case BrokerState.UNFENCED:
                self._unfence(session, registration, now_ms)
            case BrokerState.CONTROLLED_SHUTDOWN:
                self._begin_controlled_shutdown(session, registration, now_ms)
            case BrokerState.FENCED:
                self.fence(session, registration, Fencing.REQUESTED, now_ms)
            case BrokerState.SHUTDOWN_NOW:
                if not registration.fenced:
                    cause = session.cause if session.state is not BrokerState.UNFENCED else None
                    self.fence(session, registration, Fencing.SHUTDOWN_COMPLETE, now_ms, cause)

    def _unfence(self, session: Session, registration: BrokerRegistration, now_ms: int) -> None:
        broker_id = registration.broker_id
        session.fenced = False
        unfenced = BrokerUnfenced(broker_id, session.registration_offset)
        cause = self._metadata.note(unfenced, session.cause)
        change = BrokerRegistrationChangeRecord(
            broker_id, registration.epoch, fenced=False, cause=cause
        )
        elected = self._partitions.on_broker_unfenced(Unfenced(broker_id), cause)
        self._metadata.commit([change, *elected])
        self._on_unfenced(now_ms)

    def _begin_controlled_shutdown(
        self, session: Session, registration: BrokerRegistration, now_ms: int
    ) -> None:
        broker_id = registration.broker_id
        leaders = self._partitions.led_by(broker_id)
        cause = self._metadata.note(ControlledShutdown(broker_id, leaders))
        change = BrokerRegistrationChangeRecord(
            broker_id, registration.epoch, in_controlled_shutdown=True, cause=cause
        )
        session.cause = cause
        if self._begin_departure(ShuttingDown(broker_id), cause, change, now_ms):
            return
        partitions = self._partitions.in_sync_on(broker_id)
        moved = self._partitions.on_broker_leaving(ShuttingDown(broker_id), cause, partitions)
        self._metadata.commit([change, *moved])
        session.controlled_shutdown_offset = self._metadata.end_offset - 1

    # ------------------------------------------------------------------------------- fencing

    def fence(
        self,
        session: Session,
        registration: BrokerRegistration,
        fencing: Fencing,
        now_ms: int,
        cause: NoteId | None = None,
        silent_ms: int = 0,
    ) -> None:
        """Take a broker out of every ISR and leadership.  It stays registered and may come back."""
        broker_id = registration.broker_id
        session.fenced, session.controlled_shutdown_offset = True, None
        cause = self._metadata.note(BrokerFenced(broker_id, fencing, silent_ms), cause)
        reason = Fenced(broker_id, fencing, silent_ms)
        change = BrokerRegistrationChangeRecord(
            broker_id, registration.epoch, fenced=True, cause=cause
        )
        if self._begin_departure(reason, cause, change, now_ms):
            return
        partitions = self._partitions.in_sync_on(broker_id)
        records = self._partitions.on_broker_leaving(reason, cause, partitions)
        self._metadata.commit([*records, change])

    def _begin_departure(
        self,
        reason: Fenced | ShuttingDown,
        cause: NoteId,
        change: BrokerRegistrationChangeRecord,
        now_ms: int,
    ) -> bool:
        """Start the departure of a broker that is in too many ISRs for one batch.  Commit `change`,
        after which the broker joins no ISR and leads no further partition; then let it leave step
        by step.  Until it is out of all ISRs, heartbeats do not change its state.  False: one batch
        is enough."""
        self._departures.pop(reason.broker, None)
        partitions = self._partitions.in_sync_on(reason.broker)
        if len(partitions) <= MAX_CHANGES_PER_BATCH:
            return False
        partitions.reverse()
        self._departures[reason.broker] = _Departure(reason, cause, partitions)
        self._metadata.commit([change])
        self._leave_some(reason.broker, now_ms)
        return True

    def _leave_some(self, broker_id: int, now_ms: int) -> None:
        departure = self._departures.get(broker_id)
        if departure is None:
            return
        remaining = departure.remaining
        batch = remaining[: -MAX_CHANGES_PER_BATCH - 1 : -1]
        del remaining[-MAX_CHANGES_PER_BATCH:]
        records = self._partitions.on_broker_leaving(departure.reason, departure.cause, batch)
        self._metadata.commit(records)
        if remaining:
            later_ms = now_ms + 1
            self._metadata.timers.set(
                ("leaving", broker_id), later_ms, lambda at_ms: self._leave_some(broker_id, at_ms)
            )
            return
        del self._departures[broker_id]
        if records and isinstance(departure.reason, ShuttingDown):
            session = self.sessions.get(broker_id)
            assert session is not None, broker_id
            session.controlled_shutdown_offset = self._metadata.end_offset - 1

    def take_over(self, now_ms: int) -> None:
        """Start as the active controller of a log that other controllers wrote: every broker's
        session starts again.  As in Kafka, a broker in controlled shutdown that leads nothing may
        then stop at its next heartbeat.  Kafka: ClusterControlManager.activate."""
        log = self._metadata.log
        self._metadata.note(ControllerElected(log.leader, log.epoch))
        for broker_id, registration in self._metadata.image.brokers.items():
            session = self.sessions.register(broker_id, registration.epoch)
            session.fenced = registration.fenced
            if not registration.fenced:
                session.last_contact_ms = now_ms
        self._resume_departures(now_ms)
        self.expire_sessions(now_ms)

    def _resume_departures(self, now_ms: int) -> None:
        """Continue the departures that were in progress when the last controller died."""
        for broker_id, registration in self._metadata.image.brokers.items():
            if not registration.is_active and self._partitions.led_by(broker_id):
                if registration.fenced:
                    reason: Fenced | ShuttingDown = Fenced(broker_id, Fencing.SESSION_EXPIRED)
                else:
                    reason = ShuttingDown(broker_id)
                partitions = self._partitions.in_sync_on(broker_id)
                self._departures[broker_id] = _Departure(reason, None, partitions[::-1])
                self._leave_some(broker_id, now_ms)

    def expire_sessions(self, now_ms: int) -> None:
        """Fence every broker that has been silent for the session timeout, the longest silent one
        first; each decision sees the effects of earlier ones."""
        sessions = self.sessions
        while (session := sessions.expired(now_ms)) is not None:
            registration = self._metadata.image.brokers[session.broker_id]
            if not registration.fenced:
                silent_ms = sessions.timeout_ms
                self.fence(
                    session, registration, Fencing.SESSION_EXPIRED, now_ms, silent_ms=silent_ms
                )
        next_ms = sessions.next_expiry_ms()
        if next_ms is not None:
            self._metadata.timers.set(_TIMER, next_ms, self.expire_sessions)


def _features(request: m.BrokerRegistrationRequest) -> dict[str, Versions]:
    """The levels of each feature that a broker knows."""
    return {
        one.name: (one.min_supported_version, one.max_supported_version) for one in request.features
    }


def _registration_error(code: ErrorCode) -> m.BrokerRegistrationResponse:
    return m.BrokerRegistrationResponse(error_code=code, broker_epoch=-1)
