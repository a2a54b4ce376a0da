"""A consumer's membership in a consumer group (KIP-848).

Owns: ConsumerGroupHeartbeat.  Never: decides when it is sent (epoch_membership.py).
Kafka: ConsumerMembershipManager, ConsumerHeartbeatRequestManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from re import escape
from typing import TYPE_CHECKING

from kcluster.clients.consumer.epoch_membership import EpochMembership
from kcluster.clients.consumer.group_protocol import by_topic
from kcluster.clients.ledger import Partition
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.codec.schema import ZERO_UUID
from kcluster.protocol.messages import Message

if TYPE_CHECKING:
    from kcluster.clients.consumer.epoch_membership import HeartbeatResponse


class ConsumerMembership(EpochMembership):
    """The membership of one consumer with group.protocol=consumer."""

    api = ApiKey.CONSUMER_GROUP_HEARTBEAT
    _assigned: tuple[m.ConsumerGroupHeartbeatResponse.TopicPartitions, ...] = ()
    _ids: Mapping[str, bytes] = {}
    """The ids of the topics that the member has, as they were assigned: one that was deleted and
    created again has another id by now.  Kafka: LocalAssignment."""

    def _heartbeat(self, epoch: int, sends_all: bool, owned: list[Partition] | None) -> Message:
        settings = self._settings
        names = [] if self._by_pattern else list(self._topics)
        pattern = "|".join(map(escape, self._topics)) if self._by_pattern else None
        entry = m.ConsumerGroupHeartbeatRequest.TopicPartitions
        return m.ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member.member_id,
            member_epoch=epoch,
            instance_id=settings.group_instance_id or None,
            rack_id=(settings.client_rack or None) if sends_all else None,
            rebalance_timeout_ms=settings.max_poll_interval_ms if sends_all else -1,
            subscribed_topic_names=names if sends_all else None,
            subscribed_topic_regex=pattern if sends_all else None,
            topic_partitions=None
            if owned is None
            else [
                entry(self._ids.get(topic, ZERO_UUID), numbers)
                for topic, numbers in by_topic(owned).items()
            ],
        )

    def _receive(self, response: HeartbeatResponse) -> bool:
        assert isinstance(response, m.ConsumerGroupHeartbeatResponse)
        if response.assignment is None:
            return False
        self._assigned = tuple(response.assignment.topic_partitions)
        return True

    def _take(self, wanted: list[Partition], now_ms: int) -> None:
        ids = {
            self._metadata.topic_name(one.topic_id) or "": one.topic_id for one in self._assigned
        }
        if ids != self._ids:
            self._sent_owned = None  # the next heartbeat reports the new ids
        self._ids = ids
        super()._take(wanted, now_ms)

    def _wanted(self) -> list[Partition] | None:
        wanted: list[Partition] = []
        for topic in self._assigned:
            name = self._metadata.topic_name(topic.topic_id)
            if name is None:
                return None
            wanted += [(name, number) for number in topic.partitions]
        return wanted
