"""A cluster of one broker for tests of groups: real log, timers and image; the test sets the time.

It stands in for Broker where a test is about groups alone: a test can have an append fail, or
hold it back and commit it later, which no real broker does when asked.  test_real_brokers.py runs
the main stories on three real brokers.
"""

from __future__ import annotations

from random import Random
from typing import Any

from kcluster.broker import handlers
from kcluster.broker.coordinator import GroupCoordinator
from kcluster.broker.registry import PARKED, SERVED_APIS
from kcluster.config.kafka.definitions import BrokerConfig, TopicConfig
from kcluster.contract import Event, NoteId, Request
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
    BrokerRegistration,
    PartitionRecord,
    PartitionRegistration,
    RegisterBrokerRecord,
    TopicRecord,
)
from kcluster.partition.log.log import Log
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey, codec
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from kcluster.protocol.releases import latest
from kcluster.timers import Timers

assert handlers.__all__, "importing them registers them"

BROKER_ID = 1
PARTITIONS = 4


class LeaderReplica:
    """What the coordinator reads of a replica."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.high_watermark = log.log_end_offset


class StandInBroker:
    """`disk` outlives it, as a disk does a process."""

    def __init__(self, disk: dict[int, Log] | None = None, now_ms: int = 0, **config: Any) -> None:
        self.node_id = BROKER_ID
        self.now_ms = now_ms
        names = {name.replace("_", "."): value for name, value in config.items()}
        self.config = BrokerConfig.resolve("kafka", names)
        self.image = MetadataImage()
        self.rng = Random(7)
        self.timers = Timers()
        self.events: list[Event] = []
        self.answers: dict[int, Any] = {}
        self.asked: list[tuple[Any, Any]] = []
        self.disk = {p: Log(bytes(16), p) for p in range(PARTITIONS)} if disk is None else disk
        self.replicas = {p: LeaderReplica(log) for p, log in self.disk.items()}
        self.append_error = ErrorCode.NONE
        self.held: list[tuple[int, Any]] | None = None
        self._correlation_id = 0
        self.image.apply(
            RegisterBrokerRecord(BrokerRegistration(BROKER_ID, 0, "h", 9, None, False))
        )
        self.release = latest()
        self.coordinator = GroupCoordinator(self)

    # ------------------------------------------------------------- what the coordinator uses

    def reply(self, request: Request, body: Any) -> None:
        assert request.correlation_id not in self.answers, "answered twice"
        _round_trip(request, body)
        self.answers[request.correlation_id] = body

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId:
        self.events.append(event)
        return (BROKER_ID, len(self.events))

    def ask_controller(self, body: Any, on_answer: Any, timeout_ms: int, now_ms: int) -> None:
        self.asked.append((body, on_answer))

    def leader_replica(self, topic: str, partition: int) -> Any:
        assert topic == GROUP_METADATA_TOPIC
        return self.replicas.get(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def append_internal(
        self, topic: str, partition: int, records: bytearray, on_committed: Any, now_ms: int
    ) -> None:
        if self.append_error is not ErrorCode.NONE:
            on_committed(self.append_error, now_ms)
            return
        log = self.disk[partition]
        appended = log.append_as_leader(records, 0, now_ms, COMPACTED)
        assert appended.error == ErrorCode.NONE, appended
        if self.held is None:
            self.replicas[partition].high_watermark = log.log_end_offset
            on_committed(ErrorCode.NONE, now_ms)
        else:
            self.held.append((partition, on_committed))

    # -------------------------------------------------------------------- what a test does

    def append_held(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Commit what was held back, or fail it."""
        held, self.held = self.held or [], None
        for partition, on_committed in held:
            if error is ErrorCode.NONE:
                replica = self.replicas[partition]
                replica.high_watermark = replica.log.log_end_offset
            on_committed(error, self.now_ms)

    def create_topic(self, name: str, partitions: int, topic_id: bytes | None = None) -> None:
        topic_id = (len(self.image.topics) + 1).to_bytes(16) if topic_id is None else topic_id
        self.image.apply(TopicRecord(name, topic_id))
        for index in range(partitions):
            self.image.apply(
                PartitionRecord(
                    PartitionRegistration(
                        topic_id, index, (BROKER_ID,), (BROKER_ID,), BROKER_ID, 0, 0
                    )
                )
            )

    def elect_everywhere(self) -> None:
        for partition in self.disk:
            self.coordinator.on_elected(partition, self.now_ms)

    def at(self, now_ms: int) -> None:
        """Let time pass until `now_ms`, one deadline after the other."""
        while (next_ms := self.timers.next_ms) <= now_ms:
            self.now_ms = next_ms
            self.timers.run_due(next_ms)
        self.now_ms = now_ms

    def send(
        self, body: Any, version: int | None = None, client_id: str = "c", wire: bool = True
    ) -> Request:
        """Give a request to its handler; the answer, now or later, is in `answer(request)`."""
        name = type(body).__name__.removesuffix("Request")
        api_key = _api_key(name)
        served = SERVED_APIS[api_key]
        version = served.max_version if version is None else version
        assert APIS[api_key].all_versions[0] <= version <= served.max_version
        self._correlation_id += 1
        if wire:
            encoded = b"".join(bytes(part) for part in codec(api_key, version).encode_request(body))
            body = codec(api_key, version).decode_request(memoryview(bytearray(encoded)), 0)
        request = Request(1, api_key, version, self._correlation_id, client_id, body)
        handler: Any = served.handler  # typed for Broker
        answer = handler(self, request, self.now_ms)
        if answer is not PARKED:
            self.reply(request, answer)
        return request

    def answer(self, request: Request) -> Any:
        """The answer, or None while the request is parked."""
        return self.answers.get(request.correlation_id)

    def ask(self, body: Any, version: int | None = None) -> Any:
        """Send and return the answer, which must come at once."""
        answer = self.answer(self.send(body, version))
        assert answer is not None, "parked"
        return answer


