"""The virtual driver: simulated clients, a clock that jumps from event to event, one seed.

Owns: the handle for users: start, operations, notes, the trace.  Never: decides what happens next
(virtual_time.py does).
Kafka: no counterpart; FoundationDB's simulation is the model.

The same topology, seed and operations give the same trace, line for line, in any process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from random import Random
from typing import TypeVar

import msgspec

from kcluster.clients.wire import ClientStateMachine
from kcluster.config.topology.model import Topology
from kcluster.contract import Input, Note, PeerRequest, PeerResponse, Request
from kcluster.drivers.virtual_time import VirtualTime, virtual_ports
from kcluster.drivers.wires.virtual import ClientWire
from kcluster.events.render import note_line
from kcluster.faults.rules import Rule
from kcluster.network.node_ids import FIRST_CLIENT_ID
from kcluster.operations.conditions import (
    ConditionFacts,
    condition_in,
    limit_ms_of,
    no_workload,
    not_held,
)
from kcluster.operations.errors import ClusterError
from kcluster.operations.names import partition_in
from kcluster.operations.network_verbs import NetworkVerbs
from kcluster.operations.node_sets import NetworkControl
from kcluster.operations.states import StateVerb
from kcluster.operations.status import ClusterStatus, cluster_status
from kcluster.operations.targets import Finder, Nodes
from kcluster.operations.verbs import Verbs, death_kind
from kcluster.runtime.build import Plan, build
from kcluster.runtime.gate import RuleStatus

T = TypeVar("T")


class VirtualDriver(NetworkVerbs):
    """A cluster in virtual time.  Times in ms are those that nodes see, from `start_ms` on.

    `trace`: every note, a line for each connection that a broker closes and, with
    `trace_deliveries`, one for each input given to a node.
    """

    def __init__(
        self, topology: Topology, seed: int, *, start_ms: int = 0, trace_deliveries: bool = False
    ) -> None:
        self.plan: Plan = build(topology, seed, virtual_ports(topology))
        self.trace: list[Note | str] = []
        self.time = VirtualTime(
            self.plan.fabric, self.plan.processes, self.plan.addresses, self.trace
        )
        self.dispatcher = self.time.dispatcher
        self.verbs = Verbs(self.plan, self.dispatcher)
        self._finder = Finder(self.plan, self.dispatcher, self.verbs, Random(f"{seed}/targets"))
        self.notes: list[Note] = []
        self.clients = self.time.clients
        self._start_us = start_ms * 1000
        self.dispatcher.note_sinks = (self._keep,)
        if trace_deliveries:
            self.dispatcher.tap = self._trace_delivery
        self.dispatcher.at(self._start_us)

    # ---------------------------------------------------------------------------- life and time

    def open(self) -> None:
        """Start every process, at this moment."""

        def start_all() -> None:
            for process in self.plan.processes:
                self.dispatcher.start(process.node_id)

        self._do(start_all)

    def add_client(self, client: ClientStateMachine) -> ClientWire:
        """Start a client; returns its wire, whose `client_id` names its links."""
        return start_client(self.time, self.plan, client)

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self.dispatcher.now_ms

    def run_until(self, at_ms: int) -> None:
        """Run until `at_ms`, including everything due at that moment."""
        self.time.run(at_ms * 1000, _never)
        self.dispatcher.at(at_ms * 1000)

    def run_for(self, duration_ms: int) -> None:
        """Run for `duration_ms`."""
        self.run_until(self.now_ms + duration_ms)

    def run_until_condition(self, condition: Callable[[], bool], limit_ms: int) -> bool:
        """Run until `condition()` holds, for `limit_ms` at most; returns whether it does."""
        return self.time.run(self.dispatcher.now_us + limit_ms * 1000, condition)

    def run_until_idle(self, limit_ms: int) -> bool:
        """Run until no client waits for a response or a deadline; returns whether that point was
        reached."""
        return self.run_until_condition(self.time.is_idle, limit_ms)

    def at(self, at_ms: int, callback: Callable[[], object]) -> None:
        """Call `callback` at this time."""
        self.time.at(at_ms * 1000, callback)

    # ------------------------------------------------------------------------------- operations

    def find(self, nodes: Nodes) -> tuple[int, ...]:
        """The ids of the nodes that the words mean now; see NetworkVerbs."""
        return self._finder.nodes(nodes)

    def kill(self, brokers: Nodes, how: str = "kill") -> None:
        """End brokers' processes: `kill`, `power`, `wipe`; `clean` asks them to shut down."""
        death = death_kind(how)
        self._on_each(StateVerb.KILL, brokers, lambda node: self.verbs.kill(node, death))

    def start(self, brokers: Nodes) -> None:
        """Start brokers that are down."""
        self._on_each(StateVerb.START, brokers, self.verbs.start)

    def restart(self, brokers: Nodes, how: str = "clean", *, limit_ms: int = 60_000) -> None:
        """Stop brokers, start them again, and let time pass until they serve and are in sync."""
        death, settled = death_kind(how), self.verbs.settled
        chosen = self._on_each(
            StateVerb.RESTART, brokers, lambda node: self.verbs.kill(node, death)
        )
        if not chosen:
            return
        self._run_until(lambda: all(map(settled.is_down, chosen)), limit_ms, "have not shut down")
        self.start(chosen)
        self._run_until(
            lambda: all(settled.is_serving(x) and settled.is_in_sync(x) for x in chosen),
            limit_ms,
            "are not in sync again",
        )

    def rolling_restart(self, brokers: Nodes = "all", how: str = "clean") -> None:
        """Restart brokers one after the other, each when its predecessor is in sync again."""
        found = self.find(brokers)
        several = self.verbs.choose(StateVerb.RESTART, found).nodes
        for broker_id in found if len(found) == 1 else several:
            self.restart(broker_id, how)

    def pause(self, brokers: Nodes) -> None:
        """Pause brokers, as by SIGSTOP."""
        self._on_each(StateVerb.PAUSE, brokers, self.verbs.pause)

    def resume(self, brokers: Nodes) -> None:
        """Resume paused brokers."""
        self._on_each(StateVerb.RESUME, brokers, self.verbs.resume)

    def move(self, topic: str, partition: int | None = None, to: Nodes = "") -> None:
        """Make `to` the leader of a partition: `move("orders-0", to=2)`."""
        name = partition_in(topic, partition)
        (broker_id,) = self.find(to)[:1]
        self._do(lambda: self.verbs.move(*name, broker_id))

    def elect(self, topic: str, partition: int | None = None, unclean: bool = False) -> int:
        """Elect the preferred leader, or any live replica; returns the leader."""
        name = partition_in(topic, partition)
        answers: list[object] = []
        self._do(lambda: self.verbs.elect(*name, unclean, answers.append))
        self._run_until(lambda: bool(answers), 10_000, "have no answer of the controller")
        self.verbs.check_elected(*name, answers[0])
        return self.verbs.leader(*name)

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

    def _on_each(
        self, verb: StateVerb, brokers: Nodes, operation: Callable[[int], None]
    ) -> tuple[int, ...]:
        found = self._finder.nodes(brokers, may_be_none=verb is StateVerb.START)
        return self._do(lambda: self.verbs.on_each(verb, found, operation))

    def _run_until(self, condition: Callable[[], bool], limit_ms: int, failure: str) -> None:
        if not self.run_until_condition(condition, limit_ms):
            raise ClusterError(f"after {limit_ms} ms the brokers {failure}")

    def add_rule(self, rule: Rule) -> str:
        """Add a rule of protocol faults; returns its name."""
        return self.verbs.add_rule(rule)

    def remove_rule(self, name: str) -> None:
        """Remove a rule."""
        self._do(lambda: self.verbs.remove_rule(name))

    def clear_rules(self) -> None:
        """Remove all rules."""
        self._do(self.verbs.clear_rules)

    def rules(self) -> tuple[RuleStatus, ...]:
        """The rules in force, with their numbers of calls and hits."""
        return self.verbs.rules()

    def _on_network(self, operation: Callable[[NetworkControl], T]) -> T:
        return self._do(lambda: operation(self.verbs.network))

    def _do(self, operation: Callable[[], T]) -> T:
        """Change the cluster, and run all consequences at this moment."""
        result = operation()
        self.time.settle()
        return result

    def status(self) -> ClusterStatus:
        """The cluster's state at this moment."""
        return cluster_status(self.plan, self.dispatcher)

    # -------------------------------------------------------------------------------- the trace

    def trace_hash(self) -> str:
        """One value for the whole trace so far."""
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


def start_client(
    time: VirtualTime, plan: Plan, client: ClientStateMachine, kafka_id: str = ""
) -> ClientWire:
    """Start a client; returns its wire, whose `client_id` names its links.  `kafka_id`: its
    client.id; without it, an id that marks a client with a ledger."""
    client_id = FIRST_CLIENT_ID + len(time.clients)
    rng = Random(f"{plan.seed}/{client_id}")
    wire = ClientWire(time, client_id, tuple(plan.addresses), rng, kafka_id)
    time.clients[client_id] = client
    plan.fabric.clients[client_id] = getattr(client, "name", "")
    client.start(wire, time.now_ms)
    time.settle()
    return wire


def _described(event: Input) -> str:
    """An event in a few words, the same in every process."""
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
