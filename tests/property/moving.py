"""Storms in which partitions move as well: a storm with reassignments, some of them throttled.

The actions between reassignments are those of the plain storm with the same seed, as reassignments
are drawn from a generator of their own.

python -m tests.property.moving 17            one seed, as tests.property.storm
"""

from __future__ import annotations

import sys
from random import Random

from kcluster.metadata.records import BROKER_RESOURCE
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.property.storm import PARTITIONS, SET, TOPIC, TOPIC_RESOURCE, Plan, Storm, main

Alter = m.AlterPartitionReassignmentsRequest


class MovingStorm(Storm):
    """A storm with reassignments to any number of brokers, over each other, and cancelled."""

    REPLAYED_BY = "tests.property.moving"

    def __init__(self, seed: int, plan: Plan | None = None) -> None:
        super().__init__(seed, plan)
        self.moves = Random(f"moves {seed}")

    def _add_clients(self) -> None:
        super()._add_clients()
        if self.moves.random() < 0.4:
            rate = str(self.moves.choice((1_000, 5_000, 20_000)))
            for side in ("leader", "follower"):
                if self.moves.random() < 0.7:
                    self._set(BROKER_RESOURCE, "", f"{side}.replication.throttled.rate", rate)
                    self._set(TOPIC_RESOURCE, TOPIC, f"{side}.replication.throttled.replicas", "*")

    def _set(self, kind: int, resource: str, name: str, value: str) -> None:
        alter = m.IncrementalAlterConfigsRequest
        config = alter.AlterableConfig(name, SET, value)
        body = alter(resources=[alter.AlterConfigsResource(kind, resource, [config])])
        self.operator.ask(1, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)

    def _act(self) -> None:
        if self.moves.random() < 0.4:
            self._reassign()
        super()._act()

    def _reassign(self) -> None:
        moves, brokers = self.moves, range(1, self.plan.brokers + 1)
        partitions = [
            Alter.ReassignablePartition(
                partition,
                None
                if moves.random() < 0.3
                else moves.sample(brokers, moves.randint(1, min(4, self.plan.brokers))),
            )
            for partition in range(PARTITIONS)
            if moves.random() < 0.7
        ]
        body = Alter(timeout_ms=5_000, topics=[Alter.ReassignableTopic(TOPIC, partitions)])
        via = moves.choice(brokers)
        self.operator.ask(via, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, body)

    def _is_healed(self) -> bool:
        for registration, _ in self._replicas():
            adding, removing = {*registration.adding_replicas}, {*registration.removing_replicas}
            # A replica that is both added and removed keeps a reassignment in progress for ever.
            if (adding or removing) and not adding & removing:
                return False
        return super()._is_healed()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], MovingStorm))
