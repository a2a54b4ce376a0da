"""Which nodes a target means at this moment: `leader(orders-0)` -> broker 2.

Owns: resolving targets against the controller's image and the processes.  Never: parses (words.py).
ClusterError, with the reason, when nobody is meant.
Kafka: what an operator finds out with kafka-topics --describe and kafka-consumer-groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcluster.broker.coordinator.coordinator import offsets_partition
from kcluster.config.files.problems import unknown
from kcluster.contract import Rng
from kcluster.operations.errors import ClusterError
from kcluster.operations.verbs import Verbs
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from kcluster.runtime.process import ProcessState
from kcluster.scenario.language.words import Target, Targets

OFFSETS_TOPIC = "__consumer_offsets"


class Finder:
    """Finds nodes on one cluster.  `names`: brokers that steps gave a name to; `clients`: ids in
    the fabric by name."""

    def __init__(self, plan: Plan, dispatcher: Dispatcher, verbs: Verbs, rng: Rng) -> None:
        self.names: dict[str, tuple[int, ...]] = {}
        self.clients: Mapping[str, int] = {}
        self._plan = plan
        self._dispatcher = dispatcher
        self._verbs = verbs
        self._rng = rng

    def find(self, targets: Targets) -> tuple[int, ...]:
        """All that are meant, each once, in the order of naming."""
        found = tuple(dict.fromkeys(node for target in targets for node in self._find(target)))
        if not found:
            raise ClusterError(f"{', '.join(map(str, targets))}: there is no such broker now")
        return found

    def _find(self, target: Target) -> tuple[int, ...]:
        match target.word:
            case "broker":
                return (self._verbs.node(int(target.argument)),)
            case "all":
                return self._brokers()
            case "down":
                return tuple(x for x in self._brokers() if self._state(x) is ProcessState.DOWN)
            case "controller":
                return (self._verbs.settled.controller_id,)
            case "rack":
                return self._rack(target.argument)
            case "coordinator":
                return self._coordinator(target.argument)
            case "client" | "clients":
                return self._client(target)
            case "name":
                return self._named(target.argument)
            case "any":
                return self._any(target)
            case "all but":
                others = self.find(target.inner)
                return tuple(x for x in self._brokers() if x not in others)
            case _:
                return self._of_partition(target)

    def _of_partition(self, target: Target) -> tuple[int, ...]:
        assert target.partition is not None
        topic, number = target.partition
        partition = self._verbs.partition(topic, number)
        match target.word:
            case "leader":
                return (self._verbs.leader(topic, number),)
            case "followers":
                return tuple(x for x in partition.replicas if x != partition.leader)
            case "replicas":
                return tuple(partition.replicas)
            case "isr":
                return tuple(partition.isr)
            case _:
                assert target.word == "elr", target
                return tuple(partition.elr)

    def _any(self, target: Target) -> tuple[int, ...]:
        """Drawn by the seed, of those that are up if any is."""
        among = self.find(target.inner)
        up = tuple(x for x in among if self._state(x) is ProcessState.UP)
        left = list(up or among)
        if len(left) < target.count:
            raise ClusterError(f"{target}: there are {len(left)}")
        return tuple(left.pop(self._rng.randrange(len(left))) for _ in range(target.count))

    def _rack(self, rack: str) -> tuple[int, ...]:
        racks = {spec.id: spec.rack for spec in self._plan.topology.brokers}
        if rack not in racks.values():
            named = sorted({name for name in racks.values() if name})
            raise ClusterError(f"rack {rack}: {unknown('rack', rack, named)}")
        return tuple(broker_id for broker_id in self._brokers() if racks.get(broker_id) == rack)

    def _coordinator(self, group: str) -> tuple[int, ...]:
        image = self._verbs.settled.image
        if OFFSETS_TOPIC not in image.topics:
            raise ClusterError(f"group {group} has no coordinator: nobody has used a group yet")
        count = len(image.topics[OFFSETS_TOPIC].partitions)
        return (self._verbs.leader(OFFSETS_TOPIC, offsets_partition(group, count)),)

    def _client(self, target: Target) -> tuple[int, ...]:
        if target.word == "clients":
            return self._verbs.network.clients
        if target.argument not in self.clients:
            if not self.clients or "*" in target.argument:
                return self._verbs.network.client(target.argument)
            raise ClusterError(
                f"client {target.argument}: {unknown('client', target.argument, self.clients)}"
            )
        return (self.clients[target.argument],)

    def _named(self, name: str) -> tuple[int, ...]:
        if name in self.names:
            return self.names[name]
        if name in self.clients:
            return (self.clients[name],)
        known = (*self.names, *self.clients)
        raise ClusterError(f"{name}: {unknown('name', name, known)}, and no step has given it")

    def _brokers(self) -> tuple[int, ...]:
        return tuple(self._plan.addresses)

    def _state(self, node_id: int) -> ProcessState:
        process: Any = self._dispatcher.processes.get(node_id)
        return ProcessState.UP if process is None else process.state
