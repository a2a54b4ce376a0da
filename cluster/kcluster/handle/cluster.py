"""Cluster: the handle of a running cluster, for Python, the command line and tests.

Owns: the operations of users, and when each of them is complete.  Never: changes a node's state
itself (everything goes through the driver's thread).  Kafka: an operator with kill -9, iptables and
kafka-leader-election.

Every method may be called from any thread.  It returns when the cluster has settled, and raises
ClusterError, with the reason, if that takes too long or the operation is not possible.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import gevent
from gevent.event import Event as GeventEvent

from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import TopicSpec
from kcluster.contract import Note
from kcluster.deaths import DeathKind
from kcluster.drivers.live import LiveDriver
from kcluster.drivers.sockets.acceptor import ReservedPort
from kcluster.faults.rules import Rule
from kcluster.handle.clock import ClockVerbs
from kcluster.handle.recording import RecordVerbs
from kcluster.operations.admin import OnEnd
from kcluster.operations.errors import ClusterError, NotInTime
from kcluster.operations.logs import PartitionLogs, partition_logs
from kcluster.operations.names import partition_in
from kcluster.operations.network_verbs import NetworkVerbs
from kcluster.operations.node_sets import NetworkControl
from kcluster.operations.states import Chosen, StateVerb
from kcluster.operations.status import ClusterStatus, NoteEntry, cluster_status
from kcluster.operations.verbs import SHUT_DOWN_LIMIT_S, Verbs, death_kind
from kcluster.runtime.build import Plan, build
from kcluster.runtime.gate import RuleStatus

if TYPE_CHECKING:
    from kcluster.operations.conditions import Condition
    from kcluster.operations.targets import Finder, Nodes

T = TypeVar("T")

MAX_EVENTS_KEPT: Final = 100_000
START_TIMEOUT_S: Final = 30.0
EXTRA_WAIT_S: Final = 10.0
"""Added to the session timeout, for what follows a broker's death."""
CLOCK_LOOK_S: Final = 0.05
"""How often somebody who waits looks at a clock that was paused or slowed down meanwhile."""
_NOT_ALL_KNOW: Final = "not all brokers have applied the newest metadata"


