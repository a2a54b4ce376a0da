"""The operations of users on a running cluster, equal on every clock.

Owns: these verbs, and the completion of each.  Never: changes a node's state itself (its
action does, in actions/), knows which clock runs.  Kafka: an operator with kill -9, iptables and
kafka-leader-election.

Every method of a Cluster may be called from any thread.  It returns when the cluster has settled,
and raises ClusterError, with the reason, if that takes too long or the operation is not possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kcluster.config.kafka.broker import BrokerConfig
from kcluster.config.topology.specs import TopicSpec
from kcluster.deaths import DeathKind
from kcluster.faults.reports import RuleStatus
from kcluster.faults.rules import Rule
from kcluster.handle.network import Network
from kcluster.handle.port import VerbPort, forwarded
from kcluster.operations.admin import OnEnd
from kcluster.operations.errors import ClusterError
from kcluster.operations.names import partition_in
from kcluster.operations.python_values import MAX_INT, number_in, seconds_in, text_in, wrong
from kcluster.operations.states import Chosen, StateVerb
from kcluster.operations.verbs import SHUT_DOWN_LIMIT_S

if TYPE_CHECKING:
    from kcluster.actions.stage import Performed
    from kcluster.operations.targets import Nodes

T = TypeVar("T")

EXTRA_WAIT_S: Final = 10.0
"""The time that is added to the session timeout, for the consequences of a broker's death."""
_NOT_ALL_KNOW: Final = "not all brokers have applied the newest metadata"


def _network(cluster: UserVerbs) -> Network:
    return cluster.network


