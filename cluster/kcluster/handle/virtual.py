"""VirtualDriver: the handle of a cluster in virtual time whose clients are the project's own.

Owns: the passing of time for users, notes, the trace.  Never: decides on the next event
(drivers/virtual_time.py does), defines a verb (verbs.py).  Kafka: no counterpart; FoundationDB's
simulation is the model.

Equal topologies, seeds and operations give equal traces, line for line, in any process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

import msgspec

from kcluster.actions.stage import Stage
from kcluster.clients.wire import ClientStateMachine
from kcluster.config.topology.model import Topology
from kcluster.contract import Input, Note, PeerRequest, PeerResponse, Request
from kcluster.drivers.virtual_time import VirtualTime, start_client, virtual_ports
from kcluster.drivers.wires.virtual import ClientWire
from kcluster.events.render import note_line
from kcluster.handle.verbs import UserVerbs
from kcluster.operations.conditions import (
    ConditionFacts,
    condition_in,
    limit_ms_of,
    no_workload,
    not_held,
)
from kcluster.operations.errors import ClusterError, NotInTime
from kcluster.operations.status import ClusterStatus, cluster_status
from kcluster.operations.verbs import Verbs
from kcluster.runtime.build import Plan, build
from kcluster.security.client_access import ClientAccess

T = TypeVar("T")


class VirtualDriver(UserVerbs):
    """A cluster in virtual time.  Times in ms are the nodes' times, from `start_ms` on.  Verbs do
    not wait for their consequences: the caller lets time pass.

    `trace`: a line for every note, for each connection that a broker closes and, with
    `trace_deliveries`, for each input of a node.
    """

    waits = False

    def __init__(
        self, topology: Topology, seed: int, *, start_ms: int = 0, trace_deliveries: bool = False
    ) -> None:
        self.plan: Plan = build(topology, seed, virtual_ports(topology))
        self.trace: list[Note | str] = []
        self.time = VirtualTime(
            self.plan.fabric,
            self.plan.processes,
            self.plan.endpoints,
            self.trace,
            self.plan.certificates,
            self.plan.handshake_us,
        )
        self.dispatcher = self.time.dispatcher
        self.verbs = Verbs(self.plan, self.dispatcher)
        self._waiting: list[tuple[Callable[[], bool], Callable[[], None]]] = []
        self.notes: list[Note] = []
        self.clients = self.time.clients
        self._start_us = start_ms * 1000
        self.dispatcher.note_sinks = (self._keep,)
        if trace_deliveries:
            self.dispatcher.tap = self._trace_delivery
        self.dispatcher.at(self._start_us)
        self._stage = Stage(self.plan, self.dispatcher, self.verbs, self, seed)

    # ---------------------------------------------------------------------------- life and time

    def open(self) -> None:
        """Start every process, at this moment."""

        def start_all() -> None:
            for process in self.plan.processes:
                self.dispatcher.start(process.node_id)

        self.call(start_all)

    def add_client(
        self, client: ClientStateMachine, access: ClientAccess | None = None
    ) -> ClientWire:
        """Start a client; returns its wire, whose `client_id` names its links.  `access`: how it
        comes in; None: as the topology's first user, if it must be a user."""
        return start_client(self.time, self.plan, client, access=access)

    @property
    def now_ms(self) -> int:
        """The present virtual time."""
        return self.dispatcher.now_ms

    def run_until(self, at_ms: int) -> None:
        """Run until `at_ms`, including everything due at that moment."""
        self.time.run(at_ms * 1000, self._looking_for(_never))
        self.dispatcher.at(at_ms * 1000)

    def run_for(self, duration_ms: int) -> None:
        """Run for `duration_ms`."""
        self.run_until(self.now_ms + duration_ms)

    def run_until_condition(self, condition: Callable[[], bool], limit_ms: int) -> bool:
        """Run until `condition()` holds, for `limit_ms` at most; returns whether it does."""
        until_us = self.dispatcher.now_us + limit_ms * 1000
        return self.time.run(until_us, self._looking_for(condition))

    def run_until_idle(self, limit_ms: int) -> bool:
        """Run until no client waits for a response or a deadline; returns whether that point was
        reached."""
        return self.run_until_condition(self.time.is_idle, limit_ms)

    def at(self, at_ms: int, callback: Callable[[], object]) -> None:
        """Call `callback` at this time."""
        self.time.at(at_ms * 1000, callback)

    def when(self, holds: Callable[[], bool], callback: Callable[[], None]) -> None:
        """Call `callback` as soon as `holds()`."""
        self._waiting.append((holds, callback))

    def _looking_for(self, condition: Callable[[], bool]) -> Callable[[], bool]:
        """`condition`, tested after the conditions of `when`."""

        def look() -> bool:
            for entry in tuple(self._waiting) if self._waiting else ():
                holds, callback = entry
                if holds():
                    self._waiting.remove(entry)
                    callback()
            return condition()

        return look

    # ------------------------------------------------------------------------------- operations

    @property
    def stage(self) -> Stage:
        """The stage on which actions are performed."""
        return self._stage

    def call(self, function: Callable[[], T]) -> T:
        """Change the cluster, and run everything that follows at this moment."""
        result = function()
        self.time.settle()
        return result

    def wait_until(
        self, condition: Callable[[], bool], timeout_s: float, failure: str | None
    ) -> bool:
        holds = self.run_until_condition(condition, round(timeout_s * 1000))
        if failure is not None and not holds:
            raise NotInTime(f"{failure} within {timeout_s:g} s")
        return holds

    def wait_for(self, condition: str, within: str | float = "10s") -> None:
        """Let time pass until a condition of scenario files holds: `isr(orders-0) = 3`.  `within`:
        `10s`, or seconds.  Events count from now on."""
        wanted = condition_in(condition)
        notes: list[Note] = []
        facts = ConditionFacts(self.dispatcher, self.verbs, notes, no_workload)
        limit_ms = limit_ms_of(within)
        sinks = self.dispatcher.note_sinks
        self.dispatcher.note_sinks = (*sinks, notes.append)
        try:
            if not self.run_until_condition(lambda: wanted.holds(facts), limit_ms):
                raise ClusterError(not_held(wanted, facts, limit_ms))
        finally:
            self.dispatcher.note_sinks = sinks

    def status(self) -> ClusterStatus:
        """The cluster's state at this moment."""
        return cluster_status(self.plan, self.dispatcher)

    # -------------------------------------------------------------------------------- the trace

    def trace_hash(self) -> str:
        """A hash of the whole trace so far."""
        hashed = hashlib.sha256()
        for entry in self.trace:
            hashed.update(entry.encode() if isinstance(entry, str) else msgspec.json.encode(entry))
            hashed.update(b"\n")
        return hashed.hexdigest()

    def trace_lines(self, count: int | None = None) -> list[str]:
        """The trace as text, or its last `count` entries."""
        origin_ms = self._start_us // 1000
        entries = self.trace if count is None else self.trace[-count:]
        return [
            entry if isinstance(entry, str) else note_line(entry, origin_ms) for entry in entries
        ]

    def draw(self) -> tuple[float, ...]:
        """Draw the next random number of each node.  Equal runs end with equal numbers."""
        return tuple(rng.random() for rng in self.plan.rngs.values())

    def _keep(self, note: Note) -> None:
        self.notes.append(note)
        self.trace.append(note)

    def _trace_delivery(self, now_us: int, node_id: int, event: Input) -> None:
        self.trace.append(f"{now_us - self._start_us} us  {node_id} gets {_described(event)}")


def _described(event: Input) -> str:
    """An event in a few words, equal in every process."""
    name = type(event).__name__
    match event:
        case PeerRequest() | PeerResponse():
            body = type(event.body).__name__
            return f"{name} {body} #{event.request_id} from {event.source}"
        case Request():
            body = type(event.body).__name__
            return f"{name} {body} #{event.correlation_id} on {event.connection_id}"
        case _:
            return name


def _never() -> bool:
    return False
