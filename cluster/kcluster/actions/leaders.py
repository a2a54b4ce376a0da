"""Actions on leadership: moving leaders, elections.

Owns: these actions.  Never: elects (the controller does, on a request of operations/verbs.py).
Kafka: kafka-leader-election.sh; kafka-reassign-partitions.sh for a preferred leader by hand.
"""

from __future__ import annotations

from typing import Annotated

from kcluster.actions.base import Action, action
from kcluster.actions.kinds import BROKERS, PARTITION
from kcluster.actions.menu import MenuItem
from kcluster.actions.recording import Recording, these
from kcluster.actions.stage import Stage
from kcluster.config.files.fields import Flag
from kcluster.events.partitions import LeaderElected
from kcluster.events.reasons import ElectionKind, Requested
from kcluster.operations.errors import ClusterError
from kcluster.operations.names import PartitionName
from kcluster.operations.targets import Targets


@action("move", example="move: {partition: orders-0, to: 2}")
class MoveLeaderAction(Action, frozen=True):
    """Make another broker the leader of a partition; it must be in the ISR."""

    MENU = (
        MenuItem(
            "follower",
            "Move the leader to broker {follower}",
            {"partition": "{partition}", "to": "{follower}"},
        ),
    )

    partition: Annotated[PartitionName, PARTITION, "The partition."]
    to: Annotated[Targets, BROKERS, "Its new leader."]

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.to)[:1]

    def do(self, stage: Stage) -> None:
        to = stage.nodes(self.to)[0]
        stage.verbs.move(*self.partition, to=to)
        stage.is_over_when(lambda: stage.verbs.settled.is_led_by(*self.partition, to))

    RECORDED_FROM = (LeaderElected,)

    @classmethod
    def record(cls, event: LeaderElected, recording: Recording) -> None:
        if _was_requested(event) and event.election is ElectionKind.REQUESTED:
            partition = event.topic, event.partition
            recording.add(cls(partition, these([event.new_leader])), event)


@action("elect", short="partition", example="elect: orders-0")
class Elect(Action, frozen=True):
    """Elect the preferred leader of a partition."""

    MENU = (
        MenuItem("partition", "Elect the preferred leader", "{partition}", ("led",)),
        MenuItem(
            "partition",
            "Elect any live replica (unclean)",
            {"partition": "{partition}", "unclean": True},
            ("leaderless",),
        ),
    )

    partition: Annotated[PartitionName, PARTITION, "The partition."]
    unclean: Annotated[
        bool, Flag(), "Elect any live replica, if the partition has no leader; may lose records."
    ] = False

    def do(self, stage: Stage) -> None:
        topic, number = self.partition

        answered: list[bool] = []
        stage.is_over_when(lambda: bool(answered))

        def on_answer(answer: object) -> None:
            answered.append(True)
            try:
                stage.verbs.check_elected(topic, number, answer)
            except ClusterError as error:
                stage.refuse(f"elect: {error}")

        stage.verbs.elect(topic, number, self.unclean, on_answer)

    RECORDED_FROM = (LeaderElected,)

    @classmethod
    def record(cls, event: LeaderElected, recording: Recording) -> None:
        if _was_requested(event) and event.election is not ElectionKind.REQUESTED:
            partition = event.topic, event.partition
            recording.add(cls(partition, unclean=not event.clean), event)


def _was_requested(event: LeaderElected) -> bool:
    return isinstance(event.reason, Requested)
