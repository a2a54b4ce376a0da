"""One real broker and its image, without a cluster: the test plays the controller and all others.

Owns: OneBroker, the metadata records that make its image, and `leader`, which leads `orders` alone.
Never: runs a controller or a second broker (rig/cluster.py does).
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from kcluster.broker.node import BrokerNode
from kcluster.broker.versions import LATEST
from kcluster.config.kafka.definitions import BROKER_CONFIGS, BrokerConfig
from kcluster.contract import (
    CONTROLLER_ID,
    CloseConnection,
    Event,
    Input,
    Note,
    PeerResponse,
    Reply,
    Request,
    Send,
    Tick,
)
from kcluster.metadata.delta import MetadataDelta
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    BrokerRegistration,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
    RegisterBrokerRecord,
    TopicRecord,
)
from kcluster.partition.disk import Disk
from kcluster.principals import BrokerEndpoint
from kcluster.protocol.apis import ApiKey, codec
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.releases import Release
from kcluster.security.sasl.settings import SaslSettings
from tests.rig.requests import fetch_request, produce_request

TOPIC = "orders"
CLUSTER_ID = "kcluster-test-cluster1"


def topic_id(name: str) -> bytes:
    """The id that `name` gets in these tests."""
    return name.encode().ljust(16, b"\0")[:16]


def endpoints_of(broker_id: int) -> tuple[BrokerEndpoint, ...]:
    """The address of a broker."""
    return (BrokerEndpoint("127.0.0.1", 9090 + broker_id),)


def broker_records(*broker_ids: int, fenced: tuple[int, ...] = ()) -> list[MetadataRecord]:
    """Brokers on ports 9090 + id, in rack r<id>; those in `fenced` are fenced."""
    return [
        RegisterBrokerRecord(
            BrokerRegistration(id_, id_, endpoints_of(id_), f"r{id_}", fenced=id_ in fenced)
        )
        for id_ in broker_ids
    ]


def topic_records(
    name: str, *replicas: tuple[int, ...], isr: tuple[int, ...] | None = None, **more: Any
) -> list[MetadataRecord]:
    """A topic with one partition per tuple of replicas; the first of the ISR leads."""
    records: list[MetadataRecord] = [TopicRecord(name, topic_id(name))]
    for index, of_partition in enumerate(replicas):
        in_sync = of_partition if isr is None else isr
        state: dict[str, Any] = {
            "isr": in_sync,
            "leader": in_sync[0],
            "leader_epoch": 5,
            "partition_epoch": 7,
        }
        records.append(
            PartitionRecord(
                PartitionRegistration(
                    topic_id=topic_id(name), partition=index, replicas=of_partition, **state | more
                )
            )
        )
    return records


def topic_config(topic: str, name: str, value: str) -> MetadataRecord:
    return ConfigRecord(TOPIC_RESOURCE, topic, name, value)


def broker_config(broker: str, name: str, value: str) -> MetadataRecord:
    """`broker` "": for all brokers."""
    return ConfigRecord(BROKER_RESOURCE, broker, name, value)


def image_of(*records: list[MetadataRecord]) -> MetadataImage:
    image = MetadataImage()
    for some in records:
        for record in some:
            image.apply(record)
    return image


class OneBroker:
    """Broker 1.  `ask` gives its answer, or None while it waits for the controller.

    `disk`: what an earlier life left; `now_ms`: when this life begins.
    """

    def __init__(
        self,
        *records: list[MetadataRecord],
        disk: Disk | None = None,
        now_ms: int = 1_000,
        release: Release = LATEST,
        sasl: Mapping[str, SaslSettings] = {},
        **configs: str | int | bool,
    ) -> None:
        overrides = {name.replace("_", "."): value for name, value in configs.items()}
        unused = {name: str(overrides.pop(name)) for name in overrides.keys() - BROKER_CONFIGS}
        self.config = BrokerConfig.resolve("kafka", overrides)
        self.disk = Disk() if disk is None else disk
        self.broker = BrokerNode(
            1, self.config, self.disk, endpoints_of(1), "r1", Random(1), CLUSTER_ID, release,
            unused, sasl,
        )  # fmt: skip
        self.now_ms = now_ms
        self.metadata: list[MetadataRecord] = []
        """All records published so far."""
        self.asked: list[Send] = []
        """Questions to the controller that the test has not answered yet."""
        self.events: list[Event] = []
        """What the broker has noted."""
        self.closed: list[CloseConnection] = []
        """The connections that the broker has closed."""
        self._answers: dict[int, Any] = {}
        self._sent = 0
        if records:
            self.publish(*records)

    def publish(self, *records: list[MetadataRecord]) -> None:
        """As the controller: metadata records, which the broker puts into effect at once."""
        published = [record for some in records for record in some]
        self.metadata += published
        self.apply(published, self.now_ms)
        self._step(Tick())

    def apply(self, records: list[MetadataRecord], now_ms: int) -> None:
        """The same, but the broker does not step yet."""
        delta = MetadataDelta(self.broker.image.offset + 1, records)
        self.broker.publisher.apply(delta, now_ms)

    def send(
        self, api_key: ApiKey, version: int, body: Any, client_id: str = "test", connection: int = 1
    ) -> Request:
        """Send a request; `answer(request)` is its answer, now or later.

        Both bodies are also checked to be ones of this version on the wire.
        """
        self._sent += 1
        coded = codec(api_key, version)
        frame = memoryview(bytearray(b"".join(coded.encode_request(body))))
        decoded = coded.decode_request(frame, 0)
        request = Request(connection, api_key, version, self._sent, client_id, decoded)
        self._step(request)
        return request

    def answer(self, request: Request) -> Any:
        """The answer, or None while the request is parked."""
        return self._answers.get(request.correlation_id)

    def ask(self, api_key: ApiKey, version: int, body: Any) -> Any:
        """Send a request and return its answer."""
        return self.answer(self.send(api_key, version, body))

    def produce(self, records: Any, version: int = 9, **more: Any) -> Any:
        """The response about the one partition."""
        response = self.ask(ApiKey.PRODUCE, version, produce_body(records, **more))
        return response.responses[0].partition_responses[0]

    def fetch(self, *partitions: Any, version: int = 12, **more: Any) -> Any:
        """The whole response; None while it waits."""
        return self.ask(ApiKey.FETCH, version, fetch_body(*partitions, **more))

    def ask_all(self, api_key: ApiKey, version: int, body: Any) -> list[Any]:
        """The same on another connection: every reply that the request made the broker give."""
        before = len(self._answers)
        self.send(api_key, version, body, connection=2)
        return list(self._answers.values())[before:]

    def controller_answers(self, body: Any) -> Any:
        """Answer the oldest question; what the broker then replies to its client."""
        question = self.asked.pop(0).message
        return _only(self._step(PeerResponse(CONTROLLER_ID, question.request_id, body)))

    def pass_time(self, ms: int) -> Any:
        """Let time pass; what the broker then replies to its client."""
        self.now_ms += ms
        return _only(self._step(Tick()))

    def at(self, now_ms: int) -> None:
        """Let time pass until `now_ms`, one deadline after the other."""
        while (due_ms := self.broker.deadline_ms) is not None and due_ms <= now_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self._step(Tick())
        self.now_ms = now_ms

    def _step(self, event: Input) -> list[Any]:
        """Take one input; the bodies of the replies."""
        replies = []
        for effect in self.broker.step(self.now_ms, event):
            match effect:
                case Send(to=to) if to == CONTROLLER_ID:
                    self.asked.append(effect)
                case Note(event=noted):
                    self.events.append(noted)
                case CloseConnection():
                    self.closed.append(effect)
                case Reply(request=request, body=body):
                    assert request.correlation_id not in self._answers, "answered twice"
                    if body is not None:
                        coded = codec(request.api_key, request.api_version)
                        coded.decode_response(b"".join(coded.encode_response(body)), 0)
                    self._answers[request.correlation_id] = body
                    replies.append(body)
        return replies


def _only(replies: list[Any]) -> Any:
    assert len(replies) <= 1, replies
    return replies[0] if replies else None


def leader(partitions: int = 1, **configs: Any) -> OneBroker:
    """Broker 1 leads every partition of `orders` by itself."""
    return OneBroker(broker_records(1, 2), topic_records(TOPIC, *[(1,)] * partitions), **configs)


def produce_body(records: Any, acks: int = -1, partition: int = 0, topic: str = TOPIC) -> Any:
    """A Produce request that names the topic by name and id."""
    return produce_request(topic, partition, records, acks=acks, topic_id=topic_id(topic))


def fetch_body(*partitions: Any, topic: str = TOPIC, **more: Any) -> Any:
    """A Fetch request that names the topic by name and id."""
    return fetch_request(topic, *partitions, topic_id=topic_id(topic), **more)


def partition_results(response: Any) -> dict[int, tuple[str, int]]:
    """Per partition of a Fetch response: its error and the number of bytes of records."""
    return {
        data.partition_index: (ErrorCode(data.error_code).name, size(data.records))
        for topic in response.responses
        for data in topic.partitions
    }


def size(records: Any) -> int:
    """Bytes of what a handler answers: a list of batches."""
    return sum(one.size_bytes for one in records) if records else 0
