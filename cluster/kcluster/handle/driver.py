"""A driver's interface to the handles: the live driver's, or the in-memory one's.

Owns: that protocol.  Never: has code.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from kcluster.contract import Note
from kcluster.runtime.dispatch import Dispatcher

if TYPE_CHECKING:
    from kcluster.drivers.tls.cluster_tls import ClusterTls

T = TypeVar("T")


class HandleDriver(Protocol):
    """Runs a plan's nodes."""

    bugs: list[BaseException]
    """The errors that steps have raised; each is a bug."""

    @property
    def tls(self) -> ClusterTls | None:
        """The TLS of the brokers; None if no listener has it."""

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher, which has the nodes."""

    @property
    def clock_speed(self) -> float:
        """The speed of the cluster's clock; 1.0 is the machine's."""

    @property
    def is_clock_paused(self) -> bool:
        """Whether nothing happens until the clock is resumed."""

    def now_ms(self) -> int:
        """The time of the last dispatch."""

    def clock_ms(self) -> int:
        """The cluster's clock at this moment; from any thread."""

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Call a function between two dispatches; from any thread."""

    def when(
        self, condition: Callable[[], bool], future: Future[None] | None = None
    ) -> Future[None]:
        """A future that completes when the condition holds between two dispatches, or `future`."""

    def forget_condition(self, future: Future[None]) -> None:
        """Stop checking the condition of a future from `when`."""

    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at this time of the cluster's clock, between two dispatches."""


@runtime_checkable
class SteeredDriver(Protocol):
    """A driver whose clock can be steered."""

    def pause_clock(self) -> None:
        """Stop the clock at this moment."""

    def resume_clock(self) -> None:
        """Let the clock continue."""

    def set_speed(self, speed: float) -> None:
        """Run the clock at this speed."""

    def pause_at(self, is_wanted: Callable[[Note], bool]) -> Future[Note]:
        """Let the clock run until the next matching event, and pause it."""

    def forget_step(self) -> None:
        """Stop waiting for the event of `pause_at`."""
