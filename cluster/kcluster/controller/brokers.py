"""Brokers come, live and go: registration, heartbeats, fencing, controlled shutdown.

Owns: the records that follow from a broker's registration, heartbeat, silence or farewell.  Never:
decides a broker's next state (liveness.py) or a partition's leader (elections.py).
Kafka: ClusterControlManager.registerBroker, ReplicationControlManager.{processBrokerHeartbeat,
handleBrokerFenced, handleBrokerUnfenced, handleBrokerShutdown, …}, ProducerIdControlManager.

Not done: supported features and log directories of a registration, directory failures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcluster.contract import NoteId
from kcluster.controller import bootstrap
from kcluster.controller.leadership import change_partitions
from kcluster.controller.liveness import BrokerState, Session
from kcluster.controller.registry import answers
from kcluster.events.brokers import (
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    ControlledShutdown,
    ControllerElected,
)
from kcluster.events.reasons import Fenced, Fencing, Restarted, ShuttingDown, Unfenced
from kcluster.metadata.image import (
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode

PRODUCER_ID_BLOCK_SIZE: Final = 1000
"""Kafka: ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE."""

_SESSIONS: Final = "sessions"


# ------------------------------------------------------------------------------ registration


@answers("BrokerRegistrationRequest")
def register(node: ControllerNode, request: Any, now_ms: int) -> Any:
    """Behaviour: a broker of another incarnation may register only when the session of the one
    before has expired; its predecessor then leaves every ISR, and the ELRs too unless it stopped
    cleanly, which the request shows by naming the predecessor's epoch (KIP-966).  The same
    incarnation again only amends its registration."""
    broker_id, existing = request.broker_id, node.image.brokers.get(request.broker_id)
    if request.cluster_id != node.cluster_id:
        return _registration_error(ErrorCode.INCONSISTENT_CLUSTER_ID)
    same = existing is not None and existing.incarnation_id == request.incarnation_id
    if not same and existing is not None and node.sessions.is_valid(broker_id, now_ms):
        return _registration_error(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    if not request.listeners:
        return _registration_error(ErrorCode.INVALID_REGISTRATION)
    listener = request.listeners[0]
    if same:
        assert existing is not None
        amended = BrokerRegistration(
            broker_id, existing.epoch, listener.host, listener.port, request.rack,
            existing.fenced, existing.in_controlled_shutdown, request.incarnation_id,
        )  # fmt: skip
        session = node.sessions.get(broker_id)
        assert session is not None, broker_id
        session.registration_offset = node.end_offset
        node.commit([RegisterBrokerRecord(amended)])
        return m.BrokerRegistrationResponse(broker_epoch=existing.epoch)
    clean = existing is not None and existing.epoch == request.previous_broker_epoch
    previous_epoch = None if existing is None else existing.epoch
    cause = node.note(BrokerRegistered(broker_id, previous_epoch, clean, request.rack))
    records = _forget_incarnation(node, Restarted(broker_id, previous_epoch, clean), cause)
    epoch = node.end_offset + len(records)
    registration = BrokerRegistration(
        broker_id, epoch, listener.host, listener.port, request.rack,
        incarnation_id=request.incarnation_id,
    )  # fmt: skip
    node.sessions.register(broker_id, epoch).told_by = cause
    node.commit([*records, RegisterBrokerRecord(registration, cause)])
    return m.BrokerRegistrationResponse(broker_epoch=epoch)


def _registration_error(code: ErrorCode) -> Any:
    return m.BrokerRegistrationResponse(error_code=code, broker_epoch=-1)


def _forget_incarnation(
    node: ControllerNode, restarted: Restarted, cause: NoteId
) -> list[MetadataRecord]:
    """Take the broker's last incarnation out of ISRs, and of ELRs if its log may have lost its
    end: an unclean restart may mean a power loss."""
    broker_id = restarted.broker
    in_isr = list(node.index.in_isr.get(broker_id, ()))
    if restarted.clean or not node.elr_enabled:
        return change_partitions(node, in_isr, restarted, cause, leaving=broker_id)
    in_elr = node.index.in_elr.get(broker_id, ())
    keys = [*in_isr, *in_elr]
    return change_partitions(node, keys, restarted, cause, unclean_shutdown=broker_id)


# -------------------------------------------------------------------------------- heartbeats


@answers("BrokerHeartbeatRequest")
def heartbeat(node: ControllerNode, request: Any, now_ms: int) -> Any:
    """Behaviour: keeps the session, and moves the broker to its next state (liveness.py)."""
    registration = node.image.brokers.get(request.broker_id)
    if registration is None or registration.epoch != request.broker_epoch:
        return m.BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    session = node.sessions.get(request.broker_id)
    assert session is not None, request
    session.last_contact_ms = now_ms
    if request.current_metadata_offset > session.metadata_offset:
        session.metadata_offset = request.current_metadata_offset
    if _SESSIONS not in node.timers:
        node.timers.set(
            _SESSIONS, now_ms + node.sessions.timeout_ms, lambda at: expire_sessions(node, at)
        )
    state = node.sessions.next_state(
        session,
        request.want_fence,
        request.want_shut_down,
        bool(node.index.led_by.get(request.broker_id)),
    )
    if state is not session.state:
        _enter(node, session, registration, state, now_ms)
    return m.BrokerHeartbeatResponse(
        is_caught_up=session.metadata_offset >= session.registration_offset,
        is_fenced=state in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=state is BrokerState.SHUTDOWN_NOW,
    )


def _enter(
    node: ControllerNode,
    session: Session,
    registration: BrokerRegistration,
    state: BrokerState,
    now_ms: int,
) -> None:
    match state:
        case BrokerState.UNFENCED:
            _unfence(node, session, registration, now_ms)
        case BrokerState.CONTROLLED_SHUTDOWN:
            _begin_controlled_shutdown(node, session, registration)
        case BrokerState.FENCED:
            fence(node, session, registration, Fencing.REQUESTED)
        case BrokerState.SHUTDOWN_NOW:
            if not registration.fenced:
                told_by = session.told_by if session.state is not BrokerState.UNFENCED else None
                fence(node, session, registration, Fencing.SHUTDOWN_COMPLETE, told_by)


def _unfence(
    node: ControllerNode, session: Session, registration: BrokerRegistration, now_ms: int
) -> None:
    broker_id = registration.broker_id
    session.fenced = False
    cause = node.note(BrokerUnfenced(broker_id, session.registration_offset), session.told_by)
    change = BrokerRegistrationChangeRecord(
        broker_id, registration.epoch, fenced=False, cause=cause
    )
    leaderless, reason = node.index.leaderless, Unfenced(broker_id)
    node.commit([change, *change_partitions(node, leaderless, reason, cause, joining=broker_id)])
    bootstrap.on_unfenced(node, now_ms)


def _begin_controlled_shutdown(
    node: ControllerNode, session: Session, registration: BrokerRegistration
) -> None:
    broker_id = registration.broker_id
    led = len(node.index.led_by[broker_id])
    cause = node.note(ControlledShutdown(broker_id, led))
    change = BrokerRegistrationChangeRecord(
        broker_id, registration.epoch, in_controlled_shutdown=True, cause=cause
    )
    in_isr, reason = node.index.in_isr.get(broker_id, ()), ShuttingDown(broker_id)
    node.commit([change, *change_partitions(node, in_isr, reason, cause, leaving=broker_id)])
    session.controlled_shutdown_offset = node.end_offset - 1
    session.told_by = cause


# ----------------------------------------------------------------------------------- fencing


def fence(
    node: ControllerNode,
    session: Session,
    registration: BrokerRegistration,
    fencing: Fencing,
    told_by: NoteId | None = None,
    silent_ms: int = 0,
) -> None:
    """Out of every ISR and leadership; it stays registered, and may come back."""
    broker_id = registration.broker_id
    session.fenced, session.controlled_shutdown_offset = True, None
    cause = node.note(BrokerFenced(broker_id, fencing, silent_ms), told_by)
    in_isr, reason = node.index.in_isr.get(broker_id, ()), Fenced(broker_id, fencing, silent_ms)
    records = change_partitions(node, in_isr, reason, cause, leaving=broker_id)
    change = BrokerRegistrationChangeRecord(broker_id, registration.epoch, fenced=True, cause=cause)
    node.commit([*records, change])


def take_over(node: ControllerNode, now_ms: int) -> None:
    """A controller becomes active on a log that others wrote: every broker's session begins anew.
    Kafka: ClusterControlManager.activate."""
    node.note(ControllerElected(node.log.leader, node.log.epoch))
    for broker_id, registration in node.image.brokers.items():
        session = node.sessions.register(broker_id, registration.epoch)
        session.fenced = registration.fenced
        if not registration.fenced:
            session.last_contact_ms = now_ms
        if registration.in_controlled_shutdown:
            session.controlled_shutdown_offset = node.end_offset
    expire_sessions(node, now_ms)


def expire_sessions(node: ControllerNode, now_ms: int) -> None:
    """Fence every broker not heard of for the session timeout, the longest silent one first, each
    with the effects of those before in view."""
    while (session := node.sessions.expired(now_ms)) is not None:
        registration = node.image.brokers[session.broker_id]
        if not registration.fenced:
            timeout_ms = node.sessions.timeout_ms
            fence(node, session, registration, Fencing.SESSION_EXPIRED, None, timeout_ms)
    next_ms = node.sessions.next_expiry_ms()
    if next_ms is not None:
        node.timers.set(_SESSIONS, next_ms, lambda at: expire_sessions(node, at))


# ----------------------------------------------------------------- unregistration, producer ids


@answers("UnregisterBrokerRequest")
def unregister(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: forget a broker for good; if it runs, its heartbeats fail from now on."""
    broker_id = request.broker_id
    registration = node.image.brokers.get(broker_id)
    if registration is None:
        return m.UnregisterBrokerResponse(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
            error_message=f"Broker ID {broker_id} is not currently registered",
        )
    cause = node.note(BrokerFenced(broker_id, Fencing.UNREGISTERED))
    in_isr, reason = node.index.in_isr.get(broker_id, ()), Fenced(broker_id, Fencing.UNREGISTERED)
    records = change_partitions(node, in_isr, reason, cause, leaving=broker_id)
    node.sessions.remove(broker_id)
    node.commit([*records, UnregisterBrokerRecord(broker_id, registration.epoch, cause)])
    return m.UnregisterBrokerResponse()


@answers("AllocateProducerIdsRequest")
def allocate_producer_ids(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: the next thousand producer ids, for this broker alone (KIP-730)."""
    registration = node.image.brokers.get(request.broker_id)
    if registration is None or registration.epoch != request.broker_epoch:
        return m.AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    start = node.image.next_producer_id
    node.commit(
        [ProducerIdsRecord(request.broker_id, request.broker_epoch, start + PRODUCER_ID_BLOCK_SIZE)]
    )
    return m.AllocateProducerIdsResponse(
        producer_id_start=start, producer_id_len=PRODUCER_ID_BLOCK_SIZE
    )