def _api_key(name: str) -> ApiKey:
    snake = "".join(f"_{c}" if c.isupper() else c.upper() for c in name).lstrip("_")
    return ApiKey[snake]


def _round_trip(request: Request, body: Any) -> None:
    """Every answer can be written in the version that was asked."""
    found = codec(request.api_key, request.api_version)
    encoded = b"".join(bytes(part) for part in found.encode_response(body))
    found.decode_response(memoryview(bytearray(encoded)), 0)


COMPACTED = TopicConfig(cleanup_policy=("compact",))


def fresh_broker(**config: Any) -> StandInBroker:
    """A broker that leads all of __consumer_offsets and one topic, `orders`, of six partitions."""
    broker = StandInBroker(**config)
    broker.create_topic(GROUP_METADATA_TOPIC, PARTITIONS)
    broker.create_topic("orders", 6)
    broker.elect_everywhere()
    return broker


def restarted(old: StandInBroker, **config: Any) -> StandInBroker:
    """Another process that leads the same logs: a failover."""
    broker = StandInBroker(old.disk, old.now_ms, **config)
    broker.image = old.image
    broker.elect_everywhere()
    return broker


def code_of(value: int) -> ErrorCode:
    """The code with this number."""
    return next(code for code in ErrorCode if code == value)


# ------------------------------------------------------------------------------------- members


