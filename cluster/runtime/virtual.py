"""The virtual driver: simulated clients, a clock that jumps from event to event, one seed.

Owns: the heap of what is to happen, connections of simulated clients, the trace.  Never: reads a
clock, opens a socket, encodes a message: they are passed as they are.
Kafka: no counterpart; FoundationDB's simulation is the model.

Same topology, same seed, same deeds: the same trace, line for line, in any process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any, Final, TypeVar

from cluster.clients.wire import Client
from cluster.config.topology import Topology
from cluster.contract import (
    ConnectionClosed,
    Event,
    Note,
    PeerRequest,
    PeerResponse,
    Reply,
    Request,
)
from cluster.network.fabric import Link
from cluster.network.rules import Rule
from cluster.runtime.build import Plan, build
from cluster.runtime.clients import FIRST_CLIENT_ID, ClientConnection, ClientWire
from cluster.runtime.dispatch import MAX_IDLE, Dispatcher
from cluster.runtime.gate import RuleStatus
from cluster.runtime.network import Network
from cluster.runtime.network_verbs import NetworkVerbs
from cluster.runtime.process import Process, ProcessState
from cluster.runtime.status import ClusterStatus, cluster_status
from cluster.runtime.verbs import ClusterError, Verbs, death_kind
from cluster.trace.render import note_line

T = TypeVar("T")

FIRST_VIRTUAL_PORT: Final = 9092


class VirtualDriver(NetworkVerbs):
    """A cluster in virtual time.  Times in ms are those that nodes see, from `start_ms` on.

    `trace`: one line for each note and, with `trace_deliveries`, for each event given to a node.
    """

    def __init__(
        self, topology: Topology, seed: int, *, start_ms: int = 0, trace_deliveries: bool = False
    ) -> None:
        specs = sorted(topology.brokers, key=lambda spec: spec.id)
        ports = {spec.id: spec.port or FIRST_VIRTUAL_PORT + at for at, spec in enumerate(specs)}
        self.plan: Plan = build(topology, seed, ports)
        self.dispatcher = Dispatcher(self.plan.fabric, self.plan.processes, self)
        self.verbs = Verbs(self.plan, self.dispatcher)
        self.trace: list[str] = []
        self.notes: list[Note] = []
        self.clients: dict[int, Client] = {}
        self._start_us = start_ms * 1000
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._connections: dict[int, ClientConnection] = {}
        self._connection_ids = 0
        self._ready: list[ClientConnection] = []
        """Connections whose broker may take the next request."""
        self.dispatcher.note_sinks = (self._keep,)
        self.dispatcher.heal_sinks = (self._on_link_healed,)
        if trace_deliveries:
            self.dispatcher.tap = self._trace_delivery
        self.dispatcher.at(self._start_us)

    # ------------------------------------------------------------------------ its life

    def start(self) -> None:
        """Start every process, at the present moment."""
        for process in self.plan.processes:
            self.dispatcher.start(process.node_id)
        self._settle()

    def add_client(self, client: Client) -> ClientWire:
        """Let a client begin; its wire has the id by which links to it are named."""
        client_id = FIRST_CLIENT_ID + len(self.clients)
        rng = Random(f"{self.plan.seed}/{client_id}")
        wire = ClientWire(self, client_id, tuple(self.plan.addresses), rng)
        self.clients[client_id] = client
        self.plan.fabric.clients[client_id] = getattr(client, "name", "")
        client.start(wire, self.now_ms)
        self._settle()
        return wire

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self.dispatcher.now_ms

    def run_until(self, at_ms: int) -> None:
        """Let everything happen up to and at `at_ms`."""
        self._run(at_ms * 1000, _never)
        self.dispatcher.at(at_ms * 1000)

    def run_for(self, duration_ms: int) -> None:
        """Let `duration_ms` pass."""
        self.run_until(self.now_ms + duration_ms)

    def run_until_condition(self, condition: Callable[[], bool], limit_ms: int) -> bool:
        """Run until `condition()` holds, for `limit_ms` at most; whether it does."""
        return self._run(self.dispatcher.now_us + limit_ms * 1000, condition)

    def run_until_idle(self, limit_ms: int) -> bool:
        """Run until no client waits for an answer or for a time; whether that came to be."""

        def is_idle() -> bool:
            return not any(x.is_busy for x in self._connections.values()) and all(
                client.deadline_ms is None for client in self.clients.values()
            )

        return self.run_until_condition(is_idle, limit_ms)

    def at(self, at_ms: int, deed: Callable[[], None]) -> None:
        """Do something to the cluster at a time to come."""
        self._schedule(at_ms * 1000, deed)

    def _run(self, limit_us: int, condition: Callable[[], bool]) -> bool:
        idle = 0
        while not condition():
            due_us = self._next_due_us()
            if due_us > limit_us:
                return False
            idle = 0 if due_us > self.dispatcher.now_us else idle + 1
            assert idle < MAX_IDLE, f"time stands still at {self.now_ms} ms: a client is always due"
            self.dispatcher.at(due_us)
            while self._heap and self._heap[0][0] <= self.dispatcher.now_us:
                heappop(self._heap)[2]()
                self._settle()
            for client in tuple(self.clients.values()):
                if client.deadline_ms is not None and client.deadline_ms <= self.now_ms:
                    client.on_tick(self.now_ms)
            self._settle()
        return True

    def _next_due_us(self) -> int:
        due_us = self.dispatcher.next_due_us()
        if self._heap:
            due_us = min(due_us, self._heap[0][0])
        for client in self.clients.values():
            if client.deadline_ms is not None:
                due_us = min(due_us, client.deadline_ms * 1000)
        return max(due_us, self.dispatcher.now_us)

    def _settle(self) -> None:
        """Give brokers the next requests of connections that may have one."""
        while self._ready:
            ready, self._ready = self._ready, []
            for connection in ready:
                request = connection.next_request()
                if request is None:
                    continue
                gate = self.dispatcher.gate
                if gate is None or gate.admit(connection.broker_id, request):
                    self.dispatcher.deliver(connection.broker_id, request)

    def _schedule(self, at_us: int, deed: Callable[[], None]) -> None:
        self._sequence += 1
        heappush(self._heap, (at_us, self._sequence, deed))

    # --------------------------------------------------------------------------- deeds

    def kill(self, broker_id: int, how: str = "kill") -> None:
        """End a broker's process: kill, power, wipe; `clean` asks it to end."""
        self.verbs.kill(broker_id, death_kind(how))
        self._settle()

    def boot(self, broker_id: int) -> None:
        """Start a broker that is down."""
        self.verbs.start(broker_id)
        self._settle()

    def pause(self, broker_id: int) -> None:
        """Let a broker stand still."""
        self.verbs.pause(broker_id)

    def resume(self, broker_id: int) -> None:
        """Let a paused broker run on."""
        self.verbs.resume(broker_id)
        self._settle()

    def move(self, topic: str, partition: int, to: int) -> None:
        """Make `to` the leader of a partition."""
        self.verbs.move(topic, partition, to)
        self._settle()

    def elect(self, topic: str, partition: int, unclean: bool = False) -> int:
        """Elect the preferred leader, or any live replica; returns the leader."""
        answers: list[Any] = []
        self.verbs.elect(topic, partition, unclean, answers.append)
        self._settle()
        if not self.run_until_condition(lambda: bool(answers), 10_000):
            raise ClusterError("the controller did not answer within 10 s")
        self.verbs.check_elected(topic, partition, answers[0])
        return self.verbs.leader(topic, partition)

    def add_rule(self, rule: Rule) -> str:
        """Put a rule of protocol faults in force; returns its name."""
        return self.verbs.add_rule(rule)

    def remove_rule(self, name: str) -> None:
        """End a rule."""
        self.verbs.remove_rule(name)
        self._settle()

    def clear_rules(self) -> None:
        """End all rules."""
        self.verbs.clear_rules()
        self._settle()

    def rules(self) -> tuple[RuleStatus, ...]:
        """The rules in force, and how often each applied."""
        return self.verbs.rules()

    def _on_network(self, deed: Callable[[Network], T]) -> T:
        result = deed(self.verbs.network)
        self._settle()
        return result

    def status(self) -> ClusterStatus:
        """Everything at this moment."""
        return cluster_status(self.plan, self.dispatcher)

    # ------------------------------------------------------------------------- the trace

    def trace_hash(self) -> str:
        """One value for the whole trace so far."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()

    def draw(self) -> tuple[float, ...]:
        """The next random number of each node: runs that are the same end with the same."""
        return tuple(rng.random() for rng in self.plan.rngs.values())

    def _keep(self, note: Note) -> None:
        self.notes.append(note)
        self.trace.append(note_line(note, self._start_us // 1000))

    def _trace_delivery(self, now_us: int, node_id: int, event: Event) -> None:
        self.trace.append(f"{now_us - self._start_us} us  {node_id} gets {_described(event)}")

    # ------------------------------------------------------------------ the clients' side

    def connect(self, client_id: int, broker_id: int) -> ClientConnection:
        """A new connection; whether there is somebody at the other end shows when it is used."""
        self._connection_ids += 1
        connection = ClientConnection(
            self._connection_ids, client_id, broker_id, self.dispatcher.processes[broker_id].life
        )
        self._connections[connection.connection_id] = connection
        return connection

    def transmit(self, connection: ClientConnection, request: Request) -> None:
        """Carry a request from a client to its broker."""
        link = (connection.client_id, connection.broker_id)
        self._carry(connection, link, lambda: self._arrive(connection, request), request)

    def hang_up(self, connection: ClientConnection) -> None:
        """A client closes its connection."""
        self._connections.pop(connection.connection_id, None)
        connection.is_open = False
        connection.hung_up = True
        gone = ConnectionClosed(connection.connection_id)

        def tell() -> None:
            process = self.dispatcher.processes[connection.broker_id]
            if process.node is not None and process.life == connection.life:
                self.dispatcher.deliver(connection.broker_id, gone)

        self._carry(connection, (connection.client_id, connection.broker_id), tell)

    def _arrive(self, connection: ClientConnection, request: Request) -> None:
        process = self.dispatcher.processes[connection.broker_id]
        if process.node is None or process.life != connection.life:
            self._refuse(connection)
        elif connection.is_open:
            request.arrived_ms = self.now_ms
            connection.waiting.append(request)
            self._ready.append(connection)

    def _refuse(self, connection: ClientConnection) -> None:
        """The broker's end is closed: its client will hear."""
        if not connection.is_open:
            return
        connection.is_open = False
        self._connections.pop(connection.connection_id, None)
        client = self.clients[connection.client_id]
        self._carry(
            connection,
            (connection.broker_id, connection.client_id),
            lambda: connection.tell_disconnected(client, self.now_ms),
        )

    def _carry(
        self, connection: ClientConnection, link: Link, deed: Callable[[], None],
        message: Any = None,
    ) -> None:  # fmt: skip
        """Let a message, or the end of a connection (None), pass over a link: in order, late, or
        not at all.  A connection that lost a message is broken."""
        dispatcher, can_break = self.dispatcher, message is not None
        delay_us = dispatcher.fabric.delay_us(*link, dispatcher.now_us, message)
        is_lost = delay_us is None
        if delay_us is not None and delay_us < 0:
            # Lost for good: nothing behind it gets through, until the connection is reset.
            delay_us, is_lost = -delay_us, can_break
            dispatcher.on_lost(link, delay_us)
        connection.is_broken |= is_lost and can_break
        if delay_us is None:
            return
        order = connection.last_arrival_us
        arrival_us = order[link] = max(dispatcher.now_us + delay_us, order.get(link, 0))

        def arrive() -> None:
            if dispatcher.fabric.is_cut(*link):
                connection.is_broken |= can_break
            elif not is_lost:
                deed()

        self._schedule(arrival_us, arrive)

    def _on_link_healed(self, link: Link) -> None:
        """What was lost in a cut is not sent again: both ends find their connection broken."""
        for connection in tuple(self._connections.values()):
            ends = (connection.client_id, connection.broker_id)
            if connection.is_broken and connection.is_open and link == ends:
                process = self.dispatcher.processes[connection.broker_id]
                if process.node is not None and process.life == connection.life:
                    gone = ConnectionClosed(connection.connection_id)
                    self.dispatcher.deliver(connection.broker_id, gone)
                self._refuse(connection)

    # -------------------------------------------------------------------------- as an Outlet

    def reply(self, node_id: int, reply: Reply) -> None:
        connection = self._connections.get(reply.request.connection_id)
        if connection is None:
            return
        connection.in_broker = None
        if connection.waiting:
            self._ready.append(connection)
        if reply.body is not None:
            client = self.clients[connection.client_id]
            link = (node_id, connection.client_id)
            self._carry(
                connection, link, lambda: connection.tell_reply(client, reply, self.now_ms), reply
            )

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        connection = self._connections.get(connection_id)
        if connection is not None:
            self.trace.append(f"broker {node_id} closes connection {connection_id}: {reason}")
            self._refuse(connection)

    def new_port(self, node_id: int) -> int:
        return max(port for _, port in self.plan.addresses.values()) + 1

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        return ()

    def process_changed(self, process: Process, was: ProcessState) -> None:
        if process.state is ProcessState.DOWN:
            for connection in tuple(self._connections.values()):
                if connection.broker_id == process.node_id:
                    self._refuse(connection)


def _described(event: Event) -> str:
    """An event in a few words that are the same in every process."""
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
