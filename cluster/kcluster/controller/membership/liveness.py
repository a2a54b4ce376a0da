"""The brokers that are alive: sessions kept by heartbeats, and a broker's state after the next
heartbeat.

Owns: every broker's session (last contact, its place in the metadata log, whether it is shutting
down).  Never: changes metadata (membership.py commits the consequences), sets timers. Kafka:
BrokerHeartbeatManager, BrokerHeartbeatTracker, BrokerControlState (KIP-631).

    state                heartbeat                          next state
    FENCED               want_shut_down                          SHUTDOWN_NOW
    FENCED               want_fence                              FENCED
    FENCED               has applied its own registration        UNFENCED
    UNFENCED             want_fence and want_shut_down           SHUTDOWN_NOW
    UNFENCED             want_fence                              FENCED
    UNFENCED             want_shut_down, leads partitions        CONTROLLED_SHUTDOWN
    UNFENCED             want_shut_down, leads none              SHUTDOWN_NOW
    CONTROLLED_SHUTDOWN  leads none, and every active broker     SHUTDOWN_NOW
                         has applied the moves of its leaders
    anything else                                                unchanged
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from kcluster.contract import NoteId


class BrokerState(Enum):
    """The states of a broker between its registration and its shutdown."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "may shut down now"


class Session(Struct):
    """The controller's knowledge of one incarnation of a broker besides its registration."""

    broker_id: int
    registration_offset: int
    """The offset of the broker's newest registration record; the broker may serve once it has
    applied that record."""
    fenced: bool = True
    last_contact_ms: int | None = None
    """The time of the broker's last heartbeat; None before the first one, and after the session
    expired."""
    metadata_offset: int = -1
    """The last record that the broker is known to have applied."""
    controlled_shutdown_offset: int | None = None
    """The offset of the records that moved the broker's leaders away; None unless it is shutting
    down."""
    refused_incarnation: bytes = b""
    """The last process that this session has kept from registering; the refusal is noted once."""
    cause: NoteId | None = None
    """The note of the broker's registration or, once it has begun, of its controlled shutdown."""

    @property
    def state(self) -> BrokerState:
        """FENCED, UNFENCED or CONTROLLED_SHUTDOWN."""
        if self.controlled_shutdown_offset is not None:
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.FENCED if self.fenced else BrokerState.UNFENCED


class Sessions:
    """All brokers' sessions.  Heartbeats are O(1); looking for expired ones O(brokers)."""

    __slots__ = ("_sessions", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        """Kafka's broker.session.timeout.ms, default 9000."""
        self._sessions: dict[int, Session] = {}

    def get(self, broker_id: int) -> Session | None:
        return self._sessions.get(broker_id)

    def register(self, broker_id: int, registration_offset: int) -> Session:
        """Start a session for a new incarnation.  The session is valid from the first heartbeat
        on."""
        session = self._sessions[broker_id] = Session(broker_id, registration_offset)
        return session

    def all(self) -> list[Session]:
        """The sessions, in the order of the brokers' first registrations."""
        return list(self._sessions.values())

    def remove(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def is_valid(self, broker_id: int, now_ms: int) -> bool:
        """Whether this broker made contact less than a session timeout ago.  As in Kafka since 4.0,
        a broker that was shut down cleanly counts too: its id is free once the session expires."""
        session = self._sessions.get(broker_id)
        if session is None or session.last_contact_ms is None:
            return False
        return now_ms < session.last_contact_ms + self.timeout_ms

    def expired(self, now_ms: int) -> Session | None:
        """The next expired session, the longest silent first.  A session is returned only once,
        because its last contact is then forgotten."""
        silent: Session | None = None
        earliest = now_ms - self.timeout_ms + 1
        for session in self._sessions.values():
            if session.last_contact_ms is not None and session.last_contact_ms < earliest:
                silent, earliest = session, session.last_contact_ms
        if silent is not None:
            silent.last_contact_ms = None
        return silent

    def next_expiry_ms(self) -> int | None:
        """The time at which the earliest session would expire without another heartbeat."""
        contacts = [
            session.last_contact_ms
            for session in self._sessions.values()
            if session.last_contact_ms is not None
        ]
        return min(contacts) + self.timeout_ms if contacts else None

    def lowest_active_offset(self) -> int | None:
        """The least offset up to which an active broker has applied the metadata log; None without
        active brokers."""
        return min(
            (
                session.metadata_offset
                for session in self._sessions.values()
                if session.state is BrokerState.UNFENCED
            ),
            default=None,
        )

    def next_state(
        self, session: Session, want_fence: bool, want_shut_down: bool, has_leaderships: bool
    ) -> BrokerState:
        """The next state, by the table in this module's head; `session.metadata_offset` must be the
        heartbeat's already."""
        match session.state:
            case BrokerState.FENCED:
                if want_shut_down:
                    return BrokerState.SHUTDOWN_NOW
                caught_up = session.metadata_offset >= session.registration_offset
                return BrokerState.UNFENCED if caught_up and not want_fence else BrokerState.FENCED
            case BrokerState.UNFENCED:
                if want_fence:
                    return BrokerState.SHUTDOWN_NOW if want_shut_down else BrokerState.FENCED
                if not want_shut_down:
                    return BrokerState.UNFENCED
                return (
                    BrokerState.CONTROLLED_SHUTDOWN if has_leaderships else BrokerState.SHUTDOWN_NOW
                )
            case _:
                assert session.controlled_shutdown_offset is not None, session
                lowest = self.lowest_active_offset()
                moved = lowest is None or session.controlled_shutdown_offset <= lowest
                return (
                    BrokerState.SHUTDOWN_NOW
                    if moved and not has_leaderships
                    else BrokerState.CONTROLLED_SHUTDOWN
                )
