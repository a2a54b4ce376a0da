"""One real broker that coordinates every group; the test is its controller and its follower.

    broker = fresh_broker()
    broker.pause_follower()        # appends are in the log, and wait for acks=all
    broker.drop_follower()         # the ISR is below min.insync.replicas: appends are refused
    broker.resume_follower()       # what waits is committed
    broker = restarted(broker)     # another process on the same disk: a failover

Owns: GroupBroker, which leads all of __consumer_offsets with broker 2 as the only follower, and
what the test does as broker 2.  Never: knows a member (members.py) or asserts what a test is about.

It stands on rig/one_broker.py, because these stories are told to the millisecond and look into the
coordinator.  test_real_brokers.py has those that need a cluster.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kcluster.broker.coordinator import GroupCoordinator
from kcluster.contract import PeerRequest, Request
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
    GROUP_RESOURCE,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
)
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from kcluster.timers import Timers
from tests.rig.one_broker import OneBroker, broker_records, fetch_body, topic_config, topic_records
from tests.rig.requests import api_of, fetch_partition

PARTITIONS = 4
GROUP_FEATURES = (GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION)
"""In force, as in a cluster of 4.3.1."""
FOLLOWER = 2
FOLLOWER_STATE = m.FetchRequest.ReplicaState(FOLLOWER, FOLLOWER)
"""Broker 2 in the life that the image has."""


class GroupBroker(OneBroker):
    """Broker 1 at time 0, without any topic.  Each request comes on a connection of its own."""

    def __init__(
        self,
        *records: list[MetadataRecord],
        now_ms: int = 0,
        follower_fetches: bool = True,
        **more: Any,
    ) -> None:
        self.follower_fetches = follower_fetches
        super().__init__(*records or (broker_records(1, FOLLOWER),), now_ms=now_ms, **more)

    @property
    def coordinator(self) -> GroupCoordinator:
        return self.broker.coordinator

    @property
    def timers(self) -> Timers:
        return self.broker.timers

    @property
    def image(self) -> MetadataImage:
        return self.broker.image

    # ------------------------------------------------------------------------------ asking

    def post(self, body: Any, version: int | None = None, client_id: str = "c") -> Request:
        """Send a request, in the latest version that is served unless another is named."""
        return self.send(*api_of(body, version), body, client_id, connection=self._sent + 1)

    def call(self, body: Any, version: int | None = None) -> Any:
        """Send a request and return the answer, which must come at once."""
        answer = self.answer(self.post(body, version))
        assert answer is not None, "parked"
        return answer

    # ------------------------------------------------------------------ as the controller

    def create_topic(self, name: str, partitions: int) -> None:
        """A topic that this broker leads alone."""
        self.publish(topic_records(name, *[(1,)] * partitions))

    def delete_topic(self, name: str) -> None:
        self.publish([RemoveTopicRecord(self.image.topics[name].topic_id)])

    def create_offsets_topic(self, leader: int = 1) -> None:
        """__consumer_offsets, on both brokers; an append is refused when one of them is out."""
        name, isr = GROUP_METADATA_TOPIC, (leader, 1 + FOLLOWER - leader)
        configs = {"cleanup.policy": "compact", "min.insync.replicas": "2"}
        self.publish(
            topic_records(name, *[isr] * PARTITIONS),
            [topic_config(name, key, value) for key, value in configs.items()],
        )

    def set_group_configs(self, group_id: str, configs: dict[str, str]) -> None:
        self.publish(
            [ConfigRecord(GROUP_RESOURCE, group_id, name, value) for name, value in configs.items()]
        )

    def resign(self) -> None:
        """Broker 2 is elected everywhere."""
        self.publish(elections(self.image, leader=FOLLOWER))

    # -------------------------------------------------------------------- as the follower

    def pause_follower(self) -> None:
        """It is in the ISR and does not fetch: appends wait, and time out."""
        self.follower_fetches = False

    def drop_follower(self) -> None:
        """It is out of the ISR: appends are refused with NOT_ENOUGH_REPLICAS."""
        self.pause_follower()
        self.publish(of_offsets_topic(self.image, isr=(1,)))

    def resume_follower(self) -> None:
        """It is in the ISR, and fetches what there is: what waits is committed."""
        self.follower_fetches = True
        self.publish(of_offsets_topic(self.image, isr=(1, FOLLOWER)))

    def _step(self, event: Any) -> list[Any]:
        replies = super()._step(event)
        if self.follower_fetches:
            for partition in self.coordinator.shards:
                replies += self._fetch(partition)
        return replies

    def _fetch(self, partition: int) -> list[Any]:
        """Fetch from the log's end, if the follower has not come so far."""
        replica = self.broker.leader_replica(GROUP_METADATA_TOPIC, partition)
        assert isinstance(replica, Replica), replica
        end_offset = replica.log.log_end_offset
        if replica.followers[FOLLOWER].log_end_offset == end_offset:
            return []
        body = fetch_body(fetch_partition(partition, end_offset), topic=GROUP_METADATA_TOPIC)
        body.replica_state = FOLLOWER_STATE
        return super()._step(PeerRequest(FOLLOWER, 1, body))


def fresh_broker(**more: Any) -> GroupBroker:
    """It leads all of __consumer_offsets, and one topic, `orders`, of six partitions."""
    broker = GroupBroker(**more)
    broker.publish([FeatureLevelRecord(name, 1) for name in GROUP_FEATURES])
    broker.create_offsets_topic()
    broker.create_topic("orders", 6)
    return broker


def restarted(old: GroupBroker, **more: Any) -> GroupBroker:
    """The next life of the broker on its disk, elected everywhere: a failover."""
    elected = elections(old.image, leader=1)
    return GroupBroker(old.metadata, elected, disk=old.disk, now_ms=old.now_ms, **more)


def of_offsets_topic(image: MetadataImage, **changes: Any) -> list[MetadataRecord]:
    """A change of every partition of __consumer_offsets."""
    return [
        PartitionRecord(replace(one, partition_epoch=one.partition_epoch + 1, **changes))
        for one in image.topics[GROUP_METADATA_TOPIC].partitions
    ]


def elections(image: MetadataImage, leader: int) -> list[MetadataRecord]:
    """An election in every partition of __consumer_offsets."""
    epoch = image.topics[GROUP_METADATA_TOPIC].partitions[0].leader_epoch + 1
    return of_offsets_topic(image, leader=leader, leader_epoch=epoch)
