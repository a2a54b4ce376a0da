"""Words for events of brokers and of the controller.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from typing import Final

from kcluster.deaths import DeathKind
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    BrokerReaddressed,
    BrokerRegistered,
    BrokerResumed,
    BrokerStarted,
    BrokerUnfenced,
    CertificateReplaced,
    ControlledShutdown,
    ControllerDown,
    ControllerElected,
    DiskFull,
    DiskReplaced,
    RecordsLost,
    RegistrationRefused,
)
from kcluster.events.words.base import counted, text_of
from kcluster.events.words.reasons import fenced_text, registered_text
from kcluster.security.certificates import CertificateState

_DEATHS: Final = {
    DeathKind.CLEAN: "process stopped after a controlled shutdown",
    DeathKind.KILL: "process killed; written data survives",
    DeathKind.POWER: "power lost; unflushed writes are lost",
    DeathKind.WIPE: "process killed; disk wiped",
}


@text_of.register
def _(event: BrokerStarted) -> str:
    return "process restarted" if event.restarted else "process started"


@text_of.register
def _(event: BrokerDown) -> str:
    return (
        f"process crashed on a simulator bug while handling {event.bug}"
        if event.bug
        else _DEATHS[event.how]
    )


@text_of.register
def _(event: BrokerReaddressed) -> str:
    return f"will listen on {event.host}:{event.port} from its next start"


@text_of.register
def _(_event: DiskFull) -> str:
    return "no space left in its only log directory; the broker halts"


@text_of.register
def _(_event: DiskReplaced) -> str:
    return "its disk was replaced by an empty one"


_CERTIFICATES: Final = {
    CertificateState.VALID: "new connections are shown a new certificate",
    CertificateState.EXPIRED: "new connections are shown an expired certificate",
    CertificateState.WRONG_NAME: "new connections are shown a certificate for another name",
}


@text_of.register
def _(event: CertificateReplaced) -> str:
    return _CERTIFICATES[event.state]


@text_of.register
def _(_event: BrokerPaused) -> str:
    return "process paused"


@text_of.register
def _(_event: BrokerResumed) -> str:
    return "process resumed"


@text_of.register
def _(event: BrokerRegistered) -> str:
    return registered_text(event.broker, event.previous_epoch, event.clean)


@text_of.register
def _(event: RegistrationRefused) -> str:
    return (
        "registration refused: the session of its previous process ends in"
        f" {event.session_left_ms} ms"
    )


@text_of.register
def _(event: BrokerFenced) -> str:
    return fenced_text(event.broker, event.fencing, event.silent_ms)


@text_of.register
def _(event: BrokerUnfenced) -> str:
    return (
        f"broker {event.broker} unfenced: caught up to its registration"
        f" at metadata offset {event.registration_offset}"
    )


@text_of.register
def _(event: ControlledShutdown) -> str:
    if event.leaders_to_move is None:
        return f"broker {event.broker} requests a controlled shutdown"
    leaders = counted(event.leaders_to_move, "leader")
    return f"broker {event.broker} has {leaders} to move before it stops"


@text_of.register
def _(event: RecordsLost) -> str:
    return f"{counted(event.records, 'unflushed record')} lost across all its logs"


@text_of.register
def _(_event: ControllerDown) -> str:
    return "the active controller's process ended"


@text_of.register
def _(event: ControllerElected) -> str:
    return f"controller {event.leader} became active, epoch {event.epoch}"
