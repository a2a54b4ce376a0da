"""Actions on groups: members that are removed, and rebalances, at the coordinator.

Owns: these actions.  Never: sends a request (operations/verbs.py does).
Kafka: Admin.removeMembersFromConsumerGroup.
"""

from __future__ import annotations

from typing import Annotated

from kcluster.actions.base import Action, action
from kcluster.actions.recording import Recording
from kcluster.actions.requests import refused
from kcluster.actions.stage import Stage
from kcluster.config.files.fields import text
from kcluster.events.clients import MembersEvicted, RebalanceRequested


@action("evict", example="evict: {group: billing, member: all}")
class Evict(Action, frozen=True):
    """Make members leave their group, as an administrator may.  A client whose member is gone gets
    UNKNOWN_MEMBER_ID and joins again, as a new member."""

    IS_FAULT = False
    group: Annotated[str, text(), "The group, of any protocol."]
    member: Annotated[
        str,
        text(),
        "A member's id, its static id, its client id, the name of a client of the workload, or"
        " all.",
    ]

    def do(self, stage: Stage) -> None:
        number = stage.client_ids().get(self.member)
        name = self.member if number is None else f"client-{number}"
        stage.verbs.evict(self.group, name, refused(stage, f"evict from {self.group}"))

    RECORDED_FROM = (MembersEvicted,)

    @classmethod
    def record(cls, event: MembersEvicted, recording: Recording) -> None:
        recording.add(cls(event.group, event.member), event)


@action("rebalance", short="group", example="rebalance: billing")
class Rebalance(Action, frozen=True):
    """Make a group rebalance, by a member that joins and leaves at once.  In a classic group every
    member stops and joins again.  In groups of the newer protocols the coordinator computes the
    assignment anew, and only members whose partitions change stop reading them."""

    IS_FAULT = False
    group: Annotated[str, text(), "The group, of any protocol."]

    def do(self, stage: Stage) -> None:
        stage.verbs.rebalance(self.group, refused(stage, f"rebalance of {self.group}"))

    RECORDED_FROM = (RebalanceRequested,)

    @classmethod
    def record(cls, event: RebalanceRequested, recording: Recording) -> None:
        recording.add(cls(event.group), event)
