"""The reasons for changes by the controller, as values.

Owns: the enumerations and reasons that events carry.  Never: words for them (words/).
Kafka: the `reason` strings in the log of the controller.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from kcluster.events.base import kind_of


class Fencing(StrEnum):
    """Why the controller fenced a broker."""

    SESSION_EXPIRED = "session_expired"
    """No heartbeat for broker.session.timeout.ms."""
    REQUESTED = "requested"
    """The broker requested it in a heartbeat."""
    SHUTDOWN_COMPLETE = "shutdown_complete"
    """Its controlled shutdown is complete."""
    UNREGISTERED = "unregistered"


class ElectionKind(StrEnum):
    """The rule by which a leader was chosen; leaders by the last two may lack committed records."""

    NONE = "none"
    """The leader did not change, or no replica can lead."""
    REQUESTED = "requested"
    """The operator named it; it is in the ISR."""
    PREFERRED = "preferred"
    """The first of the replicas, in sync."""
    IN_SYNC = "in_sync"
    """The first active replica in the ISR."""
    ELIGIBLE = "eligible"
    """The ISR is empty: the first active eligible leader replica (ELR, KIP-966)."""
    LAST_KNOWN_LEADER = "last_known_leader"
    """ISR and ELR are empty: the last leader, whatever unclean.leader.election.enable says."""
    UNCLEAN = "unclean"
    """Any active replica: only unclean.leader.election.enable=true allows it."""


class Reason(Struct, frozen=True, gc=False, tag_field="kind", tag=kind_of):
    """Why a partition changed."""


class Fenced(Reason, frozen=True):
    """A broker was fenced.  `silent_ms`: the time without a heartbeat, if its session expired."""

    broker: int
    fencing: Fencing
    silent_ms: int = 0


class Unfenced(Reason, frozen=True):
    """A broker may lead again."""

    broker: int


class Restarted(Reason, frozen=True):
    """A new process of a broker registered.  `clean`: the previous one stopped cleanly, so no
    log lost records at its end; `previous_epoch`: its broker epoch, if the controller knows it."""

    broker: int
    previous_epoch: int | None
    clean: bool


class ShuttingDown(Reason, frozen=True):
    """A broker's controlled shutdown moves its leaders away."""

    broker: int


class OutOfSync(Reason, frozen=True):
    """A partition's leader reports that replicas have fallen behind."""

    leader: int
    brokers: tuple[int, ...]


class CaughtUp(Reason, frozen=True):
    """A partition's leader reports that replicas are in sync again."""

    leader: int
    brokers: tuple[int, ...]


class Recovered(Reason, frozen=True):
    """A leader that was elected unclean reports that it has recovered (KIP-704)."""

    leader: int


class Requested(Reason, frozen=True):
    """The operator requested it.  `election`: `preferred` or `unclean`; empty for others."""

    election: str = ""


class PeriodicCheck(Reason, frozen=True):
    """The periodic check of the controller triggered an election: `preferred` or `unclean`."""

    election: str


class ConfigUpdated(Reason, frozen=True):
    """A config was changed."""

    config: str


class ReassignmentDone(Reason, frozen=True):
    """A reassignment has moved all replicas."""


class ReassignmentReverted(Reason, frozen=True):
    """A reassignment was cancelled."""


AnyReason = (
    Fenced
    | Unfenced
    | Restarted
    | ShuttingDown
    | OutOfSync
    | CaughtUp
    | Recovered
    | Requested
    | PeriodicCheck
    | ConfigUpdated
    | ReassignmentDone
    | ReassignmentReverted
)
