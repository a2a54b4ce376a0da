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
from kcluster.scenario.language.words import PARTITION, TARGETS
from kcluster.scenario.play.stage import Stage


@action("move")
class MoveLeaderAction(Action, frozen=True):
    """Make another broker the leader of a partition; it must be in the ISR."""

    partition: Annotated[PartitionName, PARTITION]
    to: Annotated[Targets, TARGETS]

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.to)[:1]

    def do(self, stage: Stage) -> None:
        stage.verbs.move(*self.partition, to=stage.nodes(self.to)[0])


@action("elect", short="partition")
class Elect(Action, frozen=True):
    """Elect the preferred leader of a partition; `unclean`: any live replica if it has no
    leader."""

    partition: Annotated[PartitionName, PARTITION]
    unclean: Annotated[bool, Flag()] = False

    def do(self, stage: Stage) -> None:
        topic, number = self.partition

        def on_answer(answer: Any) -> None:
            try:
                stage.verbs.check_elected(topic, number, answer)
            except ClusterError as error:
                stage.refuse(f"elect: {error}")

        stage.verbs.elect(topic, number, self.unclean, on_answer)
