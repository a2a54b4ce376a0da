"""Actions on leadership: moving leaders, elections.

Owns: these actions.  Never: elects (the controller does, asked by operations/verbs.py).
Kafka: kafka-leader-election.sh; kafka-reassign-partitions.sh for a preferred leader by hand.
"""

from __future__ import annotations

from typing import Annotated, Any

from kcluster.actions.base import Action, action
from kcluster.actions.kinds import BROKERS, PARTITION
from kcluster.actions.site import Site
from kcluster.config.files.fields import Flag
from kcluster.operations.errors import ClusterError
from kcluster.operations.names import PartitionName
from kcluster.operations.targets import Targets


@action("move", example="move: {partition: orders-0, to: 2}")
class MoveLeaderAction(Action, frozen=True):
    """Make another broker the leader of a partition; it must be in the ISR."""

    partition: Annotated[PartitionName, PARTITION, "The partition."]
    to: Annotated[Targets, BROKERS, "Its new leader."]

    def affected(self, site: Site) -> tuple[int, ...]:
        return site.nodes(self.to)[:1]

    def do(self, site: Site) -> None:
        site.verbs.move(*self.partition, to=site.nodes(self.to)[0])


@action("elect", short="partition", example="elect: orders-0")
class Elect(Action, frozen=True):
    """Elect the preferred leader of a partition."""

    partition: Annotated[PartitionName, PARTITION, "The partition."]
    unclean: Annotated[
        bool, Flag(), "Elect any live replica, if the partition has no leader; may lose records."
    ] = False

    def do(self, site: Site) -> None:
        topic, number = self.partition

        def on_answer(answer: Any) -> None:
            try:
                site.verbs.check_elected(topic, number, answer)
            except ClusterError as error:
                site.refuse(f"elect: {error}")

        site.verbs.elect(topic, number, self.unclean, on_answer)