class Cluster(NetworkVerbs, ClockVerbs, RecordVerbs):
    """A cluster on the live driver: `with Cluster(Topology.load("topology.yaml")) as cluster: …`.

    `seed`: of everything random in the cluster; drawn if None.  `log`: called with one line for
    what an operator should know.  `record`: whether what happens is recorded, for `verdict` and
    `save`.  `bootstrap`: `host:port,host:port`, for clients.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        seed: int | None = None,
        log: Callable[[str], None] | None = None,
        record: bool = True,
    ) -> None:
        self.topology = topology
        self.seed = int.from_bytes(os.urandom(6)) if seed is None else seed
        self._ports = _reserve(topology)
        ports = {broker_id: port.port for broker_id, port in self._ports.items()}
        self.belongings: dict[str, Any] = {}
        """Objects that other modules attach to this cluster, by their own names."""
        self.plan: Plan = build(topology, self.seed, ports)
        self.driver = LiveDriver(self.plan, self._ports, log)
        self._verbs = Verbs(self.plan, self.driver.dispatcher)
        self._settled = self._verbs.settled
        self._finder: Finder | None = None
        self._thread: threading.Thread | None = None
        self._sequence = 0
        self._events: deque[NoteEntry] = deque(maxlen=MAX_EVENTS_KEPT)
        self._subscribers: tuple[Callable[[NoteEntry], None], ...] = ()
        self._is_recorded = record
        self.name = topology.name
        """The name of its run directories."""
        self.ledger = Ledger()
        """What the project's own clients sent and read in this cluster."""
        self.driver.dispatcher.note_sinks = (self._keep,)

    @property
    def bootstrap(self) -> str:
        """`host:port` of every broker, for a client's bootstrap.servers."""
        return ",".join(f"{host}:{port}" for host, port in self.plan.addresses.values())

    @property
    def verbs(self) -> Verbs:
        """The operations without waiting, for use in the driver's thread."""
        return self._verbs

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of all brokers, up or not."""
        return tuple(self.plan.addresses)

    # ------------------------------------------------------------------------------- life

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if error is None and self.driver.bugs:
            raise ClusterError(
                f"a bug in the simulator: {self.driver.bugs[0]!r}; the traceback is above"
            ) from self.driver.bugs[0]

    def open(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start the cluster in its own thread; returns when all brokers serve clients."""
        assert self._thread is None, "a Cluster can be opened only once"
        ready: Future[None] = Future()

        def serve() -> None:
            try:
                self.driver.run(lambda: ready.set_result(None))
            finally:
                if not ready.done():
                    ready.set_exception(ClusterError("the cluster did not start"))

        self._thread = threading.Thread(
            target=_in_thread, args=([serve],), name="kcluster", daemon=True
        )
        self._thread.start()
        try:
            ready.result()
            self._wait(self._settled.all_serving, timeout_s, "not all brokers started")
            if self._is_recorded:
                self.start_recording()
        except ClusterError:
            self.close()
            raise

    def run(self, on_ready: Callable[[], None] | None = None) -> None:
        """Serve in the calling thread until `close` is called from another thread or greenlet."""
        self.driver.run(on_ready)
        self._release()

    def close(self) -> None:
        """Stop everything at once."""
        self.driver.stop()
        if self._thread is None:
            self._release()
        elif self._thread is not threading.current_thread():
            self._thread.join()
            self._release()

    def _release(self) -> None:
        for port in self._ports.values():
            port.release()

    # -------------------------------------------------------------------------- processes

    def find(self, nodes: Nodes, may_be_none: bool = False) -> tuple[int, ...]:
        """The ids of the nodes that are meant now; see NetworkVerbs.  ClusterError if there is
        none, unless there may be none."""
        return self._do(lambda: self._words().nodes(nodes, may_be_none))

    def _words(self) -> Finder:
        """Made when first used: a start need not load the words."""
        from kcluster.operations.targets import Finder

        if self._finder is None:
            rng = Random(f"{self.seed}/targets")
            self._finder = Finder(self.plan, self.driver.dispatcher, self._verbs, rng)
        return self._finder

    def kill(
        self,
        brokers: Nodes,
        how: str = "kill",
        *,
        wait: bool = True,
        timeout_s: float | None = None,
    ) -> tuple[int, ...]:
        """End brokers' processes: `kill` (SIGKILL), `clean` (controlled shutdown), `power`
        (unflushed records are lost), `wipe` (the disk is lost too).  With `wait`, returns when
        every partition that they led has another leader or is offline, and the other brokers know.

        Returns their ids.  Here and below, a verb for several brokers acts on those whose state
        allows it and leaves the others alone; ClusterError if a single one is named, and its state
        does not."""
        death = death_kind(how)
        kill = self._verbs.kill
        chosen = self._on_each(StateVerb.KILL, brokers, lambda node: kill(node, death))
        if death is DeathKind.CLEAN:
            self._wait_down(chosen, timeout_s)
        if wait:
            self.wait_until_without(chosen, timeout_s=timeout_s)
        return chosen

    def start(
        self,
        brokers: Nodes,
        *,
        kafka_version: str | None = None,
        wait: bool = True,
        timeout_s: float = 30.0,
    ) -> tuple[int, ...]:
        """Start brokers that are down, on the disks that they had.  With `kafka_version` ("3.9")
        they run as that release from now on: an upgrade.  Returns when they serve clients and are
        back in the ISRs, or after `timeout_s` in those that they could join by then."""
        start = self._verbs.start
        chosen = self._on_each(StateVerb.START, brokers, lambda node: start(node, kafka_version))
        if wait:
            self.wait_until_in_sync(chosen, timeout_s=timeout_s)
        return chosen

    def restart(
        self, brokers: Nodes, how: str = "clean", *, wait: bool = True, timeout_s: float = 30.0
    ) -> tuple[int, ...]:
        """Stop brokers, all at once, and start them again when all are down.  Returns when they
        serve clients and are back in the ISRs, as `start` does."""
        death, kill = death_kind(how), self._verbs.kill
        chosen = self._on_each(StateVerb.RESTART, brokers, lambda node: kill(node, death))
        self._wait_down(chosen, None)
        if chosen:
            self.start(chosen, wait=wait, timeout_s=timeout_s)
        return chosen

    def rolling_restart(
        self, brokers: Nodes = "all", how: str = "clean", *, timeout_s: float = 30.0
    ) -> tuple[int, ...]:
        """Restart brokers one after the other, each when the one before is back in the ISRs.
        Raises ClusterError if one is not within `timeout_s`."""
        found = self.find(brokers)
        chosen = found if len(found) == 1 else self.choose(StateVerb.RESTART, found).nodes
        for broker_id in chosen:
            self.restart(broker_id, how, timeout_s=timeout_s)
            failure = f"broker {broker_id} is not back in all ISRs"
            self._wait(partial(self._settled.is_in_sync, broker_id), timeout_s, failure)
        return chosen

    def pause(
        self, brokers: Nodes, *, wait: bool = True, timeout_s: float | None = None
    ) -> tuple[int, ...]:
        """Pause brokers, as in a long garbage collection; their sockets stay open.  With `wait`,
        returns when the cluster has taken over from them, as `kill` does."""
        chosen = self._on_each(StateVerb.PAUSE, brokers, self._verbs.pause)
        if wait:
            self.wait_until_without(chosen, timeout_s=timeout_s)
        return chosen

    def resume(
        self, brokers: Nodes, *, wait: bool = True, timeout_s: float = 30.0
    ) -> tuple[int, ...]:
        """Resume paused brokers.  With `wait`, returns as `start` does."""
        chosen = self._on_each(StateVerb.RESUME, brokers, self._verbs.resume)
        if wait:
            self.wait_until_in_sync(chosen, timeout_s=timeout_s)
        return chosen

    def choose(self, verb: StateVerb, nodes: tuple[int, ...], can_wait: bool = True) -> Chosen:
        """Those of these nodes that a verb acts on now, and those that it leaves alone."""
        return self._do(lambda: self._verbs.choose(verb, nodes, can_wait))

    def _on_each(
        self, verb: StateVerb, brokers: Nodes, operation: Callable[[int], None]
    ) -> tuple[int, ...]:
        found = self.find(brokers, may_be_none=verb is StateVerb.START)
        return self._do(lambda: self._verbs.on_each(verb, found, operation))

    def advertise(self, broker_id: int, host: str, port: int, *, timeout_s: float = 30.0) -> None:
        """Give clients this address of a broker from now on, for instance that of a forwarder.
        Returns when all brokers know it."""
        ended: Future[str] = Future()
        self._do(lambda: self._verbs.advertise(broker_id, host, port, ended.set_result))
        refusal = self._result(ended, timeout_s, "the controller did not answer")
        if refusal:
            raise ClusterError(f"broker {broker_id}: {refusal}")
        self._wait(self._settled.has_applied_all, timeout_s, _NOT_ALL_KNOW)

    # ---------------------------------------------------------------------------- settling

    @property
    def notice_limit_s(self) -> float:
        """How long it takes at most until the controller misses a broker: its session timeout."""
        return self.topology.broker_config(self.broker_ids[0]).broker_session_timeout_ms / 1000

    def wait_until_without(
        self, brokers: tuple[int, ...], *, timeout_s: float | None = None
    ) -> None:
        """Wait until every partition that these brokers led has another leader or is offline."""
        limit_s = timeout_s or self.notice_limit_s * 2 + EXTRA_WAIT_S
        for broker_id in brokers:
            if broker_id != self._settled.controller_id:
                self._wait(
                    partial(self._settled.is_without, broker_id),
                    limit_s,
                    f"broker {broker_id} is gone, but the cluster has not taken over from it",
                )

    def wait_until_in_sync(self, brokers: tuple[int, ...], *, timeout_s: float = 30.0) -> None:
        """Wait until these brokers serve clients; then, at most as long again, until they are in
        every ISR."""
        chosen = [x for x in brokers if x != self._settled.controller_id]
        for broker_id in chosen:
            failure = f"broker {broker_id} runs and is still fenced"
            self._wait(partial(self._settled.is_serving, broker_id), timeout_s, failure)
        self._wait(lambda: all(map(self._settled.is_in_sync, chosen)), timeout_s, None)

    @property
    def settle_limit_s(self) -> float:
        """How long Kafka's time constants may take until ISRs and leaders are what they can be."""
        config = self.topology.broker_config(self.broker_ids[0])
        return self.notice_limit_s * 2 + config.replica_lag_time_max_ms / 1000 * 2 + EXTRA_WAIT_S

    def is_settled(self) -> bool:
        """The controller treats each broker as what it is, and ISRs are what they can be."""
        return self._do(self._settled.is_settled)

    def wait_until_settled(self, *, timeout_s: float | None = None) -> bool:
        """Wait until `is_settled()`, by default `settle_limit_s` at most; returns whether it is."""
        self._wait(self._settled.is_settled, timeout_s or self.settle_limit_s, None)
        return self.is_settled()

    def _wait_down(self, chosen: tuple[int, ...], timeout_s: float | None) -> None:
        down = self._settled.is_down
        names = ", ".join(map(str, chosen))
        self._wait(
            lambda: all(map(down, chosen)),
            timeout_s or SHUT_DOWN_LIMIT_S + 1,
            f"broker {names} did not shut down",
        )

    # ---------------------------------------------------------------------------- leaders

    def leader(self, topic: str, partition: int | None = None) -> int:
        """The broker that leads a partition, `("orders", 0)` or `"orders-0"`; ClusterError if there
        is none."""
        name = partition_in(topic, partition)
        return self._do(lambda: self._verbs.leader(*name))

    def move(
        self,
        topic: str,
        partition: int | None = None,
        to: Nodes = "",
        *,
        wait: bool = True,
        timeout_s: float = 10.0,
    ) -> int:
        """Make `to` the leader of a partition, which it must be in sync with: `move("orders-0",
        to=2)`.  Returns its id."""
        name = partition_in(topic, partition)
        broker_id = self.find(to)[0]
        self._do(lambda: self._verbs.move(*name, broker_id))
        if wait:
            failure = f"broker {broker_id} did not become leader of {name[0]}-{name[1]}"
            self._wait(lambda: self._settled.is_led_by(*name, broker_id), timeout_s, failure)
        return broker_id

    def elect(
        self,
        topic: str,
        partition: int | None = None,
        *,
        unclean: bool = False,
        timeout_s: float = 10.0,
    ) -> int:
        """Elect the preferred leader (or, `unclean`, any live replica if there is no leader), as
        kafka-leader-election does; returns the leader."""
        name = partition_in(topic, partition)
        answer: Future[Any] = Future()
        self._do(lambda: self._verbs.elect(*name, unclean, answer.set_result))
        body = self._result(answer, timeout_s, "the controller did not answer")
        self._verbs.check_elected(*name, body)
        self._wait(self._settled.has_applied_all, timeout_s, _NOT_ALL_KNOW)
        return self.leader(*name)

    # ----------------------------------------------------------------------------- topics

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
        *,
        timeout_s: float = 30.0,
    ) -> None:
        """Create a topic; `config` by Kafka's names.  Returns when all brokers know it."""
        spec = TopicSpec(name, partitions, replication_factor or -1, config=dict(config or {}))
        self._administer(name, timeout_s, lambda end: self._verbs.admin.create_topic(spec, end))

    def delete_topic(self, name: str, *, timeout_s: float = 30.0) -> None:
        """Delete a topic.  Returns when all brokers know."""
        topic_id = self._do(lambda: self._verbs.partition(name, 0)).topic_id
        self._administer(
            name, timeout_s, lambda end: self._verbs.admin.delete_topic(name, topic_id, end)
        )

    def _administer(self, name: str, timeout_s: float, ask: Callable[[OnEnd], None]) -> None:
        ended: Future[str] = Future()
        self._do(lambda: ask(ended.set_result))
        refusal = self._result(ended, timeout_s, "the controller did not answer")
        if refusal:
            raise ClusterError(f"{name}: {refusal}")
        self._wait(self._settled.has_applied_all, timeout_s, _NOT_ALL_KNOW)

    # ------------------------------------------------------------------------------ rules

    def add_rule(self, rule: Rule) -> str:
        """Add a rule of protocol faults (`cluster.rule(…)`) in force; returns its name."""
        return self._do(lambda: self._verbs.add_rule(rule))

    def remove_rule(self, name: str) -> None:
        """Remove a rule: held messages are delivered, connections that it silenced are closed."""
        self._do(lambda: self._verbs.remove_rule(name))

    def clear_rules(self) -> None:
        """Remove all rules."""
        self._do(self._verbs.clear_rules)

    def rules(self) -> tuple[RuleStatus, ...]:
        """The rules in force, and how often each has applied."""
        return self._do(self._verbs.rules)

    # -------------------------------------------------------------------------- observing

    def status(self) -> ClusterStatus:
        """The cluster's state at this moment."""
        return self._do(lambda: cluster_status(self.plan, self.driver.dispatcher))

    def logs(self, topic: str, partition: int) -> PartitionLogs:
        """The log of each replica of a partition: where it ends, its epochs, how the replica stands
        beside the leader; ClusterError if there is no such partition."""

        def read() -> PartitionLogs:
            self._verbs.partition(topic, partition)
            return partition_logs(self.plan, self.driver.dispatcher, topic, partition)

        return self._do(read)

    def events(self, since: int = 0) -> list[NoteEntry]:
        """The events after the one with sequence `since`, oldest first."""
        return self._do(lambda: [entry for entry in self._events if entry.sequence > since])

    def sequence_at(self, ago_ms: int) -> int:
        """The sequence of the last event that is older than this."""

        def find() -> int:
            since_ms = self.driver.now_ms() - ago_ms
            older = (entry.sequence for entry in self._events if entry.note.at_ms < since_ms)
            return max(older, default=0)

        return self._do(find)

    def subscribe(self, callback: Callable[[NoteEntry], None]) -> Callable[[], None]:
        """Call `callback(entry)` for every event from now on, in the driver's thread: it must be
        quick and must not call the cluster.  Returns a function that ends the subscription."""
        self._subscribers = (*self._subscribers, callback)

        def end() -> None:
            self._subscribers = tuple(x for x in self._subscribers if x is not callback)

        return end

    def wait_for(
        self,
        condition: str | None = None,
        *,
        within: str | float = 10.0,
        isr: tuple[str, int, int] | None = None,
        leader: tuple[str, int, int] | None = None,
        event: str | None = None,
        since: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Wait until a condition of scenario files holds: `wait_for("isr(orders-0) = 3",
        within="10s")`, `"leader(orders-0) = 2"`, `"event leader_elected of orders-0"`, `"settled"`.
        `within`: such a time, or seconds.  Or wait until the ISR of (topic, partition) has n
        members, until broker b leads (topic, partition), or for an event of this kind.  Events
        count after the one with sequence `since`, by default from now on."""
        from kcluster.operations.conditions import condition_in, limit_ms_of

        asked = (condition, isr, leader, event)
        assert sum(x is not None for x in asked) == 1, (
            "wait_for takes one of a condition, isr, leader, event"
        )
        limit_ms = limit_ms_of(within if timeout_s is None else timeout_s)
        if condition is not None:
            self._wait_for_condition(condition_in(condition), limit_ms, since)
        elif isr is not None:
            topic, partition, size = isr
            self._do(lambda: self._verbs.partition(topic, partition))
            self._wait_until(
                lambda: len(self._verbs.partition(topic, partition).isr) == size,
                limit_ms / 1000,
                f"the ISR of {topic}-{partition} does not have {size} members",
            )
        elif leader is not None:
            topic, partition, broker_id = leader
            self._do(lambda: self._verbs.partition(topic, partition))
            self._wait_until(
                lambda: self._settled.is_led_by(topic, partition, broker_id),
                limit_ms / 1000,
                f"broker {broker_id} does not lead {topic}-{partition}",
            )
        else:
            first = self._sequence if since is None else since
            self._wait_until(
                lambda: any(x.kind == event and x.sequence > first for x in self._events),
                limit_ms / 1000,
                f"no event {event}",
            )

    def _wait_for_condition(self, wanted: Condition, limit_ms: int, since: int | None) -> None:
        from kcluster.operations.conditions import ConditionFacts, no_workload, not_held

        dispatcher = self.driver.dispatcher
        notes: list[Note] = []
        facts = ConditionFacts(dispatcher, self._verbs, notes, no_workload)

        def begin() -> Callable[[], None]:
            if since is not None:
                notes.extend(entry.note for entry in self._events if entry.sequence > since)
            return self.subscribe(lambda entry: notes.append(entry.note))

        end = self._do(begin)
        try:
            self._wait(lambda: wanted.holds(facts), limit_ms / 1000, None)
            if not self._do(lambda: wanted.holds(facts)):
                if self.driver.is_clock_paused:
                    limit_ms = 0
                raise NotInTime(self._do(lambda: not_held(wanted, facts, limit_ms)))
        finally:
            end()

    def _keep(self, note: Note) -> None:
        self._sequence += 1
        entry = NoteEntry(self._sequence, note)
        self._events.append(entry)
        for subscriber in self._subscribers:
            subscriber(entry)

    # ---------------------------------------------------------------- the driver's thread

    def call(self, function: Callable[[], T]) -> T:
        """Call a function in the driver's thread, between two dispatches."""
        return self._do(function)

    def _on_network(self, operation: Callable[[NetworkControl], T]) -> T:
        return self._do(lambda: operation(self._verbs.network))

    def _do(self, function: Callable[[], T]) -> T:
        return self._result(self.driver.call(function), None, "")

    def _wait(self, condition: Callable[[], bool], timeout_s: float, failure: str | None) -> None:
        """Wait for a condition, by the cluster's clock; not if that is paused.  With `failure` None
        a timeout is not an error."""
        if self.driver.is_clock_paused:
            return
        driver = self.driver
        future = self._do(lambda: driver.when(condition))
        until_ms = driver.clock_ms() + timeout_s * 1000
        left_s = timeout_s
        while True:
            try:
                return self._result(future, left_s / driver.clock.speed, failure or "")
            except ClusterError:
                if future.done():
                    raise
            left_s = (until_ms - driver.clock_ms()) / 1000
            if left_s <= 0:
                break
            left_s = max(left_s, CLOCK_LOOK_S)
        self._do(lambda: driver.forget_condition(future))
        if failure is not None:
            raise ClusterError(f"{failure} within {timeout_s:g} s")

    def _wait_until(self, condition: Callable[[], bool], timeout_s: float, failure: str) -> None:
        """The same for somebody who relies on it: an error also if the clock is paused."""
        self._wait(condition, timeout_s, failure)
        if self.driver.is_clock_paused and not self._do(condition):
            raise ClusterError(f"{failure}, and the clock is paused")

    def _result(self, future: Future[T], timeout_s: float | None, failure: str) -> T:
        if threading.get_ident() == self.driver.thread_id:
            # A greenlet of the driver's own thread, which may wait; the hub may not.
            done = GeventEvent()
            future.add_done_callback(lambda _: done.set())
            if not done.wait(timeout_s):
                raise NotInTime(f"{failure} within {timeout_s:g} s")
            return future.result(0)
        try:
            return future.result(timeout_s)
        except FutureTimeoutError:
            raise NotInTime(f"{failure} within {timeout_s:g} s") from None


def _in_thread(todo: list[Callable[[], None]]) -> None:
    """A cluster's thread.  gevent keeps the frames that destroy a hub; they must not refer to the
    cluster, or its logs would stay in memory."""
    todo.pop()()
    gevent.get_hub().destroy(destroy_loop=True)


def _reserve(topology: Topology) -> dict[int, ReservedPort]:
    """Reserve the brokers' ports, by id; all of them or none."""
    ports: dict[int, ReservedPort] = {}
    # Fixed ports first, so that none of them is chosen as a free port.
    for spec in sorted(topology.brokers, key=lambda spec: (not spec.port, spec.id)):
        try:
            ports[spec.id] = ReservedPort(topology.host, spec.port)
        except OSError as error:
            for port in ports.values():
                port.release()
            where = f"{topology.host}:{spec.port}"
            raise ClusterError(
                f"broker {spec.id} cannot listen on {where}: {error.strerror}"
            ) from error
    return {broker_id: ports[broker_id] for broker_id in sorted(ports)}
