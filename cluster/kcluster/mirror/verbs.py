"""The operations of users on a real Kafka: the same as on a simulated cluster, or refused.

Owns: which operations are refused (limits.py has the reasons).  Never: does what is possible
differently: that goes through the mirrors (driver.py).
Kafka: kill, kafka-leader-election, kafka-topics, kafka-configs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations, product

from kcluster.apache_kafka.processes import KafkaProcesses
from kcluster.config.files.problems import unknown
from kcluster.deaths import DeathKind
from kcluster.faults.reports import RuleStatus, status
from kcluster.faults.rules import Rule
from kcluster.mirror import limits
from kcluster.mirror.driver import KafkaDriver
from kcluster.mirror.limits import KafkaLimit, RefusedOnKafka
from kcluster.mirror.quorum import ControllerProcesses
from kcluster.mirror.settled import KafkaSettled
from kcluster.network.fabric import Link
from kcluster.network.node_ids import FIRST_CLIENT_ID
from kcluster.network.shapes import LinkShape
from kcluster.node_ids import CONTROLLER_ID
from kcluster.operations.admin import OnEnd
from kcluster.operations.errors import ClusterError
from kcluster.operations.links import Layers, Links
from kcluster.operations.node_sets import NodeSets
from kcluster.operations.processes import RunningProcess
from kcluster.operations.python_values import text_in
from kcluster.operations.verbs import Verbs
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from kcluster.security.certificates import CertificateState


class KafkaVerbs(Verbs):
    """Operations on a real Kafka."""

    def __init__(self, plan: Plan, driver: KafkaDriver, no_proxy: str) -> None:
        """`no_proxy`: why there is no proxy before the brokers; empty if there is one."""
        dispatcher = driver.dispatcher
        super().__init__(plan, dispatcher)
        self.settled = KafkaSettled(dispatcher, driver.ended)
        self._driver = driver
        self._no_proxy = no_proxy
        self.links = KafkaLinks(dispatcher, driver.real, driver.note_silence)
        self.network = NodeSets(plan, dispatcher, self.links, self.settled)

    def kill(self, broker_id: int, how: DeathKind) -> None:
        if how is DeathKind.POWER:
            raise RefusedOnKafka(limits.POWER_LOSS)
        super().kill(broker_id, how)

    def start(self, broker_id: int, kafka_version: str | None = None) -> None:
        if kafka_version is not None:
            raise RefusedOnKafka(limits.UPGRADE)
        super().start(broker_id)

    def _running(self, node_id: int) -> RunningProcess:
        quorum = self._driver.quorum
        if node_id == CONTROLLER_ID and not quorum.is_single:
            return ControllerProcesses(quorum, self._driver.change_quorum)
        return super()._running(node_id)

    def readdress(self, broker_id: int) -> None:
        raise RefusedOnKafka(limits.NEW_ADDRESS)

    def advertise(self, broker_id: int, host: str, port: int, on_end: OnEnd) -> None:
        raise RefusedOnKafka(limits.ADVERTISED)

    def add_broker(self, broker_id: int, rack: str | None = None) -> None:
        raise RefusedOnKafka(limits.NEW_BROKER)

    def fill_disk(self, broker_id: int) -> None:
        raise RefusedOnKafka(limits.FULL_DISK)

    def replace_certificate(self, broker_id: int, state: CertificateState) -> None:
        raise RefusedOnKafka(limits.CERTIFICATE)

    def end_sessions(self, broker_ids: Sequence[int], user: str | None = None) -> None:
        raise RefusedOnKafka(limits.SESSIONS)

    def expire_tokens(self, user: str) -> list[bytes]:
        raise RefusedOnKafka(limits.TOKENS)

    def add_rule(self, rule: Rule) -> str:
        for broker_id in rule.brokers:
            self.broker(broker_id)
        proxy = self._driver.proxy
        if proxy is None:
            raise RefusedOnKafka(limits.no_rule(self._no_proxy))
        return proxy.add_rule(rule)

    def add_node_rule(self, rule: Rule) -> str:
        raise RefusedOnKafka(limits.NODE_RULE)

    def remove_rule(self, name: str) -> None:
        text_in("name", name)
        proxy = self._driver.proxy
        names = () if proxy is None else proxy.gate.book.entries
        if proxy is None or name not in names:
            raise ClusterError(f"rule {name}: {unknown('rule', name, names)}")
        proxy.gate.remove(name)

    def rules(self) -> tuple[RuleStatus, ...]:
        proxy = self._driver.proxy
        return () if proxy is None else status(proxy.gate.book)


class KafkaLinks(Links):
    """The links of a real cluster.  Those of the project's own clients are cut and shaped at the
    clients' end, all others in the nodes' network namespaces, if they have any."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        processes: KafkaProcesses,
        on_silence: Callable[[int, bool], None],
    ) -> None:
        """`on_silence`: called with each broker, and whether a cut keeps its heartbeats from the
        controller, when links have changed."""
        super().__init__(dispatcher)
        self._processes = processes
        self._on_silence = on_silence
        self._shaped: dict[Link, LinkShape] = {}
        """The shapes that the namespaces have from here."""

    def isolate(
        self, nodes: Sequence[int], others: Sequence[int], *, one_way: bool = False
    ) -> tuple[Link, ...]:
        if _between_servers(nodes, others) and self._processes.network is None:
            raise RefusedOnKafka(KafkaLimit("a cut between nodes", self._processes.no_network))
        fresh = super().isolate(nodes, others, one_way=one_way)
        self._carry_out()
        return fresh

    def shape(
        self,
        nodes: Sequence[int],
        others: Sequence[int],
        shape: LinkShape,
        *,
        one_way: bool = False,
        of_disk: bool = False,
    ) -> Layers:
        if of_disk:
            raise RefusedOnKafka(limits.SLOW_DISK)
        why = self._processes.no_latency
        if why is not None and _between_servers(nodes, others):
            raise RefusedOnKafka(KafkaLimit("a slow link between nodes", why))
        layers = super().shape(nodes, others, shape, one_way=one_way)
        self._carry_out()
        return layers

    def heal(self, a: int | None = None, b: int | None = None) -> None:
        super().heal(a, b)
        self._carry_out()

    def heal_links(self, links: Iterable[Link]) -> None:
        super().heal_links(links)
        self._carry_out()

    def remove_layers(self, layers: Layers) -> None:
        super().remove_layers(layers)
        self._carry_out()

    def _carry_out(self) -> None:
        """Bring the namespaces into the state of the fabric."""
        network = self._processes.network
        if network is None:
            return
        fabric = self._fabric
        for broker in self._processes.broker_ids:
            lanes = ((broker, CONTROLLER_ID), (CONTROLLER_ID, broker))
            self._on_silence(broker, any(fabric.is_cut(*lane) for lane in lanes))
        controllers = self._processes.controller_ids
        nodes = (*controllers, *self._processes.broker_ids)
        for real in permutations(nodes, 2):
            # One controller stands for all of them.
            link = tuple(CONTROLLER_ID if each in controllers else each for each in real)
            if fabric.is_cut(*link):
                network.cut(*real)
            else:
                network.heal(*real)
            shapes = fabric.shapes_of(*link)
            if shapes or real in self._shaped:
                self._shaped[real] = combined(fabric.latency_us(*link), shapes)
                network.shape(*real, self._shaped[real])


def combined(latency_us: int, shapes: Iterable[LinkShape]) -> LinkShape:
    """One shape for all that holds for a link at once; `latency_us`: the link's own."""
    found = LinkShape(latency_us=latency_us)
    for shape in shapes:
        rates = [rate for rate in (found.bytes_per_s, shape.bytes_per_s) if rate]
        found = LinkShape(
            latency_us=found.latency_us + shape.latency_us,
            jitter_us=found.jitter_us + shape.jitter_us,
            distribution=shape.distribution if shape.jitter_us else found.distribution,
            loss=1 - (1 - found.loss) * (1 - shape.loss),
            bytes_per_s=min(rates, default=0),
        )
    return found


def _between_servers(nodes: Iterable[int], others: Iterable[int]) -> bool:
    """Whether links between brokers, or between a broker and the controller, are among these."""
    return any(a != b and max(a, b) < FIRST_CLIENT_ID for a, b in product(nodes, others))
