"""The live driver: real clients over TCP, the real clock, one OS thread with one gevent hub.

Owns: the clock and its one timer, the listeners of all brokers, calls from other threads.
Never: yields inside a step; patches the standard library, so clients in the same process are not
affected.  Kafka: the machines of brokers.

Time is the wall clock at the start plus the progress of a monotonic clock since then: it never goes
back, and record timestamps are real.  A late loop expires no session: arrived bytes are read before
due timers run; timers run at their own times and in order (Dispatcher.at); and while this process
gets no CPU the cluster's clock stands still (live_clock.counted_us).  So on a busy machine no
broker is fenced, no ISR shrinks and no consumer loses its partitions because the simulator was
late.

While no client waits for an answer, the loop sleeps up to `SLACK_US` longer than the nodes asked
for, and then does the work of several wake-ups at once, each event at its own time: a wake-up costs
more than the work of an idle cluster.  Bytes of a client, or a command, end that sleep; everything
due before them happens first (docs/decisions/028).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import gevent
from gevent.event import Event
from gevent.hub import Hub

from kcluster.contract import Note
from kcluster.drivers.live_clock import LiveClock, counted_us
from kcluster.drivers.outside import Outside
from kcluster.drivers.serving import SocketDriver
from kcluster.drivers.sockets.acceptor import ReservedPort, SocketAcceptor
from kcluster.drivers.sockets.listener import Acceptor
from kcluster.operations.errors import ClusterError
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from kcluster.timers import NEVER_US

__all__ = ["ClusterError", "LiveDriver"]

T = TypeVar("T")

AFTER_SOCKETS: Final = -1
"""The priority of the timer's watcher: in a turn of the loop, sockets come first."""

TURN_NS: Final = 20_000_000
"""The time after which a dispatch is interrupted to read sockets."""

MAX_TURNS_CUT: Final = 250
"""The number of interrupted turns after which a turn takes as long as it needs."""

SLACK_US: Final = 20_000
"""The additional time for which the loop sleeps while no client waits.  Under profile `fast` it is
the time from one heartbeat to the next.  Events come this much later in real time, but not in the
cluster's time."""

LONGEST_SLEEP_S: Final = 3600.0
IDLE_SWEEPS: Final = 8
"""The number of checks for idle connections within connections.max.idle.ms."""
LONGEST_SWEEP_S: Final = 1.0
"""The time within which excess connections are closed after max.connections was lowered.  In Kafka
a network thread closes them when it next wakes."""


