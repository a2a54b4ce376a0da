"""The reasons for changes by the controller, as values.

Owns: the enumerations and reasons that events carry.  Never: words for them (words/).
Kafka: the `reason` strings in the log of the controller.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from kcluster.events.base import kind_of


class Fencing(StrEnum):
    """The reasons why the controller fences a broker."""

    SESSION_EXPIRED = "session_expired"
    """The broker sent no heartbeat for broker.session.timeout.ms."""
    REQUESTED = "requested"
    """The broker requested the fencing in a heartbeat."""
    SHUTDOWN_COMPLETE = "shutdown_complete"
    """The broker's controlled shutdown is complete."""
    UNREGISTERED = "unregistered"
    UNREPORTED = "unreported"
    """A real Kafka's metadata log does not say why."""


class ElectionKind(StrEnum):
    """The rule by which a leader was chosen; under the last two rules, the leader may lack
    committed records."""

    NONE = "none"
    """The leader did not change, or no replica can lead."""
    REQUESTED = "requested"
    """The replica that the operator named, in the ISR."""
    PREFERRED = "preferred"
    """The first of the replicas, in the ISR."""
    IN_SYNC = "in_sync"
    """The first active replica in the ISR."""
    ELIGIBLE = "eligible"
    """The first active eligible leader replica (ELR, KIP-966), because the ISR is empty."""
    LAST_KNOWN_LEADER = "last_known_leader"
    """The last leader, because ISR and ELR are empty; independent of
    unclean.leader.election.enable."""
    UNCLEAN = "unclean"
    """An active replica, which only unclean.leader.election.enable=true allows."""


class Reason(Struct, frozen=True, gc=False, tag_field="kind", tag=kind_of):
    """The base of the reasons for a change of a partition."""


class Fenced(Reason, frozen=True):
    """A broker was fenced.  `silent_ms`: the time without a heartbeat, if its session expired."""

    broker: int
    fencing: Fencing
    silent_ms: int = 0


class Unfenced(Reason, frozen=True):
    """A broker may lead again."""

    broker: int


class Restarted(Reason, frozen=True):
    """A new process of a broker registered.  `clean`: whether the previous one stopped cleanly, so
    that no log lost records at its end; `previous_epoch`: its broker epoch, if the controller knows
    it."""

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
    """The operator requested the change.  `election`: `preferred` or `unclean`; empty for other
    requests."""

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


class Unreported(Reason, frozen=True):
    """A real Kafka's metadata log does not say why."""


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
    | Unreported
)