class Consumer:
    """A member as a client library would be one: joins with its id, syncs, heartbeats."""

    def __init__(
        self,
        broker: StandInBroker,
        group: str = "g",
        instance_id: str | None = None,
        protocols: dict[str, bytes] | None = None,
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        protocol_type: str = "consumer",
        name: str = "c",
    ) -> None:
        self.broker = broker
        self.group = group
        self.instance_id = instance_id
        self.protocols = protocols or {"range": subscription("orders")}
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocol_type = protocol_type
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.joining: Request | None = None
        self.syncing: Request | None = None

    def join(self, version: int = 9) -> Consumer:
        """Send JoinGroup; with MEMBER_ID_REQUIRED, once more with the id."""
        self.joining = self._send_join(version)
        answer = self.broker.answer(self.joining)
        if answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.joining = self._send_join(version)
        return self

    def _send_join(self, version: int) -> Request:
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol
        return self.broker.send(
            m.JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=self.session_timeout_ms,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type=self.protocol_type,
                protocols=[protocol(name=n, metadata=d) for n, d in self.protocols.items()],
            ),
            version,
            client_id=self.name,
        )

    @property
    def joined(self) -> Any:
        """The answer to JoinGroup, or None while it waits; takes over id and generation."""
        assert self.joining is not None
        answer = self.broker.answer(self.joining)
        if answer is not None and answer.error_code == ErrorCode.NONE:
            self.member_id = answer.member_id
            self.generation = answer.generation_id
        return answer

    def sync(self, assignment: dict[str, bytes] | None = None, version: int = 5) -> Consumer:
        one = m.SyncGroupRequest.SyncGroupRequestAssignment
        self.syncing = self.broker.send(
            m.SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type=self.protocol_type,
                protocol_name=next(iter(self.protocols)),
                assignments=[one(member_id=k, assignment=v) for k, v in (assignment or {}).items()],
            ),
            version,
        )
        return self

    @property
    def synced(self) -> Any:
        assert self.syncing is not None
        return self.broker.answer(self.syncing)

    def heartbeat(self, generation: int | None = None) -> ErrorCode:
        answer = self.broker.ask(
            m.HeartbeatRequest(
                group_id=self.group,
                generation_id=self.generation if generation is None else generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
            )
        )
        return code_of(answer.error_code)

    def leave(self, version: int = 5) -> ErrorCode:
        identity = m.LeaveGroupRequest.MemberIdentity
        if version < 3:
            answer = self.broker.ask(
                m.LeaveGroupRequest(group_id=self.group, member_id=self.member_id), version
            )
            return code_of(answer.error_code)
        answer = self.broker.ask(
            m.LeaveGroupRequest(
                group_id=self.group,
                members=[identity(member_id=self.member_id, group_instance_id=self.instance_id)],
            ),
            version,
        )
        return code_of(answer.error_code or answer.members[0].error_code)

    def commit(self, offset: int, partition: int = 0, topic: str = "orders") -> ErrorCode:
        answer = self.broker.ask(self.commit_request(offset, partition, topic), 9)
        return code_of(answer.topics[0].partitions[0].error_code)

    def commit_request(self, offset: int, partition: int = 0, topic: str = "orders") -> Any:
        return commit_request(
            self.group,
            offset,
            partition,
            topic,
            generation=self.generation,
            member_id=self.member_id,
            instance_id=self.instance_id,
        )


def commit_request(
    group: str,
    offset: int,
    partition: int = 0,
    topic: str = "orders",
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
    metadata: str = "",
) -> m.OffsetCommitRequest:
    return m.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[
            m.OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    m.OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_metadata=metadata,
                    )
                ],
            )
        ],
    )


def committed(broker: StandInBroker, group: str, partition: int = 0, topic: str = "orders") -> int:
    """The group's offset, by OffsetFetch; -1 for none."""
    asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group,
        topics=[
            m.OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
        ],
    )
    answer = broker.ask(m.OffsetFetchRequest(groups=[asked]), 9)
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)


def subscription(*topics: str) -> bytes:
    """ConsumerProtocolSubscription, version 0."""
    names = b"".join(len(t).to_bytes(2) + t.encode() for t in topics)
    return b"\0\0" + len(topics).to_bytes(4) + names + b"\xff\xff\xff\xff"


def settle(*consumers: Consumer) -> None:
    """All have been answered their JoinGroup: the leader assigns, all sync."""
    answers = [consumer.joined for consumer in consumers]
    assert all(a is not None and a.error_code == ErrorCode.NONE for a in answers), answers
    leader = next(c for c, a in zip(consumers, answers, strict=True) if a.leader == c.member_id)
    for consumer in consumers:
        if consumer is not leader:
            consumer.sync()
    leader.sync({c.member_id: f"part of {c.name}".encode() for c in consumers})
    assert all(c.synced.error_code == ErrorCode.NONE for c in consumers)