class LiveDriver(SocketDriver):
    """Runs a plan's nodes.  `run` takes over the calling thread; other threads use `call` and
    `stop`."""

    def __init__(
        self,
        plan: Plan,
        ports: dict[int, tuple[ReservedPort, ...]],
        log: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(plan, log)
        self.ports = ports
        self._outside = Outside(self)
        self.clock = LiveClock((time.time_ns() - time.monotonic_ns()) // 1000)
        self.clock_sinks: tuple[Callable[[], object], ...] = ()
        """Called when the clock is paused, is resumed or changes its speed, so that timers are set
        again."""
        self.end_sinks: tuple[Callable[[], object], ...] = ()
        """Called when the driver ends."""
        self._held: list[Callable[[], object]] = []
        """Actions of sockets that wait until the clock is resumed."""
        self._step: tuple[Callable[[Note], bool], Future[Note]] | None = None
        """The event at which the clock is to stop, while a step waits for one."""
        self._connection_ids = 0
        self._settle_is_due = False
        self._is_called_before_waiting = False
        self._commands: deque[tuple[Callable[[], object], Future[Any]]] = deque()
        self._commands_lock = threading.Lock()
        self._accepts_commands = False
        self._stop_wanted = False
        self._hub: Hub | None = None
        self._alarm: Any = None
        self._timer: Any = None
        self._armed_us = NEVER_US
        self._slack_us = 0
        """The time from `_armed_us` until the timer rings."""
        self._was_woken = True
        """Whether bytes or a command have arrived since the timer last rang."""
        self._may_await = True
        """Whether a client may be waiting for an answer.  If False, no client waited at the last
        look, and none can wait before bytes arrive."""
        self._computed_us = 0
        """The driver's CPU time when deadlines were last passed."""
        self._turn_ends_ns = 0
        """The time at which the dispatcher stops, even with work left, so that sockets are read,
        commands are taken and signals are obeyed."""
        self._turns_cut = 0
        """The number of consecutive turns that were interrupted."""
        self._stopped: Event | None = None
        self.thread_id: int | None = None

    def _make_dispatcher(self) -> Dispatcher:
        return Dispatcher(self.plan.fabric, self.plan.processes, self)

    # ----------------------------------------------------------------------------- run and stop

    def run(self, on_ready: Callable[[], None] | None = None) -> None:
        """Start every node, then serve until `stop`.  `on_ready` is called when all have started,
        which is before clients can connect if links are slow.  The caller destroys the thread's hub
        afterwards if it made the thread for this."""
        hub = self._hub = gevent.get_hub()
        hub.NOT_ERROR = (*hub.NOT_ERROR, ClusterError)
        report, hub.handle_error = hub.handle_error, self._on_error
        self._report_error = report
        self.thread_id = threading.get_ident()
        self._stopped = Event()
        self._timer = hub.loop.timer(0)
        self._alarm = hub.loop.async_()
        self._alarm.start(self._run_commands)
        before_waiting = prepare_watcher(hub)
        if before_waiting is not None:
            before_waiting.start(self._before_waiting)
            self._is_called_before_waiting = True
        sweep = gevent.spawn(self._close_idle)
        try:
            self.wake()
            self.dispatcher.start_all()
            self.settle()
            self.dispatcher.is_time_up = self._is_turn_over  # no client waits earlier
            with self._commands_lock:
                self._accepts_commands = True
            self._run_commands()
            if on_ready is not None:
                on_ready()
            self._stopped.wait()
        finally:
            self._refuse_commands()
            sweep.kill(block=False)
            for sink in self.end_sinks:
                sink()
            for listener in self.open_listeners():
                listener.close()
            self.listeners.clear()
            self._alarm.close()
            self._timer.close()
            if before_waiting is not None:
                before_waiting.close()
            hub.handle_error = report
            # Callbacks that are still scheduled run now and find everything closed.
            gevent.sleep(0)

    def stop(self) -> None:
        """End `run`, from any thread: all sockets close and all nodes end."""
        with self._commands_lock:
            self._stop_wanted = True
            if self._accepts_commands:
                self._alarm.send()

    # ---------------------------------------------------------------------------- other threads

    @property
    def is_running(self) -> bool:
        """Whether `call` is possible."""
        return self._accepts_commands

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Run `function` in the driver's thread between two dispatches; from any thread.  A
        ClusterError that it raises goes to the future."""
        future: Future[T] = Future()
        with self._commands_lock:
            if not self._accepts_commands:
                raise ClusterError("the cluster is not running")
            self._commands.append((function, future))
            self._alarm.send()
        return future

    def _run_commands(self) -> None:
        if self._stop_wanted:
            assert self._stopped is not None
            self._stopped.set()
        while self._commands:
            function, future = self._commands.popleft()
            # Each call runs in its own greenlet, so that its exception reaches its own future.
            greenlet = gevent.Greenlet(self._run_command, function)
            greenlet.link(_Settled(future))
            greenlet.start()

    def _run_command(self, function: Callable[[], T]) -> T:
        self._begin_turn()
        self.wake()
        result = function()
        self.settle()
        return result

    def _refuse_commands(self) -> None:
        with self._commands_lock:
            self._accepts_commands = False
            refused, self._commands = self._commands, deque()
        ended = ClusterError("the cluster was stopped")
        for _, future in refused:
            future.set_exception(ended)
        for _, waiting in self._conditions:
            waiting.set_exception(ended)
        self._conditions = []

    def _on_error(self, context: Any, kind: object, value: Any, trace: object) -> None:
        if not isinstance(value, (ClusterError, gevent.GreenletExit)):
            self.bugs.append(value)
        self._report_error(context, kind, value, trace)

    # ------------------------------------------------------------------------ time and dispatch

    def clock_ms(self) -> int:
        """The cluster's clock at this moment, not at the last dispatch; from any thread.  While the
        loop is late, it stands at the time of the due event."""
        dispatcher = self.dispatcher
        reached_us = max(dispatcher.now_us, dispatcher.quiet_until_us)
        return min(self.clock.at(time.monotonic_ns() // 1000), reached_us) // 1000

    def wake(self) -> None:
        """Bring the clock up to date, after bytes or a command have arrived.  Due events wait for
        the timer, because other clients' bytes may have arrived too, and are read first; events
        that were put off while no client waited happen now."""
        clock, dispatcher = self.clock, self.dispatcher
        now_us = time.monotonic_ns() // 1000 + clock.offset_us
        if clock.is_steered:
            now_us = clock.at(now_us - clock.offset_us)
        due_us = dispatcher.quiet_until_us
        self._was_woken = self._may_await = True
        if self._slack_us:
            if now_us >= due_us:
                self._begin_turn()
                self.pass_deadlines()
            self._slack_us = 0
            self._armed_us = NEVER_US  # `settle` sets the timer again
            due_us = dispatcher.quiet_until_us
        dispatcher.at(now_us if now_us < due_us else due_us - 1)

    def pass_deadlines(self) -> None:
        """Bring the clock up to date, and let everything that is due happen."""
        dispatcher = self.dispatcher
        now_us = self.clock.at(time.monotonic_ns() // 1000)
        computed_us = time.thread_time_ns() // 1000
        # A resumed broker has deadlines in the past, which do not show a delay of the loop.
        late_us = now_us - max(dispatcher.quiet_until_us + self._slack_us, dispatcher.now_us)
        if (lost_us := late_us - counted_us(late_us, computed_us - self._computed_us)) > 0:
            self.clock.fall_behind(lost_us)
            now_us -= lost_us
        self._computed_us = computed_us
        if self._step is None:
            dispatcher.at(now_us)
        else:
            self._advance_stepwise(now_us)

    def _advance_stepwise(self, now_us: int) -> None:
        """Set the time, but no further than the moment at which the clock was paused."""
        dispatcher = self.dispatcher
        while not self.clock.is_paused:
            due_us = min(now_us, max(dispatcher.quiet_until_us, dispatcher.now_us))
            dispatcher.at(due_us)
            if due_us >= now_us:
                return

    def _is_turn_over(self) -> bool:
        if time.monotonic_ns() <= self._turn_ends_ns:
            return False
        # Clients must not add work for ever, because time would stand still.
        return self._turns_cut < MAX_TURNS_CUT

    def _begin_turn(self) -> None:
        self._turn_ends_ns = time.monotonic_ns() + TURN_NS
        self._turns_cut = self._turns_cut + 1 if self.dispatcher.is_cut_short else 0

    def settle(self) -> None:
        self._begin_turn()
        super().settle()

    def settle_soon(self) -> None:
        if not self._settle_is_due:
            self._settle_is_due = True
            if not self._is_called_before_waiting:
                gevent.get_hub().loop.run_callback(self._before_waiting)

    def _before_waiting(self) -> None:
        """Called when the loop has called back for all ready sockets and is about to wait."""
        if self._settle_is_due:
            self._settle_is_due = False
            self.settle()

    def _arm(self) -> None:
        self._timer.stop()
        if self.clock.is_paused:
            return
        dispatcher = self.dispatcher
        due_us = dispatcher.now_us if dispatcher.is_cut_short else dispatcher.quiet_until_us
        self._armed_us = due_us
        self._slack_us = SLACK_US if self._is_calm() else 0
        if due_us != NEVER_US:
            delay_s = self.delay_s(due_us + self._slack_us)
            hub = self._hub
            assert hub is not None
            self._timer.close()
            self._timer = hub.loop.timer(min(delay_s, LONGEST_SLEEP_S), 0.0, True, AFTER_SOCKETS)
            self._timer.start(self._on_timer, update=True)

    def _is_calm(self) -> bool:
        """Whether no client waits for an answer and no verb for a condition, and none has waited
        lately."""
        return not (
            self._was_woken
            or self._conditions
            or self.clock.is_steered
            or self._step is not None
            or self.dispatcher.is_cut_short
            or self.dispatcher.calls_back
            or self._clients_wait()
        )

    def _clients_wait(self) -> bool:
        """Whether a client waits for an answer.  An idle cluster does not go through its thousands
        of connections at each wake-up."""
        if self._may_await:
            self._may_await = any(listener.awaits_reply for listener in self.open_listeners())
        return self._may_await

    def _on_timer(self) -> None:
        self._armed_us = NEVER_US
        self._was_woken = False
        self._begin_turn()
        try:
            self.pass_deadlines()
            self.settle()
        finally:
            if self._armed_us == NEVER_US:
                # A step raised an error: the other nodes continue.
                self._arm()

    def _close_idle(self) -> None:
        while True:
            limits = [x.limits.max_idle_ms for x in self.open_listeners()]
            shortest_ms = min((limit for limit in limits if limit >= 0), default=60_000)
            gevent.sleep(min(max(0.05, shortest_ms / IDLE_SWEEPS / 1000), LONGEST_SWEEP_S))
            if self.clock.is_paused:
                continue
            self.wake()
            for listener in self.open_listeners():
                listener.close_excess()
                listener.close_idle(self.now_ms())
            self.settle()

    # ---------------------------------------------------------------------- steering the clock
    # In the driver's thread.

    def pause_clock(self) -> None:
        """Stop the clock at this moment: no timer runs, nothing is read from a socket or accepted,
        so clients see a stall.  Commands still act, at this moment, one after the other."""
        if not self.clock.is_paused:
            self.clock.pause(time.monotonic_ns() // 1000, self.dispatcher.now_us)
            self.is_clock_paused = True
            self._armed_us = NEVER_US
            self._clock_changed()

    def resume_clock(self) -> None:
        """Let the clock continue from where it stands."""
        if self.clock.is_paused:
            self.clock.resume(time.monotonic_ns() // 1000)
            self.is_clock_paused = False
            held, self._held = self._held, []
            for callback in held:
                callback()
            self._clock_changed()

    def set_speed(self, speed: float) -> None:
        """Run the clock at `speed`, 1.0 being the machine's."""
        self.clock.set_speed(time.monotonic_ns() // 1000, speed)
        self.clock_speed = speed
        self._clock_changed()

    def pause_at(self, is_wanted: Callable[[Note], bool]) -> Future[Note]:
        """Let the clock run until the next matching event, and pause it at that moment, before any
        later consequence of the event.  The future gets the event."""
        future: Future[Note] = Future()
        self.forget_step()
        self._step = (is_wanted, future)
        self.dispatcher.note_sinks = (*self.dispatcher.note_sinks, self._on_step_note)
        self.resume_clock()
        return future

    def forget_step(self) -> None:
        """Stop waiting for an event to pause at."""
        if self._step is not None:
            _, future = self._step
            self._step = None
            sinks = self.dispatcher.note_sinks
            self.dispatcher.note_sinks = tuple(x for x in sinks if x != self._on_step_note)
            if not future.done():
                future.set_exception(ClusterError("another step began, or the clock was steered"))

    def _on_step_note(self, note: Note) -> None:
        if self._step is not None:
            is_wanted, future = self._step
            if not future.done() and is_wanted(note):
                self.pause_clock()
                future.set_result(note)

    def on_resumed(self, callback: Callable[[], object]) -> None:
        """Call back once the clock is resumed."""
        self._held.append(callback)

    def delay_s(self, at_us: int) -> float:
        """The time that the machine takes until this time of the cluster."""
        clock = self.clock
        left_us = at_us - clock.at(time.monotonic_ns() // 1000)
        return max(0.0, clock.wait_us(left_us) / 1e6)

    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back in a greenlet at this time of the cluster's clock, between two dispatches."""
        self.dispatcher.later(at_us, lambda: gevent.spawn(self._run_command, callback))
        self.settle_soon()

    def _clock_changed(self) -> None:
        for sink in self.clock_sinks:
            sink()
        if self._timer is not None:
            self._arm()

    # ----------------------------------------------------------------------------- as an Outlet

    def next_connection_id(self) -> int:
        self._connection_ids += 1
        return self._connection_ids

    def address(self, node_id: int, at: int) -> tuple[str, int]:
        """The host and port at which a broker's listener number `at` listens."""
        port = self.ports[node_id][at]
        return port.host, port.port

    def _acceptor(self, node_id: int, at: int) -> Acceptor:
        return SocketAcceptor(self.ports[node_id][at], self, node_id)

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        """The network node of these outside clients, created on first use.  Part of Outlet."""
        self.outside = self._outside
        return (self._outside.find(pattern, by_host),)

    def new_ports(self, node_id: int, count: int) -> tuple[int, ...]:
        """Assign ports to a broker that is new, or down and about to have other addresses.  Part
        of Outlet."""
        old = self.ports.get(node_id, ())
        host = self.plan.topology.host
        fresh = self.ports[node_id] = tuple(ReservedPort(host, 0) for _ in range(count))
        for port in old:
            port.release()
        return tuple(port.port for port in fresh)


def prepare_watcher(hub: Hub) -> Any:
    """A watcher that is called before the loop waits; None if gevent has none (libuv)."""
    try:
        return hub.loop.prepare()
    except TypeError:
        return None


class _Settled:
    """Passes the result of a greenlet to a future of another thread."""

    __slots__ = ("_future",)

    def __init__(self, future: Future[object]) -> None:
        self._future = future

    def __call__(self, greenlet: Any) -> None:
        if greenlet.successful():
            self._future.set_result(greenlet.value)
        else:
            self._future.set_exception(greenlet.exception)
