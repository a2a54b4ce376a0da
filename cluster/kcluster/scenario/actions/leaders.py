"""Actions on leadership: moving leaders, elections.

Owns: these actions.  Never: elects (the controller does, asked by operations/verbs.py).
Kafka: kafka-leader-election.sh; kafka-reassign-partitions.sh for a preferred leader by hand.
"""

from __future__ import annotations

from typing import Annotated, Any

from kcluster.operations.errors import ClusterError
from kcluster.operations.names import PartitionName
from kcluster.operations.targets import Targets
from kcluster.scenario.actions.base import Action, action
from kcluster.scenario.language.fields import Flag
from kcluster.scenario.language.words import BROKERS, PARTITION
from kcluster.scenario.play.stage import Stage


@action("move", example="move: {partition: orders-0, to: 2}")
class MoveLeaderAction(Action, frozen=True):
    """Make another broker the leader of a partition; it must be in the ISR."""

    partition: Annotated[PartitionName, PARTITION, "The partition."]
    to: Annotated[Targets, BROKERS, "Its new leader."]

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.to)[:1]

    def do(self, stage: Stage) -> None:
        to = stage.nodes(self.to)[0]
        stage.verbs.move(*self.partition, to=to)
        stage.is_over_when(lambda: stage.verbs.settled.is_led_by(*self.partition, to))


@action("elect", short="partition", example="elect: orders-0")
class Elect(Action, frozen=True):
    """Elect the preferred leader of a partition."""

    partition: Annotated[PartitionName, PARTITION, "The partition."]
    unclean: Annotated[
        bool, Flag(), "Elect any live replica, if the partition has no leader; may lose records."
    ] = False

    def do(self, stage: Stage) -> None:
        topic, number = self.partition

        answered: list[bool] = []
        stage.is_over_when(lambda: bool(answered))

        def on_answer(answer: Any) -> None:
            answered.append(True)
            try:
                stage.verbs.check_elected(topic, number, answer)
            except ClusterError as error:
                stage.refuse(f"elect: {error}")

        stage.verbs.elect(topic, number, self.unclean, on_answer)
