"""Words for the reasons of changes by the controller.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from typing import Final

from kcluster.events.reasons import (
    AnyReason,
    CaughtUp,
    ConfigUpdated,
    Fenced,
    Fencing,
    OutOfSync,
    PeriodicCheck,
    ReassignmentDone,
    ReassignmentReverted,
    Recovered,
    Requested,
    Restarted,
    ShuttingDown,
    Unfenced,
    Unreported,
)

BY_OPERATOR: Final = "requested by the operator"
UNREPORTED: Final = "reason unknown"
_FENCINGS: Final = {
    Fencing.REQUESTED: "fenced at its own request",
    Fencing.SHUTDOWN_COMPLETE: "fenced: controlled shutdown complete",
    Fencing.UNREGISTERED: "unregistered",
    Fencing.UNREPORTED: f"fenced: {UNREPORTED}",
}
_PERIODIC: Final = {
    "preferred": "periodic check: the preferred leader is in sync again",
    "unclean": "periodic check: no leader, and the topic allows unclean elections",
}


def reason_text(reason: AnyReason) -> str:
    """The reason for a change of a partition, in words."""
    match reason:
        case Fenced(broker=broker, fencing=fencing, silent_ms=silent_ms):
            return fenced_text(broker, fencing, silent_ms)
        case Unfenced(broker=broker):
            return f"broker {broker} unfenced"
        case Restarted(broker=broker):
            return registered_text(broker, reason.previous_epoch, reason.clean)
        case ShuttingDown(broker=broker):
            return f"controlled shutdown of broker {broker}"
        case OutOfSync(leader=leader, brokers=brokers):
            return f"leader {leader} reports {brokers_text(brokers)} out of sync"
        case CaughtUp(leader=leader, brokers=brokers):
            return f"leader {leader} reports {brokers_text(brokers)} caught up"
        case Recovered(leader=leader):
            return f"leader {leader} has recovered"
        case Requested(election=election):
            return f"{election} election {BY_OPERATOR}" if election else BY_OPERATOR
        case PeriodicCheck(election=election):
            return _PERIODIC[election]
        case ConfigUpdated(config=config):
            return f"{config} changed"
        case ReassignmentDone():
            return "the reassignment is complete"
        case ReassignmentReverted():
            return "the reassignment was cancelled"
        case Unreported():
            return UNREPORTED


def fenced_text(broker: int, fencing: Fencing, silent_ms: int) -> str:
    if fencing is Fencing.SESSION_EXPIRED:
        return f"broker {broker} fenced: no heartbeat for {silent_ms} ms"
    return f"broker {broker} {_FENCINGS[fencing]}"


def registered_text(broker: int, previous_epoch: int | None, clean: bool) -> str:
    if previous_epoch is None:
        return f"broker {broker} registered for the first time"
    restart = "a clean" if clean else "an unclean"
    return f"broker {broker} registered after {restart} restart (previous epoch {previous_epoch})"


def brokers_text(ids: tuple[int, ...]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