class UserVerbs(VerbPort):
    """The operations on a cluster.  `wait`: whether a verb waits for its consequences; by default,
    whether the handle does.  `extra_wait_s`: the time beyond Kafka's timeouts for which a verb
    waits."""

    extra_wait_s = EXTRA_WAIT_S

    @cached_property
    def network(self) -> Network:
        """The links between nodes."""
        return Network(self)

    cut = forwarded(_network, Network.cut)
    isolate = forwarded(_network, Network.isolate)
    bridge = forwarded(_network, Network.bridge)
    slow_link = forwarded(_network, Network.slow_link)
    lose = forwarded(_network, Network.lose)
    limit_bandwidth = forwarded(_network, Network.limit_bandwidth)
    heal = forwarded(_network, Network.heal)

    # -------------------------------------------------------------------------- processes

    def kill(
        self,
        brokers: Nodes,
        how: str = "kill",
        *,
        wait: bool | None = None,
        timeout_s: float | None = None,
    ) -> tuple[int, ...]:
        """End brokers' processes: `kill` (SIGKILL), `clean` (controlled shutdown), `power`
        (unflushed records are lost), `wipe` (the disk is lost too).  With `wait`, returns when
        every partition that they led has another leader or is offline, and the other brokers know.

        Returns their ids.  Here and below, a verb for several brokers acts on the brokers whose
        state allows it and leaves the others alone; it raises ClusterError if a single broker is
        named and its state does not allow the verb.
        """
        chosen = self._perform("kill", timeout_s or 0, brokers=brokers, how=how).chosen
        if how == DeathKind.CLEAN and self.waits:
            self._wait_down(chosen, timeout_s)
        if self._waits(wait):
            self.wait_until_without(chosen, timeout_s=timeout_s)
        return chosen

    def start(
        self,
        brokers: Nodes,
        *,
        kafka_version: str | None = None,
        wait: bool | None = None,
        timeout_s: float = 30.0,
    ) -> tuple[int, ...]:
        """Start brokers that are down, on the disks that they had.  With `kafka_version` ("3.9")
        they run as that release from now on: an upgrade.  Returns when they serve clients and are
        back in the ISRs, or after `timeout_s` in the ISRs that they could join by then."""
        values = {"brokers": brokers, "kafka_version": kafka_version}
        chosen = self._perform("start", timeout_s, **values).chosen
        if self._waits(wait):
            self.wait_until_in_sync(chosen, timeout_s=timeout_s)
        return chosen

    def restart(
        self,
        brokers: Nodes,
        how: str = "clean",
        *,
        wait: bool | None = None,
        timeout_s: float = 30.0,
    ) -> tuple[int, ...]:
        """Stop brokers, all at once, and start them again when all are down.  Returns under the
        conditions of `start`."""
        chosen = self._perform("kill", timeout_s, brokers=brokers, how=how).chosen
        self._wait_down(chosen, None)
        if chosen:
            self.start(chosen, wait=wait, timeout_s=timeout_s)
        return chosen

    def rolling_restart(
        self, brokers: Nodes = "all", how: str = "clean", *, timeout_s: float = 30.0
    ) -> tuple[int, ...]:
        """Restart brokers one after the other, each when the previous one is back in the ISRs.
        ClusterError if a broker is not back within `timeout_s`."""
        found = self.find(brokers)
        chosen = found if len(found) == 1 else self.choose(StateVerb.RESTART, found).nodes
        for broker_id in chosen:
            self.restart(broker_id, how, timeout_s=timeout_s)
            failure = f"broker {broker_id} is not back in all ISRs"
            self.wait_until(partial(self.verbs.settled.is_in_sync, broker_id), timeout_s, failure)
        return chosen

    def pause(
        self, brokers: Nodes, *, wait: bool | None = None, timeout_s: float | None = None
    ) -> tuple[int, ...]:
        """Pause brokers, as in a long garbage collection; their sockets stay open.  With `wait`,
        returns when the cluster has taken over from them, as `kill` does."""
        chosen = self._perform("pause", timeout_s or 0, brokers=brokers).chosen
        if self._waits(wait):
            self.wait_until_without(chosen, timeout_s=timeout_s)
        return chosen

    def resume(
        self, brokers: Nodes, *, wait: bool | None = None, timeout_s: float = 30.0
    ) -> tuple[int, ...]:
        """Resume paused brokers.  With `wait`, returns as `start` does."""
        chosen = self._perform("resume", timeout_s, brokers=brokers).chosen
        if self._waits(wait):
            self.wait_until_in_sync(chosen, timeout_s=timeout_s)
        return chosen

    def choose(self, verb: StateVerb, nodes: tuple[int, ...], can_wait: bool = True) -> Chosen:
        """The nodes on which a verb acts now, and the nodes that it leaves alone."""
        return self.call(lambda: self.verbs.choose(verb, nodes, can_wait))

    def _perform(self, verb: str, timeout_s: float, **values: Any) -> Performed:
        """Perform an action after which the caller may wait for this long."""
        seconds_in("timeout_s", timeout_s)
        return self.perform(verb, **values)

    def _waits(self, wait: bool | None) -> bool:
        return self.waits if wait is None else wait

    def advertise(self, broker_id: int, host: str, port: int, *, timeout_s: float = 30.0) -> None:
        """Give clients this address of a broker from now on, such as a forwarder's. Returns when
        all brokers know it."""
        advertise = partial(self.verbs.advertise, broker_id, host, port)
        self._administer(f"broker {broker_id}", timeout_s, advertise)

    # ---------------------------------------------------------------------------- settling

    @property
    def _config(self) -> BrokerConfig:
        """The config of the first broker."""
        return self.plan.topology.broker_config(next(iter(self.plan.addresses)))

    @property
    def notice_limit_s(self) -> float:
        """The longest time until the controller notices a broker's death: its session timeout."""
        return self._config.broker_session_timeout_ms / 1000

    def _brokers_in(self, brokers: tuple[int, ...]) -> list[int]:
        """These nodes without the controller; ClusterError for anything but ids."""
        if not isinstance(brokers, tuple | list | set):
            raise wrong("brokers", brokers, "must be ids of brokers, such as (1, 2)")
        for each in brokers:
            number_in("brokers", each, -1, MAX_INT, is_whole=True)
        nodes = [self.verbs.node(each) for each in brokers]
        return [each for each in nodes if each != self.verbs.settled.controller_id]

    def wait_until_without(
        self, brokers: tuple[int, ...], *, timeout_s: float | None = None
    ) -> None:
        """Wait until each partition that these brokers led has another leader or is offline."""
        limit_s = seconds_in("timeout_s", timeout_s or self.notice_limit_s * 2 + self.extra_wait_s)
        for broker_id in self._brokers_in(brokers):
            self.wait_until(
                partial(self.verbs.settled.is_without, broker_id),
                limit_s,
                f"broker {broker_id} is gone, but the cluster has not taken over from it",
            )

    def wait_until_in_sync(self, brokers: tuple[int, ...], *, timeout_s: float = 30.0) -> None:
        """Wait until these brokers serve clients; then, at most as long again, until they are in
        every ISR."""
        seconds_in("timeout_s", timeout_s)
        chosen = self._brokers_in(brokers)
        for broker_id in chosen:
            failure = f"broker {broker_id} runs and is still fenced"
            self.wait_until(partial(self.verbs.settled.has_come_up, broker_id), timeout_s, failure)
        self.wait_until(lambda: all(map(self.verbs.settled.is_in_sync, chosen)), timeout_s, None)

    @property
    def settle_limit_s(self) -> float:
        """The longest time that Kafka's timeouts may take until leaders and ISRs no longer
        change."""
        lag_s = self._config.replica_lag_time_max_ms / 1000
        return self.notice_limit_s * 2 + lag_s * 2 + self.extra_wait_s

    def is_settled(self) -> bool:
        """Whether the controller has noticed the state of each broker, and leaders and ISRs no
        longer change."""
        return self.call(self.verbs.settled.is_settled)

    def wait_until_settled(
        self, *, timeout_s: float | None = None, after: Callable[[], bool] = lambda: True
    ) -> bool:
        """Wait until `is_settled()` and `after()` hold, by default for `settle_limit_s` at most;
        `after` is called in the driver's thread.  Returns whether both held.  The cluster may be
        unsettled again by the next event."""
        if not callable(after):
            raise wrong("after", after, "must be a function without parameters")

        def holds() -> bool:
            return after() and self.verbs.settled.is_settled()

        limit_s = seconds_in("timeout_s", timeout_s or self.settle_limit_s)
        return self.wait_until(holds, limit_s, None) or self.call(holds)

    def _wait_down(self, chosen: tuple[int, ...], timeout_s: float | None) -> None:
        down = self.verbs.settled.is_down
        names = ", ".join(map(str, chosen))
        self.wait_until(
            lambda: all(map(down, chosen)),
            timeout_s or SHUT_DOWN_LIMIT_S + 1,
            f"broker {names} did not shut down",
        )

    # ---------------------------------------------------------------------------- leaders

    def leader(self, topic: str, partition: int | None = None) -> int:
        """The broker that leads a partition, `("orders", 0)` or `"orders-0"`; ClusterError if there
        is none."""
        name = partition_in(topic, partition)
        return self.call(lambda: self.verbs.leader(*name))

    def move(
        self,
        topic: str,
        partition: int | None = None,
        to: Nodes = "",
        *,
        wait: bool | None = None,
        timeout_s: float = 10.0,
    ) -> int:
        """Make `to`, which must be in sync, the leader of a partition: `move("orders-0",
        to=2)`.  Returns its id."""
        name = partition_in(topic, partition)
        (broker_id,) = self._perform("move", timeout_s, partition=name, to=to).nodes
        if self._waits(wait):
            failure = f"broker {broker_id} did not become leader of {name[0]}-{name[1]}"
            self.wait_until(
                lambda: self.verbs.settled.is_led_by(*name, broker_id), timeout_s, failure
            )
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
        body = self._answer(partial(self.verbs.elect, *name, unclean), timeout_s)
        self.verbs.check_elected(*name, body)
        self.wait_until(self.verbs.settled.has_applied_all, timeout_s, _NOT_ALL_KNOW)
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
        number_in("partitions", partitions, -1, MAX_INT, is_whole=True)
        replicas = -1 if replication_factor is None else replication_factor
        number_in("replication_factor", replicas, -1, MAX_INT, is_whole=True)
        if not isinstance(config or {}, Mapping):
            raise wrong("config", config, "must be a mapping like {'min.insync.replicas': '2'}")
        spec = TopicSpec(text_in("name", name), partitions, replicas, config=dict(config or {}))
        self._administer(name, timeout_s, lambda end: self.verbs.admin.create_topic(spec, end))

    def delete_topic(self, name: str, *, timeout_s: float = 30.0) -> None:
        """Delete a topic.  Returns when all brokers know."""
        name, _ = partition_in(name, 0)
        topic_id = self.call(lambda: self.verbs.partition(name, 0)).topic_id
        self._administer(
            name, timeout_s, lambda end: self.verbs.admin.delete_topic(name, topic_id, end)
        )

    def _administer(self, name: str, timeout_s: float, ask: Callable[[OnEnd], None]) -> None:
        refusal = self._answer(ask, timeout_s)
        if refusal:
            raise ClusterError(f"{name}: {refusal}")
        self.wait_until(self.verbs.settled.has_applied_all, timeout_s, _NOT_ALL_KNOW)

    def _answer(self, ask: Callable[[Callable[[T], None]], None], timeout_s: float) -> T:
        """The controller's answer to this request."""
        seconds_in("timeout_s", timeout_s)
        answers: list[T] = []
        self.call(lambda: ask(answers.append))
        failure = "the controller did not answer"
        if not self.wait_until(lambda: bool(answers), timeout_s, failure) and not answers:
            raise ClusterError(f"{failure}, and the clock is paused")
        return answers[0]

    # ------------------------------------------------------------------------------ rules

    def add_rule(self, rule: Rule) -> str:
        """Put a rule of protocol faults (`kcluster.rule(…)`) into force; returns its name."""
        if not isinstance(rule, Rule):
            raise wrong("rule", rule, "must be a rule, as rule(...) makes one")
        return self.call(lambda: self.verbs.add_rule(rule))

    def remove_rule(self, name: str) -> None:
        """Remove a rule: held messages are delivered, connections that it silenced are closed."""
        self.call(lambda: self.verbs.remove_rule(name))

    def clear_rules(self) -> None:
        """Remove all rules."""
        self.call(self.verbs.clear_rules)

    def rules(self) -> tuple[RuleStatus, ...]:
        """The rules in force, and the number of times that each has applied."""
        return self.call(self.verbs.rules)
