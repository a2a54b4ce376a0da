"""Share groups in virtual time: three brokers, and members whose heartbeats the test sends.

    rig = ShareGroupRig()
    a = rig.member("a")
    a.join(); rig.settle(a)
    assert a.owned == {"orders": [0]}

Owns: ShareGroupRig, ShareGroupMember.  Never: asserts what a test is about.
"""

from __future__ import annotations

from typing import Any

from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.protocol import messages as m
from kcluster.protocol.apis import VERSIONS, ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from tests.broker.coordinator.share_state.share_state_rig import ShareStateRig
from tests.rig.cluster import TOPIC

GROUP = "g"


class ShareGroupRig(ShareStateRig):
    """Broker 1 leads `orders`, 2 coordinates share state, 3 groups; a cut between these two stops
    nothing else."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.assign_topic(GROUP_METADATA_TOPIC, [[3, 1]])
        self.run_for(1_000)

    @property
    def group_coordinator(self) -> int:
        return self.partition(GROUP_METADATA_TOPIC).leader or -1

    @property
    def group(self) -> ShareGroup:
        found = self.node(self.group_coordinator).coordinator.group(GROUP)
        assert isinstance(found, ShareGroup), found
        return found

    def member(self, member_id: str, *topics: str) -> ShareGroupMember:
        return ShareGroupMember(self, member_id, topics or (TOPIC,))

    def ask_group(self, api: ApiKey, body: Any) -> Any:
        """Ask the group's coordinator, in the newest version."""
        return self.ask_and_wait(self.group_coordinator, api, VERSIONS[api][1], body)

    def settle(self, *members: ShareGroupMember) -> None:
        """Heartbeats in turn, until none changes anything; the assignment interval passes before
        each round."""
        for _ in range(10):
            before = [(one.epoch, one.owned) for one in members]
            self.run_for(1_000)
            for member in members:
                assert member.beat() == "NONE", member.answer
            if [(one.epoch, one.owned) for one in members] == before:
                return
        raise AssertionError("the group does not settle")

    def described(self) -> Any:
        body = m.ShareGroupDescribeRequest(group_ids=[GROUP])
        return self.ask_group(ApiKey.SHARE_GROUP_DESCRIBE, body).groups[0]

    def offsets(self, *topics: str, via: int | None = None) -> Any:
        """DescribeShareGroupOffsets: (start offset, lag) by topic and partition."""
        kind = m.DescribeShareGroupOffsetsRequest
        wanted = None
        if topics:
            row = kind.DescribeShareGroupOffsetsRequestTopic
            wanted = [row(topic_name=name, partitions=[0]) for name in topics]
        group = kind.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=wanted)
        api = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
        answer = self.ask_and_wait(
            via or self.group_coordinator, api, 1, kind(groups=[group])
        ).groups[0]
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        return {
            (topic.topic_name, one.partition_index): (one.start_offset, one.lag)
            for topic in answer.topics
            for one in topic.partitions
        }

    def alter(self, start_offset: int, topic: str = TOPIC, partition: int = 0) -> str:
        """AlterShareGroupOffsets: the error of the one partition, or of all."""
        kind = m.AlterShareGroupOffsetsRequest
        cell = kind.AlterShareGroupOffsetsRequestPartition(partition, start_offset)
        row = kind.AlterShareGroupOffsetsRequestTopic(topic, [cell])
        answer = self.ask_group(ApiKey.ALTER_SHARE_GROUP_OFFSETS, kind(GROUP, [row]))
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        return ErrorCode(answer.responses[0].partitions[0].error_code).name

    def delete_offsets(self, topic: str = TOPIC) -> str:
        """DeleteShareGroupOffsets: the error of the one topic, or of all."""
        kind = m.DeleteShareGroupOffsetsRequest
        row = kind.DeleteShareGroupOffsetsRequestTopic(topic)
        answer = self.ask_group(ApiKey.DELETE_SHARE_GROUP_OFFSETS, kind(GROUP, [row]))
        code = answer.error_code or (answer.responses[0].error_code if answer.responses else 0)
        return ErrorCode(code).name

    def delete_group(self) -> str:
        body = m.DeleteGroupsRequest(groups_names=[GROUP])
        return ErrorCode(self.ask_group(ApiKey.DELETE_GROUPS, body).results[0].error_code).name

    def listed(self, **filters: Any) -> list[tuple[str, str, str]]:
        """(group, type, state) of each group."""
        answer = self.ask_group(ApiKey.LIST_GROUPS, m.ListGroupsRequest(**filters))
        return [(one.group_id, one.group_type, one.group_state) for one in answer.groups]


class ShareGroupMember:
    """One member.  `owned`: what it has, by topic name; `epoch`: its member epoch."""

    def __init__(self, rig: ShareGroupRig, member_id: str, topics: tuple[str, ...]) -> None:
        self.rig = rig
        self.member_id = member_id
        self.topics = list(topics)
        self.epoch = 0
        self.owned: dict[str, list[int]] = {}
        self.answer: Any = None
        """The last one."""

    def join(self, **more: Any) -> str:
        self.epoch, self.owned = 0, {}
        return self.beat(subscribed_topic_names=self.topics, **more)

    def leave(self) -> str:
        self.epoch = -1
        return self.beat()

    def beat(self, **more: Any) -> str:
        """A heartbeat; the error's name."""
        fields = {"member_id": self.member_id, "member_epoch": self.epoch, **more}
        body = m.ShareGroupHeartbeatRequest(group_id=GROUP, **fields)
        answer = self.answer = self.rig.ask_group(ApiKey.SHARE_GROUP_HEARTBEAT, body)
        if not answer.error_code:
            self.epoch = answer.member_epoch
        if answer.assignment is not None:
            names = self.rig.node(self.rig.group_coordinator).image.topic_names
            self.owned = {
                names[one.topic_id]: list(one.partitions)
                for one in answer.assignment.topic_partitions
            }
        return ErrorCode(answer.error_code).name
