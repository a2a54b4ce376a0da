"""The membership of a Kafka Streams application's client in a streams group (KIP-1071).

Owns: StreamsGroupHeartbeat; the topology that it declares, which is one subtopology without state.
Never: decides when a heartbeat is sent (epoch_membership.py), has standby or warm-up tasks.
Kafka: StreamsMembershipManager, StreamsGroupHeartbeatRequestManager.

Task N of the subtopology has partition N of each source topic.  DIFFERS: the statuses in answers,
such as MISSING_SOURCE_TOPICS, are not acted on; Kafka Streams ends after some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcluster.clients.consumer.epoch_membership import JOIN_EPOCH, EpochMembership
from kcluster.clients.ledger import Partition
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.messages import Message

if TYPE_CHECKING:
    from kcluster.clients.consumer.epoch_membership import HeartbeatResponse

SUBTOPOLOGY: Final = "0"
TOPOLOGY_EPOCH: Final = 0


class StreamsMembership(EpochMembership):
    """The membership of one client with group.protocol=streams."""

    api = ApiKey.STREAMS_GROUP_HEARTBEAT
    _tasks: tuple[int, ...] = ()
    """The active tasks of the last assignment."""

    def _heartbeat(self, epoch: int, sends_all: bool, owned: list[Partition] | None) -> Message:
        settings = self._settings
        body = m.StreamsGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member.member_id,
            member_epoch=epoch,
            instance_id=settings.group_instance_id or None,
        )
        if epoch == JOIN_EPOCH:  # later the coordinator refuses a topology
            body.rack_id = settings.client_rack or None
            body.rebalance_timeout_ms = settings.max_poll_interval_ms
            body.topology = self._topology()
            body.process_id = self.member.member_id
            body.client_tags = []
        if owned is not None:
            tasks = sorted({number for _, number in owned})
            entry = m.StreamsGroupHeartbeatRequest.TaskIds
            body.active_tasks = [entry(SUBTOPOLOGY, tasks)] if tasks else []
            body.standby_tasks = []
            body.warmup_tasks = []
        return body

    def _topology(self) -> m.StreamsGroupHeartbeatRequest.Topology:
        subtopology = m.StreamsGroupHeartbeatRequest.Subtopology(
            subtopology_id=SUBTOPOLOGY,
            source_topics=sorted(self._topics),
            source_topic_regex=[],
            state_changelog_topics=[],
            repartition_sink_topics=[],
            repartition_source_topics=[],
            copartition_groups=[],
        )
        return m.StreamsGroupHeartbeatRequest.Topology(TOPOLOGY_EPOCH, [subtopology])

    def _receive(self, response: HeartbeatResponse) -> bool:
        assert isinstance(response, m.StreamsGroupHeartbeatResponse)
        tasks = response.active_tasks
        if tasks is None:
            return False
        self._tasks = tuple(number for each in tasks for number in each.partitions)
        return True

    def _wanted(self) -> list[Partition] | None:
        counts = {topic: self._metadata.partition_count(topic) for topic in self._topics}
        if 0 in counts.values() or max(self._tasks, default=-1) >= max(counts.values()):
            return None
        return [
            (topic, number)
            for topic in self._topics
            for number in self._tasks
            if number < counts[topic]
        ]
