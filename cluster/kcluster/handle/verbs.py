"""The operations of users on a running cluster, the same on the live clock and in virtual time.

Owns: these verbs, and when each of them is complete.  Never: changes a node's state itself
(everything goes through the driver), knows which clock runs.  Kafka: an operator with kill -9,
iptables and kafka-leader-election.

Every method may be called from any thread.  It returns when the cluster has settled, and raises
ClusterError, with the reason, if that takes too long or the operation is not possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import TopicSpec
from kcluster.deaths import DeathKind
from kcluster.faults.rules import Rule
from kcluster.handle.clock import ClockVerbs
from kcluster.handle.driver import HandleDriver
from kcluster.handle.recording import RecordVerbs
from kcluster.handle.waiting import WaitingVerbs
from kcluster.operations.admin import OnEnd
from kcluster.operations.errors import ClusterError
from kcluster.operations.names import partition_in
from kcluster.operations.network_verbs import NetworkVerbs
from kcluster.operations.node_sets import NetworkControl
from kcluster.operations.states import Chosen, StateVerb
from kcluster.operations.verbs import SHUT_DOWN_LIMIT_S, death_kind
from kcluster.runtime.build import Plan
from kcluster.runtime.gate import RuleStatus

if TYPE_CHECKING:
    from kcluster.operations.targets import Finder, Nodes

T = TypeVar("T")

EXTRA_WAIT_S: Final = 10.0
"""Added to the session timeout, for what follows a broker's death."""
_NOT_ALL_KNOW: Final = "not all brokers have applied the newest metadata"


class ClusterVerbs(WaitingVerbs, NetworkVerbs, ClockVerbs, RecordVerbs):
    """What Cluster and WorldCluster have in common.

    `bootstrap`: `host:port,host:port`, for clients.
    """

    def __init__(self, topology: Topology, seed: int, plan: Plan, driver: HandleDriver) -> None:
        self.topology = topology
        self.seed = seed
        self.belongings: dict[str, Any] = {}
        """Objects that other modules attach to this cluster, by their own names."""
        self.plan: Plan = plan
        self.driver = driver
        self.name = topology.name
        """The name of its run directories."""
        self.ledger = Ledger()
        """What the project's own clients sent and read in this cluster."""
        self._finder: Finder | None = None
        self._begin_observing()

    @property
    def bootstrap(self) -> str:
        """`host:port` of every broker, for a client's bootstrap.servers."""
        return ",".join(f"{host}:{port}" for host, port in self.plan.addresses.values())

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of all brokers, up or not."""
        return tuple(self.plan.addresses)

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
        """Wait until `is_settled()`, by default `settle_limit_s` at most; returns whether it was:
        what follows may unsettle it at once."""
        limit_s = timeout_s or self.settle_limit_s
        return self._wait(self._settled.is_settled, limit_s, None) or self.is_settled()

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
        answer: Future[object] = Future()
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

    def _on_network(self, operation: Callable[[NetworkControl], T]) -> T:
        return self._do(lambda: operation(self._verbs.network))
