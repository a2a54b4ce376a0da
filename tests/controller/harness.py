"""A ControllerNode, and brokers reduced to the messages that they send to it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.config.topology.specs import TopicSpec
from kcluster.contract import (
    CONTROLLER_ID,
    Effect,
    Event,
    Input,
    Note,
    PeerRequest,
    PeerResponse,
    Send,
    Start,
    Tick,
)
from kcluster.controller.node import ControllerNode
from kcluster.events.words import text_of
from kcluster.metadata.delta import MetadataFetchResponse
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import MetadataFetch, PartitionRegistration
from kcluster.protocol import messages as m
from kcluster.protocol.releases import Release

E = TypeVar("E", bound=Event)

CLUSTER_ID = "test-cluster"
HEARTBEAT_MS = 2_000


class Controller:
    """Steps a ControllerNode, keeps its notes, and has fake brokers follow its metadata."""

    def __init__(
        self,
        brokers: int = 3,
        topics: Sequence[TopicSpec] = (),
        seed: int = 1,
        racks: dict[int, str] | None = None,
        features: Mapping[str, int] = {},
        release: Release | None = None,
        **config: Any,
    ) -> None:
        names = {name.replace("_", "."): value for name, value in config.items()}
        expected = tuple(range(1, brokers + 1))
        self.node = ControllerNode(
            BrokerConfig.resolve("kafka", names),
            random.Random(seed),
            CLUSTER_ID,
            topics,
            expected,
            features=features,
            release=release,
        )
        self.now_ms = 0
        self.notes: list[Note] = []
        self.sent: list[Send] = []
        self.epochs: dict[int, int] = {}
        self.incarnations: dict[int, int] = {}
        self.images: dict[int, MetadataImage] = {}
        self.racks = racks or {}
        self.silent: set[int] = set()
        self._request_id = 0
        self.step(Start())
        for broker in expected:
            self.start(broker)

    # ---------------------------------------------------------------------------- stepping

    def step(self, event: Input) -> Sequence[Effect]:
        effects = self.node.step(self.now_ms, event)
        for effect in effects:
            match effect:
                case Note():
                    self.notes.append(effect)
                case Send():
                    self.sent.append(effect)
        return effects

    def ask(self, broker: int, body: Any) -> Any:
        """The answer to a request that is answered at once."""
        self._request_id += 1
        effects = self.step(PeerRequest(broker, self._request_id, body))
        for effect in effects:
            if isinstance(effect, Send) and effect.message.request_id == self._request_id:
                assert effect.to == broker
                assert isinstance(effect.message, PeerResponse)
                assert effect.message.source == CONTROLLER_ID
                return effect.message.body
        return None

    def run(self, for_ms: int) -> None:
        """Let time pass; every broker that is not silent sends a heartbeat every two seconds."""
        end = self.now_ms + for_ms
        while self.now_ms < end:
            next_beat = self.now_ms + HEARTBEAT_MS - self.now_ms % HEARTBEAT_MS
            deadline = self.node.deadline_ms
            if deadline is not None and deadline <= min(next_beat, end):
                self.now_ms = max(self.now_ms, deadline)
                self.step(Tick())
                continue
            self.now_ms = min(next_beat, end)
            if self.now_ms == next_beat:
                for broker in sorted(self.epochs):
                    if broker not in self.silent:
                        self.heartbeat(broker)

    # ------------------------------------------------------------------------------ brokers

    def register(self, broker: int, previous_epoch: int = -1, new_incarnation: bool = True) -> Any:
        if new_incarnation:
            self.incarnations[broker] = self.incarnations.get(broker, 0) + 1
        incarnation = bytes([broker, self.incarnations[broker]]) + bytes(14)
        response = self.ask(
            broker,
            m.BrokerRegistrationRequest(
                broker_id=broker,
                cluster_id=CLUSTER_ID,
                incarnation_id=incarnation,
                listeners=[
                    m.BrokerRegistrationRequest.Listener(
                        name="PLAINTEXT", host="127.0.0.1", port=9090 + broker
                    )
                ],
                rack=self.racks.get(broker),
                previous_broker_epoch=previous_epoch,
            ),
        )
        if response.error_code == 0:
            self.epochs[broker] = response.broker_epoch
            self.images[broker] = MetadataImage()
        return response

    def start(self, broker: int, previous_epoch: int = -1) -> None:
        """Register, read the metadata, heartbeat: unfenced."""
        response = self.register(broker, previous_epoch)
        assert response.error_code == 0, response
        self.silent.discard(broker)
        self.heartbeat(broker)

    def follow(self, broker: int) -> MetadataImage:
        """Read the metadata log to its end."""
        image = self.images.setdefault(broker, MetadataImage())
        while image.offset + 1 < self.node.end_offset:
            answer = self.ask(broker, MetadataFetch(broker, image.offset + 1, 500))
            assert isinstance(answer, MetadataFetchResponse)
            answer.delta.apply_to(image)
        return image

    def last_contact_ms(self, broker: int) -> int:
        session = self.node.membership.sessions.get(broker)
        assert session is not None
        assert session.last_contact_ms is not None
        return session.last_contact_ms

    def forget_contact(self, broker: int) -> None:
        """As if the broker had registered and never sent a heartbeat."""
        self.node.membership.sessions.register(broker, self.epochs[broker])

    def heartbeat(self, broker: int, follow: bool = True, **wants: Any) -> Any:
        if follow:
            self.follow(broker)
        return self.ask(
            broker,
            m.BrokerHeartbeatRequest(
                broker_id=broker,
                broker_epoch=self.epochs[broker],
                current_metadata_offset=self.images[broker].offset,
                **wants,
            ),
        )

    def die(self, broker: int) -> None:
        """Silence until the controller notices."""
        self.silent.add(broker)
        self.run(self.node.config.broker_session_timeout_ms + HEARTBEAT_MS)

    def alter(
        self,
        leader: int,
        topic: str,
        isr: dict[int, int] | Sequence[int],
        partition: int = 0,
        **override: int,
    ) -> Any:
        """The one PartitionData of the answer to AlterPartition; `isr` with epochs or without."""
        now = self.partition(topic, partition)
        epochs = isr if isinstance(isr, dict) else {b: self.epochs[b] for b in isr}
        data = m.AlterPartitionRequest.PartitionData(
            partition_index=partition,
            leader_epoch=override.get("leader_epoch", now.leader_epoch),
            partition_epoch=override.get("partition_epoch", now.partition_epoch),
            leader_recovery_state=override.get("leader_recovery_state", 0),
            new_isr_with_epochs=[
                m.AlterPartitionRequest.BrokerState(broker_id=b, broker_epoch=e)
                for b, e in epochs.items()
            ],
        )
        request = m.AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=override.get("broker_epoch", self.epochs[leader]),
            topics=[
                m.AlterPartitionRequest.TopicData(
                    topic_id=self.node.image.topics[topic].topic_id, partitions=[data]
                )
            ],
        )
        response = self.ask(leader, request)
        return response.topics[0].partitions[0] if response.topics else response

    # --------------------------------------------------------------------------------- topics

    def create(
        self,
        name: str,
        assignment: Sequence[Sequence[int]] = (),
        partitions: int = 1,
        factor: int = 3,
        validate_only: bool = False,
        **configs: str,
    ) -> Any:
        """The one result; `configs` with underscores for dots."""
        topic = m.CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=-1 if assignment else partitions,
            replication_factor=-1 if assignment else factor,
            assignments=[
                m.CreateTopicsRequest.CreatableReplicaAssignment(
                    partition_index=i, broker_ids=list(replicas)
                )
                for i, replicas in enumerate(assignment)
            ],
            configs=[
                m.CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        request = m.CreateTopicsRequest(topics=[topic], validate_only=validate_only)
        return self.ask(1, request).topics[0]

    def set_config(self, kind: int, name: str, config: str, value: str | None) -> Any:
        """SET, or DELETE for None; the one response."""
        alter = m.IncrementalAlterConfigsRequest
        request = alter(
            resources=[
                alter.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        alter.AlterableConfig(
                            name=config, config_operation=int(value is None), value=value
                        )
                    ],
                )
            ]
        )
        return self.ask(1, request).responses[0]

    def partition(self, topic: str, partition: int = 0) -> PartitionRegistration:
        found = self.node.image.partition(topic, partition)
        assert found is not None, (topic, partition)
        return found

    def events(self, wanted: type[E]) -> list[E]:
        """The events of a type so far."""
        return [note.event for note in self.notes if isinstance(note.event, wanted)]

    def texts(self, wanted: type[Event]) -> list[str]:
        """`subject: text` of every event of a type."""
        return [f"{event.subject}: {text_of(event)}" for event in self.events(wanted)]
