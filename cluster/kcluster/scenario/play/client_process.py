"""The process of one client of a workload: it can be killed, started again, paused.

Owns: which client runs in it, its state, what arrives while it is paused.  Never: acts as a client
(clients/), knows a driver beyond the two calls of ClientSeat.
Kafka: kill -9, SIGSTOP of a client's process, and its supervisor.

A client that is started again has the settings of its spec, also its group and its transactional
id, and goes on with the numbers of its records, so that values stay unique.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar, final

from kcluster.clients.wire import ClientStateMachine, Wire
from kcluster.contract import Event
from kcluster.deaths import ProcessState
from kcluster.events.clients import ClientDown, ClientPaused, ClientResumed, ClientStarted
from kcluster.protocol.messages import Message


class ProcessedClient(ClientStateMachine, Protocol):
    """A client of a workload, as its process sees it."""

    name: str

    @property
    def is_done(self) -> bool:
        """Whether the client is closed."""

    def stop(self, now_ms: int) -> None:
        """End the application."""

    def abort(self, now_ms: int) -> None:
        """Die with the process: send nothing more."""

    def again(self, age_ms: int, last: Self) -> Self:
        """The client of a process that starts again, `age_ms` after the first start.  `last`: the
        client that ran before."""


class ClientSeat(Protocol):
    """One client's place at a driver."""

    @property
    def now_ms(self) -> int:
        """The cluster's time."""

    def hand_over(self, client: ClientStateMachine) -> Wire:
        """Let another state machine have the client's callbacks; returns the client's wire."""

    def called(self, event: Event) -> None:
        """Do the work that is due after a call of the client, and note the event."""


Client = TypeVar("Client", bound=ProcessedClient)
_Callback = Callable[[int], None]


@final
class _PausedClient:
    """The state machine of a process that stands still: it keeps what arrives for `client`."""

    deadline_ms = None

    def __init__(self, client: ClientStateMachine) -> None:
        self._client = client
        self.arrived: list[_Callback] = []

    def start(self, wire: Wire, now_ms: int) -> None:
        raise AssertionError("a paused client has started before")

    def on_reply(self, broker_id: int, correlation_id: int, body: Message, now_ms: int) -> None:
        self.arrived.append(
            lambda later_ms: self._client.on_reply(broker_id, correlation_id, body, later_ms)
        )

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        self.arrived.append(lambda later_ms: self._client.on_disconnected(broker_id, later_ms))

    def on_tick(self, now_ms: int) -> None:
        raise AssertionError("a paused client has no deadline")


class ClientProcess(Generic[Client]):
    """The process of a client.  `client`: the client that runs in it, or was the last to do so;
    `began_ms`: the time of its first start.

    It cannot be acted on before it has a `seat`."""

    def __init__(self, client: Client, began_ms: int) -> None:
        self.name = client.name
        self.client = client
        self.seat: ClientSeat | None = None
        self._first = client
        self._began_ms = began_ms
        self._paused: _PausedClient | None = None
        self._is_over = False
        self._lives = 1
        self.is_ended = False
        """Whether a step has killed or stopped it, and none has started it again."""

    @property
    def state(self) -> ProcessState:
        """DOWN also if its application has ended by itself, or is being closed by a step."""
        if self._paused is not None:
            return ProcessState.PAUSED
        is_down = self.is_ended or self.client.is_done
        return ProcessState.DOWN if is_down else ProcessState.UP

    @property
    def is_up(self) -> bool:
        """Whether its application runs now."""
        return self.state is ProcessState.UP

    def kill(self) -> None:
        """End the process, as SIGKILL does."""
        seat = self._seat()
        if self._paused is not None:
            self._paused = None
            seat.hand_over(self.client)
        self.is_ended = True
        self.client.abort(seat.now_ms)
        seat.called(ClientDown(self.name, is_killed=True))

    def stop(self) -> None:
        """End the application, as close() does."""
        seat = self._seat()
        self.is_ended = True
        self.client.stop(seat.now_ms)
        seat.called(ClientDown(self.name, is_killed=False))

    def start(self) -> None:
        """Start a new process of the client; without effect once the workload has ended."""
        if self._is_over:
            return
        seat = self._seat()
        if not self.client.is_done:  # it is still being closed
            self.client.abort(seat.now_ms)
        self._lives += 1
        self.is_ended = False
        self.client = self._first.again(seat.now_ms - self._began_ms, self.client)
        self.client.start(seat.hand_over(self.client), seat.now_ms)
        seat.called(ClientStarted(self.name, self._lives))

    def pause(self) -> None:
        """Stop the process, as by SIGSTOP."""
        seat = self._seat()
        self._paused = _PausedClient(self.client)
        seat.hand_over(self._paused)
        seat.called(ClientPaused(self.name))

    def resume(self) -> None:
        """Let the process go on: what has arrived meanwhile comes first."""
        seat, paused = self._seat(), self._paused
        assert paused is not None, self.name
        self._paused = None
        seat.hand_over(self.client)
        for callback in paused.arrived:
            callback(seat.now_ms)
        self.client.on_tick(seat.now_ms)
        seat.called(ClientResumed(self.name))

    def end(self, now_ms: int) -> None:
        """End the application with the workload: nothing starts it again."""
        self._is_over = True
        if self._paused is not None:
            self.resume()
        self.client.stop(now_ms)

    def _seat(self) -> ClientSeat:
        assert self.seat is not None, self.name
        return self.seat
