"""ShareFetch and ShareAcknowledge of one member, against one broker or a cluster.

Owns: `ShareMember`, the bodies that it sends, `ClusterMember`, which is one in a cluster, `shared`,
a broker that leads `orders` and knows share groups, `cluster`, where broker 1 does.  Never: runs a
group coordinator, so nobody assigns partitions.
"""

from __future__ import annotations

from typing import Any

from kcluster.metadata.records import GROUP_RESOURCE, ConfigRecord, FeatureLevelRecord
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.share_state.share_state_rig import ShareStateRig
from tests.rig.one_broker import TOPIC, OneBroker, leader, topic_id

GROUP = "billing"
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

Acks = dict[int, list[tuple[int, int, Any]]]
"""By partition: (first offset, last offset, type or list of types)."""


def shared(partitions: int = 1, *, reset: str = "earliest", **configs: Any) -> OneBroker:
    """Broker 1 leads `orders`, and its groups read it from the beginning.  Nothing is persisted."""
    broker = leader(partitions, **{"group.share.persister.class.name": ""} | configs)
    broker.publish([FeatureLevelRecord("share.version", 1)])
    if reset:
        configure(broker, "share.auto.offset.reset", reset)
    return broker


def configure(broker: OneBroker, name: str, value: str) -> None:
    """Set a config of the group."""
    broker.publish([ConfigRecord(GROUP_RESOURCE, GROUP, name, value)])


def cluster(*batches: int, start_offset: int = 0, **more: Any) -> ShareStateRig:
    """`orders`-0 with batches of so many records; its share state has been initialized."""
    rig = ShareStateRig(**more)
    for size in batches:
        answer = rig.produce(*[b"v"] * size, to=1)
        rig.wait(answer.has_come, "append")
    assert rig.initialize(start_offset=start_offset) == "NONE"
    return rig


def configure_group(rig: ShareStateRig, name: str, value: str) -> None:
    """Set a config of group g."""
    kind = m.IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(name, 0, value)
    body = kind([kind.AlterConfigsResource(GROUP_RESOURCE, "g", [config])])
    answer = rig.ask_and_wait(1, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)
    assert not answer.responses[0].error_code, answer
    rig.run_for(100)


class ShareMember:
    """A member's session with one broker; each request has the session's next epoch."""

    group = GROUP
    max_wait_ms = 0

    def __init__(
        self, broker: OneBroker, member_id: str = "a", connection: int = 1, version: int = 2
    ) -> None:
        self.broker = broker
        self.member_id = member_id
        self.connection = connection
        self.version = version
        self.epoch = 0

    def _send(self, api_key: ApiKey, body: Any) -> Any:
        return self.broker.send(api_key, self.version, body, connection=self.connection)

    def _outcome(self, sent: Any) -> Any:
        return self.broker.answer(sent)

    def _id_of(self, topic: str) -> bytes:
        return topic_id(topic)

    def fetch(
        self,
        *partitions: int,
        acks: Acks | None = None,
        epoch: int | None = None,
        forget: tuple[int, ...] = (),
        topic: str = TOPIC,
        **more: Any,
    ) -> Any:
        """The answer to a ShareFetch; None while it waits.  By default it takes what there is."""
        return self._outcome(
            self.send_fetch(*partitions, acks=acks, epoch=epoch, forget=forget, topic=topic, **more)
        )

    def send_fetch(
        self,
        *partitions: int,
        acks: Acks | None = None,
        epoch: int | None = None,
        forget: tuple[int, ...] = (),
        topic: str = TOPIC,
        **more: Any,
    ) -> Any:
        acks = acks or {}
        request = m.ShareFetchRequest
        fields = {
            "max_wait_ms": self.max_wait_ms,
            "max_bytes": 1 << 20,
            "min_bytes": 1,
            "max_records": 500,
            "batch_size": 500,
        }
        body = request(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self._next(epoch),
            topics=_topics(
                self._id_of(topic),
                [
                    request.FetchPartition(
                        partition_index=index,
                        acknowledgement_batches=_batches(request, acks.get(index, [])),
                    )
                    for index in dict.fromkeys([*partitions, *acks])
                ],
                request.FetchTopic,
            ),
            forgotten_topics_data=(
                [request.ForgottenTopic(self._id_of(topic), list(forget))] if forget else []
            ),
            **(fields | more),
        )
        return self._send(ApiKey.SHARE_FETCH, body)

    def acknowledge(
        self, acks: Acks, *, epoch: int | None = None, renew: bool = False, topic: str = TOPIC
    ) -> Any:
        """The answer to a ShareAcknowledge; None while it waits."""
        request = m.ShareAcknowledgeRequest
        body = request(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self._next(epoch),
            is_renew_ack=renew,
            topics=_topics(
                self._id_of(topic),
                [
                    request.AcknowledgePartition(index, _batches(request, batches))
                    for index, batches in acks.items()
                ],
                request.AcknowledgeTopic,
            ),
        )
        return self._outcome(self._send(ApiKey.SHARE_ACKNOWLEDGE, body))

    def leave(self) -> Any:
        """End the session."""
        return self.acknowledge({}, epoch=-1)

    def _next(self, epoch: int | None) -> int:
        if epoch is not None:
            return epoch
        self.epoch += 1
        return self.epoch - 1


class ClusterMember(ShareMember):
    """A member of group `g` at one broker of a cluster; what it asks is answered in time."""

    group = "g"
    max_wait_ms = 1_000
    patience_ms = 600_000

    def __init__(self, rig: ShareStateRig, at: int, member_id: str = "a") -> None:
        self.rig = rig
        self.line = rig.line(at)
        self.member_id = member_id
        self.version = 2
        self.epoch = 0

    def _send(self, api_key: ApiKey, body: Any) -> Any:
        self.line.send(api_key, self.version, body)

    def _outcome(self, _sent: Any) -> Any:
        return self.line.outcome(self.patience_ms)

    def _id_of(self, _topic: str) -> bytes:
        return self.rig.topic_id


def _topics(id_: bytes, partitions: list[Any], kind: Any) -> list[Any]:
    return [kind(id_, partitions)] if partitions else []


def _batches(request: Any, batches: list[tuple[int, int, Any]]) -> list[Any]:
    return [
        request.AcknowledgementBatch(first, last, [types] if isinstance(types, int) else types)
        for first, last, types in batches
    ]


def acquired(answer: Any, partition: int = 0) -> list[tuple[int, int, int]]:
    """(first offset, last offset, delivery count) of what a ShareFetch has acquired."""
    return [
        (some.first_offset, some.last_offset, some.delivery_count)
        for data in partitions_of(answer)
        if data.partition_index == partition
        for some in data.acquired_records
    ]


def partitions_of(answer: Any) -> list[Any]:
    return [data for topic in answer.responses for data in topic.partitions]


def errors(answer: Any) -> dict[int, str]:
    """Per partition the error of a ShareFetch, or of a ShareAcknowledge."""
    return {data.partition_index: ErrorCode(data.error_code).name for data in partitions_of(answer)}


def acknowledged(answer: Any) -> dict[int, str]:
    """Per partition the error of acknowledgements within a ShareFetch."""
    return {
        data.partition_index: ErrorCode(data.acknowledge_error_code).name
        for data in partitions_of(answer)
    }


def error(answer: Any) -> str:
    """Of the whole request."""
    return ErrorCode(answer.error_code).name
