"""Delivers events to nodes and carries out their effects, for all drivers.

Owns: the processes of a cluster and their starts and deaths, the queue of a dispatch, messages in
flight between nodes, nodes' deadlines, the sinks of notes.  Never: reads a clock (the driver sets
the time), touches a socket (`Outlet` does).  Kafka: the machines, the kernel and the network.

A *dispatch* is one `run`: events are delivered first in, first out, until none is left for the
current time.  Guarantees: contract.py, 1 to 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Final

from kcluster.broker.node_view import BrokerNodeView
from kcluster.contract import (
    AcceptClients,
    CloseConnection,
    Effect,
    Event,
    Input,
    Note,
    NoteId,
    PeerDisconnected,
    PeerRequest,
    PeerResponse,
    Reply,
    Request,
    Send,
    Shutdown,
    Start,
    Stopped,
    Tick,
)
from kcluster.deaths import DeathKind, ProcessState
from kcluster.events.brokers import (
    BrokerDown,
    BrokerPaused,
    BrokerResumed,
    BrokerStarted,
    ControllerDown,
    DiskReplaced,
    RecordsLost,
)
from kcluster.network.fabric import Arrives, Fabric, Link, Resets
from kcluster.partition.replica import Replica
from kcluster.runtime.gate import FaultGate
from kcluster.runtime.livelock import LivelockError
from kcluster.runtime.node_gate import NodeGate
from kcluster.runtime.process import Outlet, Process
from kcluster.timers import NEVER_US

RUNTIME_ID: Final = -1
"""First half of the NoteIds of operations on the cluster: kill, pause, cut."""

_UP: Final = ProcessState.UP
_PAUSED: Final = ProcessState.PAUSED

MAX_STEPS: Final = 300_000
"""The most steps in one dispatch; more mean that two nodes send each other messages without end."""

MAX_IDLE: Final = 100_000
"""The most dispatches at one time; more mean that a node ignores its Ticks."""

_LIFE_SHIFT: Final = 40
ASKED_BITS: Final = (1 << _LIFE_SHIFT) - 1
"""The bits of a request id that its sender chose; the others are the sender's life."""

NoteSink = Callable[[Note], None]
ReplySink = Callable[[int, Reply, int], None]  # (broker id, reply, now_ms)
HealSink = Callable[[Link], None]
"""Called for both directions of a healed link."""
LostSink = Callable[[Link, int], None]  # (link, when the lost message's sender gives up, µs)
Tap = Callable[[int, int, Input], None]  # (now_us, node id, event about to be delivered)
StepSink = Callable[[Process], None]  # (the process whose node took the step)
MessageSink = Callable[[int, int, Input, int], None]
"""Called with (source, destination, event, arrival in µs, -1 for a lost message)."""


def number_of(life: int, request_id: int) -> int:
    """The id of a request with the life of its sender, as it arrives at another node."""
    return life << _LIFE_SHIFT | request_id


