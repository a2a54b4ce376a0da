"""Events of brokers and of the controller, as processes and as members of the cluster.

Owns: their facts.  Never: words for them (words/).
Kafka: the logs of BrokerLifecycleManager and ClusterControlManager, and of the machines.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.deaths import DeathKind
from kcluster.events.base import TaggedEvent
from kcluster.events.reasons import Fencing
from kcluster.security.certificates import CertificateState


class BrokerEvent(TaggedEvent, frozen=True):
    """The base of events that happen to a broker."""

    broker: int

    @property
    def subject(self) -> str:
        return f"broker {self.broker}"

    @property
    def loses_disk(self) -> bool:
        """Whether all that the broker had written is lost."""
        return False

    @property
    def loses_records(self) -> bool:
        """Whether the broker's logs may lack records that it had written."""
        return self.loses_disk


class BrokerStarted(BrokerEvent, frozen=True):
    """A broker's process started.  `restarted`: whether it had run before."""

    restarted: bool = False


class BrokerDown(BrokerEvent, frozen=True):
    """A broker's process ended.  `bug`: the input that it was handling when a bug of the simulator
    ended it; "" otherwise."""

    how: DeathKind
    bug: str = ""

    @property
    def loses_disk(self) -> bool:
        return self.how is DeathKind.WIPE

    @property
    def loses_records(self) -> bool:
        return self.loses_disk or self.how is DeathKind.POWER


class BrokerReaddressed(BrokerEvent, frozen=True):
    """A broker will listen at another address from its next start on."""

    host: str
    port: int


class DiskFull(BrokerEvent, frozen=True):
    """No space is left in a broker's only log directory, so the broker halts."""


class DiskReplaced(BrokerEvent, frozen=True):
    """A broker that is down got an empty disk."""

    @property
    def loses_disk(self) -> bool:
        return True


class CertificateReplaced(BrokerEvent, frozen=True):
    """A broker shows another certificate to new connections."""

    state: CertificateState


class BrokerPaused(BrokerEvent, frozen=True):
    """A broker's process was stopped, as by SIGSTOP or a long garbage collection."""


class BrokerResumed(BrokerEvent, frozen=True):
    """A broker's paused process runs again."""


class BrokerRegistered(BrokerEvent, frozen=True):
    """The controller registered a broker's new process.  `previous_epoch`: the broker epoch of the
    previous process, None for the first; `clean`: whether that process stopped cleanly
    (KIP-966)."""

    previous_epoch: int | None
    clean: bool
    rack: str | None = None


class RegistrationRefused(BrokerEvent, frozen=True):
    """The controller refused to register the broker's new process, for the first time: the session
    of the previous process is valid for `session_left_ms` more.  The broker asks again until that
    session has ended."""

    session_left_ms: int


class BrokerFenced(BrokerEvent, frozen=True):
    """The controller fenced a broker: it may not lead or be in an ISR. `silent_ms`: the time
    without a heartbeat, if that is the reason."""

    fencing: Fencing
    silent_ms: int = 0


class BrokerUnfenced(BrokerEvent, frozen=True):
    """The controller unfenced a broker, because it has applied the metadata log up to its
    registration; the broker may lead again."""

    registration_offset: int


class ControlledShutdown(BrokerEvent, frozen=True):
    """A broker requests a controlled shutdown; or the controller reports `leaders_to_move`, the
    number of its leaders that must first move to other brokers."""

    leaders_to_move: int | None = None


class LostRange(Struct, frozen=True, gc=False):
    """A range of offsets of one replica's log, the end excluded."""

    topic: str
    partition: int
    from_offset: int
    to_offset: int


class RecordsLost(BrokerEvent, frozen=True):
    """A broker lost power while `records` records in its logs were unflushed; `ranges` lists their
    offsets."""

    records: int
    ranges: tuple[LostRange, ...] = ()


class ControllerEvent(TaggedEvent, frozen=True):
    """The base of events that happen to the controller."""

    @property
    def subject(self) -> str:
        return "controller"


class ControllerDown(ControllerEvent, frozen=True):
    """The active controller's process ended."""


class ControllerElected(ControllerEvent, frozen=True):
    """A controller became active."""

    leader: int
    epoch: int