class Dispatcher:
    """Nodes by id, and everything between them.  Times in microseconds, of the driver's clock."""

    def __init__(self, fabric: Fabric, processes: Iterable[Process], outlet: Outlet) -> None:
        self.fabric = fabric
        self.processes: dict[int, Process] = {process.node_id: process for process in processes}
        self.note_sinks: tuple[NoteSink, ...] = ()
        self.reply_sinks: tuple[ReplySink, ...] = ()
        self.withheld_sinks: tuple[Callable[[Reply], None], ...] = ()
        """Called with replies that a rule withholds from their clients or delays."""
        self.answer_sinks: tuple[Callable[[PeerResponse, int], None], ...] = ()
        """Called with (answer, now_ms) of nodes to the runtime's own requests."""
        self.unanswered_sinks: tuple[Callable[[int, Request, int], None], ...] = ()
        """Called with (broker id, request, now_ms) of requests whose connection has ended."""
        self.close_sinks: tuple[Callable[[int, int], None], ...] = ()
        """Called with (connection id, now_ms) of connections that a broker or a rule closes."""
        self.heal_sinks: tuple[HealSink, ...] = ()
        self.on_lost: LostSink = lambda link, at_us: None
        self.on_answer: Callable[[PeerResponse], None] | None = None
        """Called with responses to the runtime's own requests, which it sends as node
        RUNTIME_ID."""
        self.message_sink: MessageSink | None = None
        """Called with each message that a node sends to another, while a page is open."""
        self.tap: Tap | None = None
        self.step_sinks: tuple[StepSink, ...] = ()
        """Called after each step, before its effects are carried out."""
        self.is_time_up: Callable[[], bool] | None = None
        """Called after each step; True stops the dispatch, because sockets wait to be read; time
        then stands still until the rest is delivered.  In virtual time it is None, and nothing
        stops a dispatch."""
        self.is_cut_short = False
        """Whether the last `run` or `at` was stopped in this way, and must be called again."""
        self.now_us = 0
        self.quiet_until_us = NEVER_US
        """The time before which nothing is due; never later than `next_due_us()`."""
        self.outlet = outlet
        self.gate: FaultGate | None = None  # while there are rules on requests of clients
        self.node_gate: NodeGate | None = None  # while there are rules between nodes
        self.past_node_acts = 0  # of the gates between nodes that are gone
        self._callbacks: list[tuple[int, int, Callable[[], object]]] = []
        self._pending: list[tuple[Process, int, Input]] = []
        self._in_flight: list[tuple[int, int, int, Process, int, Input]] = []
        """The messages in flight: (arrival_us, sequence, source, destination, its life, event)."""
        self._sequence = 0
        self._last_arrival_us: dict[Link, int] = {}
        self._touched: list[Process] = []
        self._running = False
        self._interjected: list[Callable[[], None]] = []
        self._is_interrupted = False
        """Whether interjected callbacks act at this moment, in the middle of a step."""
        self._notes = 0
        self._shutdown_limits_us: dict[int, int] = {}
        """The time limit of each node's controlled shutdown, by node."""
        self._starts_after_shutdown: dict[int, None] = {}

    # ------------------------------------------------------------------------- what runs now

    def broker(self, broker_id: int) -> BrokerNodeView | None:
        """A broker whose process runs or is paused."""
        process = self.processes.get(broker_id)
        return None if process is None else process.broker

    def brokers(self) -> list[BrokerNodeView]:
        """The brokers whose processes run or are paused."""
        return [node for each in self.processes.values() if (node := each.broker) is not None]

    def replica(self, broker_id: int, topic_id: bytes, partition: int) -> Replica | None:
        """The replica on a broker that runs or is paused."""
        node = self.broker(broker_id)
        return None if node is None else node.replicas.get(topic_id, partition)

    # -------------------------------------------------------------------------------- time

    @property
    def now_ms(self) -> int:
        """The time that nodes see."""
        return self.now_us // 1000

    def next_due_us(self) -> int:
        """The next time at which something is due without a client's request; NEVER_US for
        never."""
        due_us = self._in_flight[0][0] if self._in_flight else NEVER_US
        if self._callbacks:
            due_us = min(due_us, self._callbacks[0][0])
        for process in self.processes.values():
            if process.deadline_ms is not None and process.deadline_ms * 1000 < due_us:
                due_us = process.deadline_ms * 1000
        limits_us = self._shutdown_limits_us
        return min(due_us, *limits_us.values()) if limits_us else due_us

    def at(self, now_us: int) -> None:
        """Set the time.  Everything that became due since the last call happens first, each at its
        own time and in order, so that no broker misses heartbeats because its driver is late."""
        idle = 0
        if self.is_cut_short:
            self._run()
        while not self.is_cut_short and self.quiet_until_us <= now_us:
            before_us = self.now_us
            self.advance(self.quiet_until_us)
            if self.is_time_up is not None and self.is_time_up():
                return
            idle = 0 if self.now_us > before_us else idle + 1
            if idle >= MAX_IDLE:
                due_us = self.quiet_until_us
                raise LivelockError(self.now_ms, f"something is always due at {due_us} us")
        if not self.is_cut_short:
            self.now_us = max(self.now_us, now_us)

    def advance(self, now_us: int) -> None:
        """Set the time, deliver arrived messages and due Ticks, and run."""
        self.now_us = max(self.now_us, now_us)
        while self._callbacks and self._callbacks[0][0] <= self.now_us:
            heappop(self._callbacks)[2]()
        self._collect_arrivals()
        self._run()
        now_ms = self.now_us // 1000
        for process in self.processes.values():
            if process.deadline_ms is not None and process.deadline_ms <= now_ms:
                self._pending.append((process, process.life, Tick()))
                process.deadline_ms = None  # until the node has had its Tick
        if self._pending and not self.is_cut_short:
            self._run()
        for node_id, limit_us in tuple(self._shutdown_limits_us.items()):
            if limit_us <= self.now_us:
                starts_again = node_id in self._starts_after_shutdown
                self.take_down(node_id, DeathKind.KILL)
                if starts_again:
                    self.start(node_id)
        self.quiet_until_us = self.next_due_us()

    def dispatch(self, node_id: int, event: Input) -> None:
        """Deliver `event` to a node at the current time, and run."""
        if self._in_flight:
            self._collect_arrivals()
        process = self.processes[node_id]
        self._pending.append((process, process.life, event))
        self._run()

    def deliver(self, node_id: int, event: Input) -> None:
        """Deliver `event` to a node; messages that it causes between nodes wait for `run`, so that
        the requests of many clients are replicated together."""
        self._step(self.processes[node_id], event, self.now_us // 1000)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits for `run`."""
        return not self._pending and not self._touched

    @property
    def calls_back(self) -> bool:
        """Whether a callback of `later` is outstanding."""
        return bool(self._callbacks)

    def run(self) -> None:
        """Deliver the messages between nodes until none is left for the current time."""
        self._run()

    def later(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at that time, between two dispatches, before all other events of that time."""
        self._sequence += 1
        self.quiet_until_us = min(self.quiet_until_us, at_us)
        heappush(self._callbacks, (at_us, self._sequence, callback))

    def interject(self, callback: Callable[[], None]) -> None:
        """Call back before the effects of the present step are carried out; only for a step sink.
        The callback may act on the cluster.  If it ends the process that took the step, nothing of
        the step leaves the process: no message, no reply."""
        self._interjected.append(callback)

    def send_reply(self, node_id: int, reply: Reply) -> None:
        """Send a broker's reply to its client."""
        self.outlet.reply(node_id, reply)
        for sink in self.reply_sinks:
            sink(node_id, reply, self.now_us // 1000)

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        """Close a client's connection from the broker's end."""
        self.outlet.close_connection(node_id, connection_id, reason)
        for sink in self.close_sinks:
            sink(connection_id, self.now_us // 1000)

    def gave_up(self, node_id: int, request: Request) -> None:
        """Take note that the connection of a request has ended before its answer."""
        for sink in self.unanswered_sinks:
            sink(node_id, request, self.now_us // 1000)

    def _collect_arrivals(self) -> None:
        in_flight, fabric = self._in_flight, self.fabric
        while in_flight and in_flight[0][0] <= self.now_us:
            _, _, source, process, life, event = heappop(in_flight)
            if not fabric.has_cuts or not fabric.is_cut(source, process.node_id):
                self._pending.append((process, life, event))

    # ---------------------------------------------------------------------------- the loop

    def _run(self) -> None:
        if self._is_interrupted:
            return  # the run that was interrupted goes on
        assert not self._running, "a step called back into the dispatcher"
        self._running = True
        self.is_cut_short = False
        now_ms, is_time_up = self.now_us // 1000, self.is_time_up
        wave: list[tuple[Process, int, Input]] = []
        steps = taken = 0
        try:
            # Breadth first: the events that one wave causes are the next wave.
            while self._pending and not self.is_cut_short:
                wave, self._pending, taken = self._pending, [], 0
                for process, life, event in wave:
                    taken += 1
                    if process.life == life:
                        self._step(process, event, now_ms)
                        steps += 1
                    if steps >= MAX_STEPS:
                        text = f"{steps:,} steps in one dispatch; node {process.node_id} got"
                        raise LivelockError(now_ms, f"{text} {event!r:.200}")
                    if is_time_up is not None and is_time_up():
                        self.is_cut_short = bool(self._pending) or taken < len(wave)
                        break
        finally:
            if steps == MAX_STEPS:
                # Drop the messages of the endless loop; nodes send unanswered requests again.
                self._pending = []
            elif taken < len(wave):
                # A step raised an error, or time is up: the next run delivers the remaining events.
                self._pending[:0] = wave[taken:]
            self._running = False
            self._read_deadlines()

    def _step(self, process: Process, event: Input, now_ms: int) -> None:
        node = process.node
        if node is None:
            return
        if process.state is _PAUSED:
            process.inbox.append(event)
            return
        if not process.touched:
            process.touched = True
            self._touched.append(process)
        if self.tap is not None:
            self.tap(self.now_us, process.node_id, event)
        is_sound = False
        try:
            effects = node.step(now_ms, event)
            if self.step_sinks:
                effects = self._after_step(process, effects)
            self._carry_out(process, effects, now_ms)
            is_sound = True
        finally:
            if not is_sound and process.disk is not None and process.node is node:
                # A bug of ours, which the caller reports. The broker cannot go on, so its process
                # ends, like a real broker's after an exception.
                self._die(process, DeathKind.KILL, f"{event!r:.200}")

    def _after_step(self, process: Process, effects: Sequence[Effect]) -> Sequence[Effect]:
        """Report a step, and have callbacks act; returns the effects that are left to carry out."""
        life = process.life
        for sink in self.step_sinks:
            sink(process)
        interjected, self._interjected = self._interjected, []
        self._is_interrupted = True
        try:
            for callback in interjected:
                callback()
        finally:
            self._is_interrupted = False
        if process.life == life:
            return effects
        return [effect for effect in effects if isinstance(effect, Note)]

    def _carry_out(self, process: Process, effects: Iterable[Effect], now_ms: int) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._send(process, effect)
            elif isinstance(effect, Reply):
                if self.gate is None:
                    self.send_reply(process.node_id, effect)
                else:
                    self.gate.on_reply(process.node_id, effect)
            elif isinstance(effect, Note):
                for note_sink in self.note_sinks:
                    note_sink(effect)
            elif isinstance(effect, CloseConnection):
                self.close_connection(process.node_id, effect.connection_id, effect.reason)
            elif isinstance(effect, AcceptClients):
                process.accepts_clients = True
                self.outlet.accept_clients(process.node_id)
            else:
                assert isinstance(effect, Stopped), effect
                self._die(process, DeathKind.CLEAN)

    def _read_deadlines(self) -> None:
        for process in self._touched:
            process.touched = False
            node = process.node
            if node is None or process.state is not _UP:
                process.deadline_ms = None
                continue
            deadline_ms = process.deadline_ms = node.deadline_ms
            if deadline_ms is not None and deadline_ms * 1000 < self.quiet_until_us:
                self.quiet_until_us = deadline_ms * 1000
        self._touched.clear()

    # ------------------------------------------------------------------- between the nodes

    def _send(self, source: Process, effect: Send) -> None:
        message = effect.message
        if effect.to == RUNTIME_ID:
            assert isinstance(message, PeerResponse), message
            assert self.on_answer is not None
            for sink in self.answer_sinks:
                sink(message, self.now_us // 1000)
            self.on_answer(message)
            return
        process = self.processes[effect.to]
        if process.node is None:
            if not self.fabric.is_cut(source.node_id, effect.to):
                self.post(effect.to, source, PeerDisconnected(effect.to))
            return
        # A response must not reach a later life of the requesting node. So the life is part of the
        # request id; the first life adds 0.
        if type(message) is PeerResponse:
            request_id = message.request_id
            if request_id >> _LIFE_SHIFT != process.life:
                return
            if process.life:
                message = PeerResponse(message.source, request_id & ASKED_BITS, message.body)
        elif source.life:
            number = number_of(source.life, message.request_id)
            message = PeerRequest(message.source, number, message.body)
        if self.node_gate is None or self.node_gate.passes(source, process, message):
            self.post(source.node_id, process, message)

    def post(self, source: int, process: Process, event: Input) -> None:
        """Send an event over the link from `source`; it arrives at once, later, or never."""
        sink = self.message_sink
        if self.fabric.is_unimpaired and not self._in_flight:
            if sink is not None:
                sink(source, process.node_id, event, self.now_us)
            self._pending.append((process, process.life, event))
            return
        link = (source, process.node_id)
        outcome = self.fabric.transmit(link, self.now_us, event)
        if not isinstance(outcome, Arrives):
            if sink is not None:
                sink(source, process.node_id, event, -1)
            if isinstance(outcome, Resets):
                # Later messages wait for the new connection.
                self._last_arrival_us[link] = outcome.at_us
                self.on_lost(link, outcome.at_us)
            return
        arrival_us = outcome.at_us
        last_us = self._last_arrival_us.get(link, 0)
        if arrival_us < last_us:
            arrival_us = last_us
        if sink is not None:
            sink(source, process.node_id, event, arrival_us)
        if arrival_us <= self.now_us:
            self._pending.append((process, process.life, event))
            return
        self._last_arrival_us[link] = arrival_us
        self._sequence += 1
        self.quiet_until_us = min(self.quiet_until_us, arrival_us)
        heappush(
            self._in_flight, (arrival_us, self._sequence, source, process, process.life, event)
        )

    def links_in_use(self) -> list[Link]:
        """The links over which a message is under way at this moment."""
        return [(source, process.node_id) for _, _, source, process, _, _ in self._in_flight]

    # ---------------------------------------------------------------------- life and death

    def start(self, node_id: int) -> None:
        """Start a process that is down, on its current disk."""
        process = self.processes[node_id]
        self._bring_up(process)
        self.dispatch(node_id, Start())

    def start_all(self) -> None:
        """Start all processes in one dispatch, so that their registrations reach the controller
        together, and do not each wake all brokers that have registered."""
        for process in self.processes.values():
            self._bring_up(process)
            self._pending.append((process, process.life, Start()))
        self._run()

    def _bring_up(self, process: Process) -> None:
        assert process.state is ProcessState.DOWN, process.state
        process.node = process.last_node = process.build_node()
        self._change(process, ProcessState.UP)
        if process.disk is not None:
            self.note(BrokerStarted(process.node_id, restarted=process.life > 0))

    def _start_if_down(self, process: Process) -> None:
        if process.state is ProcessState.DOWN and not process.is_removed:
            self.start(process.node_id)

    def take_down(self, node_id: int, how: DeathKind) -> None:
        """End a process at once; `shut_down` ends it cleanly."""
        process = self.processes[node_id]
        assert process.state is not ProcessState.DOWN, process.state
        self._die(process, how)
        self._run()

    def shut_down(self, node_id: int, limit_us: int) -> None:
        """Ask a process to stop cleanly; it is killed if it still runs after `limit_us`."""
        assert self.processes[node_id].state is not ProcessState.DOWN
        self._shutdown_limits_us[node_id] = self.now_us + limit_us
        self.quiet_until_us = min(self.quiet_until_us, self.now_us + limit_us)
        self.dispatch(node_id, Shutdown())

    def is_shutting_down(self, node_id: int) -> bool:
        """Whether the process was asked to stop cleanly, and still runs."""
        return node_id in self._shutdown_limits_us

    def start_after_shutdown(self, node_id: int) -> None:
        """Start a process again as soon as its controlled shutdown is over, unless it is killed
        before."""
        assert self.is_shutting_down(node_id), node_id
        self._starts_after_shutdown[node_id] = None

    def replace_disk(self, node_id: int) -> None:
        """Replace the disk of a broker that is down by an empty one."""
        process = self.processes[node_id]
        assert process.state is ProcessState.DOWN, process.state
        assert process.disk is not None, node_id
        self.note(DiskReplaced(node_id))
        process.disk.wipe()

    def pause(self, node_id: int) -> None:
        """Pause a process; its events are queued."""
        process = self.processes[node_id]
        assert process.state is ProcessState.UP, process.state
        process.deadline_ms = None
        self._change(process, ProcessState.PAUSED)
        self.note(BrokerPaused(node_id))

    def resume(self, node_id: int) -> None:
        """Resume a paused process: first the queued events, then its deadlines."""
        process = self.processes[node_id]
        assert process.state is ProcessState.PAUSED, process.state
        self._change(process, ProcessState.UP)
        self.note(BrokerResumed(node_id))
        self._pending.extend((process, process.life, event) for event in process.inbox)
        process.inbox.clear()
        process.touched = True
        self._touched.append(process)
        self._run()

    def _die(self, process: Process, how: DeathKind, bug: str = "") -> None:
        process.life += 1
        process.node = None
        process.accepts_clients = False
        process.deadline_ms = None
        process.inbox.clear()
        self._shutdown_limits_us.pop(process.node_id, None)
        starts_again = process.node_id in self._starts_after_shutdown
        self._starts_after_shutdown.pop(process.node_id, None)
        if starts_again and how is DeathKind.CLEAN:
            self.later(self.now_us, lambda: self._start_if_down(process))
        if process.disk is None:
            self.note(ControllerDown())
            self._disconnect(process)
            return
        self.note(BrokerDown(process.node_id, how, bug))
        if how is DeathKind.POWER:
            if lost := process.disk.lose_unflushed():
                records = sum(each.to_offset - each.from_offset for each in lost)
                self.note(RecordsLost(process.node_id, records, tuple(lost)))
        elif how is DeathKind.WIPE:
            process.disk.wipe()
        self._disconnect(process)

    def _disconnect(self, process: Process) -> None:
        self._change(process, ProcessState.DOWN)
        for other in self.processes.values():
            if other.node is not None:
                self.post(process.node_id, other, PeerDisconnected(process.node_id))

    def _change(self, process: Process, state: ProcessState) -> None:
        was, process.state = process.state, state
        self.outlet.process_changed(process, was)

    # --------------------------------------------------------------------------- the notes

    def note(self, event: Event, cause: NoteId | None = None, at_ms: int | None = None) -> NoteId:
        """Record an operation on the cluster; `at_ms`: its time, if it was not now."""
        self._notes += 1
        note_id = (RUNTIME_ID, self._notes)
        note = Note(note_id, self.now_ms if at_ms is None else at_ms, event, cause)
        for sink in self.note_sinks:
            sink(note)
        return note_id

    def forget_watchers(self) -> None:
        """Forget who watches, when a run is over.  What they have recorded is then freed as soon as
        nothing else refers to it; as a part of a cycle it would wait for the garbage collector,
        which takes three times as long."""
        self.tap = None
        self.note_sinks = self.reply_sinks = self.step_sinks = ()
        self.withheld_sinks = self.unanswered_sinks = self.close_sinks = self.answer_sinks = ()
