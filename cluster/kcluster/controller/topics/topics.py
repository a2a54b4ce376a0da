"""CreateTopics (API 19, v2-7) and DeleteTopics (API 20, v1-6).

Owns: the acceptance of new and deleted topics, their records, the taken names, among which '.' and
'_' count as equal (KIP-11).  Never: chooses brokers (placement.py), judges configs
(kcluster.config does). Kafka: ReplicationControlManager.createTopics, deleteTopics;
ControllerApis (duplicates).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct

from kcluster.config.kafka.definitions import check_topic_overrides
from kcluster.contract import Rng
from kcluster.controller.outcome import ApiError
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.controller.topics.mutation_quotas import MutationQuotas
from kcluster.controller.topics.new_partitions import (
    MAX_PARTITIONS_PER_REQUEST,
    NewPartition,
    partition_records,
    place_by_hand,
    place_new,
)
from kcluster.controller.topics.topic_configs import describe_configs
from kcluster.events.topics import TopicCreated, TopicDeleted
from kcluster.metadata.image import TopicImage
from kcluster.metadata.records import (
    TOPIC_RESOURCE,
    ConfigRecord,
    MetadataRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import CLUSTER_METADATA_TOPIC, name_problem

_ZERO_ID: Final = bytes(16)


class _NewTopic(Struct, frozen=True):
    name: str
    topic_id: bytes
    partitions: list[NewPartition]
    configs: dict[str, str]


class Topics:
    """Creates and deletes topics, and knows the taken names."""

    def __init__(self, metadata: MetadataPort, quotas: MutationQuotas) -> None:
        self.names = TopicNames()
        self._metadata = metadata
        self._quotas = quotas

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {
            "CreateTopicsRequest": self.create_topics,
            "DeleteTopicsRequest": self.delete_topics,
        }

    # --------------------------------------------------------------------- the metadata log

    def replay(self, record: TopicRecord) -> None:
        """Update the taken names for the record of a new topic."""
        self.names.add(record.name)

    def replay_removal(self, topic: TopicImage) -> None:
        """Forget a topic that is deleted."""
        self.names.remove(topic.name)

    # ------------------------------------------------------------------------------- create

    def create_topics(self, request: m.CreateTopicsRequest, _now_ms: int) -> m.CreateTopicsResponse:
        """Create topics; each succeeds or fails by itself.  The answer's configs are never null,
        because the Java admin client cannot read null. Versions: v4 partition count and replication
        factor -1 mean the broker's defaults (KIP-464), v5 configs in the answer (KIP-525), v7 topic
        ids (KIP-516)."""
        partition_count = sum(self._partition_count(topic) for topic in request.topics)
        if partition_count > MAX_PARTITIONS_PER_REQUEST:
            text = "Excessively large number of partitions per request."
            return m.CreateTopicsResponse(
                topics=[
                    _failed(topic.name, ApiError(ErrorCode.POLICY_VIOLATION, text))
                    for topic in request.topics
                ]
            )
        times = Counter(topic.name for topic in request.topics)
        response = m.CreateTopicsResponse()
        records: list[MetadataRecord] = []
        for topic in request.topics:
            if times[topic.name] > 1:
                continue
            new = self._check_new(topic)
            if isinstance(new, ApiError):
                response.topics.append(_failed(topic.name, new))
                continue
            response.topics.append(self._created(new))
            if not request.validate_only:
                records += self._creation_records(new)
        for name, count in times.items():
            if count > 1:
                error = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                response.topics.append(_failed(name, error))
        self._metadata.commit(records)
        return response

    def _partition_count(self, topic: m.CreateTopicsRequest.CreatableTopic) -> int:
        if topic.assignments:
            return len(topic.assignments)
        count = topic.num_partitions
        return self._metadata.config.num_partitions if count == -1 else max(0, count)

    def _check_new(self, topic: m.CreateTopicsRequest.CreatableTopic) -> _NewTopic | ApiError:
        """Check a new topic in Kafka's order: name, existence, configs, then placement."""
        if topic.name == CLUSTER_METADATA_TOPIC:
            text = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        metadata = self._metadata
        if topic.name in metadata.image.topics:
            text = f"Topic '{topic.name}' already exists."
            return ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, text)
        other = self.names.collision(topic.name)
        if other is not None:
            text = f"Topic '{topic.name}' collides with existing topic: {other}"
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
        problem = name_problem(topic.name)
        if problem is not None:
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        nulls = [config.name for config in topic.configs if config.value is None]
        if nulls:
            text = f"Null value not supported for topic configs: {','.join(nulls)}"
            return ApiError(ErrorCode.INVALID_CONFIG, text)
        configs = {x.name: x.value for x in topic.configs if x.value is not None}
        release = metadata.release.number
        problem = check_topic_overrides(metadata.cluster_config, configs, release)
        if problem is not None:
            return ApiError(ErrorCode.INVALID_CONFIG, problem)
        partitions = self._place_by_hand(topic) if topic.assignments else self._place(topic)
        if isinstance(partitions, ApiError):
            return partitions
        throttled = self._quotas.charge(len(partitions))
        if throttled is not None:
            return throttled
        return _NewTopic(topic.name, random_topic_id(metadata.rng), partitions, configs)

    def _place(self, topic: m.CreateTopicsRequest.CreatableTopic) -> list[NewPartition] | ApiError:
        if topic.replication_factor < -1 or topic.replication_factor == 0:
            return ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if topic.num_partitions < -1 or topic.num_partitions == 0:
            return ApiError(
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            )
        config = self._metadata.config
        count, factor = topic.num_partitions, topic.replication_factor
        if count == -1:
            count = config.num_partitions
        if factor == -1:
            factor = config.default_replication_factor
        return place_new(self._metadata.image, self._metadata.rng, count, factor)

    def _place_by_hand(
        self, topic: m.CreateTopicsRequest.CreatableTopic
    ) -> list[NewPartition] | ApiError:
        for value, what in (
            (topic.replication_factor, "replication factor"),
            (topic.num_partitions, "numPartitions"),
        ):
            if value != -1:
                text = f"A manual partition assignment was specified, but {what} was not set to -1."
                return ApiError(ErrorCode.INVALID_REQUEST, text)
        by_partition: dict[int, NewPartition] = {}
        factor: int | None = None
        for manual in topic.assignments:
            partition = manual.partition_index
            if partition in by_partition:
                text = f"Found multiple manual partition assignments for partition {partition}"
                return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
            new = place_by_hand(self._metadata.image, partition, manual.broker_ids, factor)
            if isinstance(new, ApiError):
                return new
            by_partition[partition] = new
            factor = len(new.replicas)
        if any(partition not in by_partition for partition in range(len(by_partition))):
            text = "partitions should be a consecutive 0-based integer sequence"
            return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        return [by_partition[partition] for partition in range(len(by_partition))]

    def _creation_records(self, new: _NewTopic) -> list[MetadataRecord]:
        count, factor = len(new.partitions), len(new.partitions[0].replicas)
        cause = self._metadata.note(TopicCreated(new.name, count, factor, dict(new.configs)))
        return [
            TopicRecord(new.name, new.topic_id, cause),
            *(
                ConfigRecord(TOPIC_RESOURCE, new.name, name, value, cause)
                for name, value in new.configs.items()
            ),
            *partition_records(new.topic_id, 0, new.partitions, cause),
        ]

    def _created(self, new: _NewTopic) -> m.CreateTopicsResponse.CreatableTopicResult:
        return m.CreateTopicsResponse.CreatableTopicResult(
            name=new.name,
            topic_id=new.topic_id,
            error_message=None,
            num_partitions=len(new.partitions),
            replication_factor=len(new.partitions[0].replicas),
            configs=[
                m.CreateTopicsResponse.CreatableTopicConfigs(
                    name=config.name, value=config.value, config_source=config.source
                )
                for config in describe_configs(self._metadata, new.configs)
            ],
        )

    # ------------------------------------------------------------------------------- delete

    def delete_topics(self, request: m.DeleteTopicsRequest, _now_ms: int) -> m.DeleteTopicsResponse:
        """Delete topics; each succeeds or fails by itself, and a topic that is named twice, by name
        or by id, is not deleted. Versions: v5 error messages, v6 topics by id (KIP-516)."""
        wanted: Counter[tuple[str | None, bytes]] = Counter()
        wanted.update((name, _ZERO_ID) for name in request.topic_names)
        wanted.update((topic.name, topic.topic_id) for topic in request.topics)
        ids = self._metadata.image.topic_names
        resolved = Counter(
            name if name is not None else ids.get(id_)
            for (name, id_), times in wanted.items()
            if times == 1
        )
        response = m.DeleteTopicsResponse()
        records: list[MetadataRecord] = []
        for (name, topic_id), times in wanted.items():
            twice = times == 1 and resolved[name if name is not None else ids.get(topic_id)] > 1
            if twice and name is None and topic_id in ids:
                continue  # its row with the name is the answer
            response.responses.append(self._delete_one(name, topic_id, times, twice, records))
        self._metadata.commit(records)
        return response

    def _delete_one(
        self,
        name: str | None,
        topic_id: bytes,
        times: int,
        twice: bool,
        records: list[MetadataRecord],
    ) -> m.DeleteTopicsResponse.DeletableTopicResult:
        def result(
            code: ErrorCode, text: str | None = None, id_: bytes = topic_id
        ) -> m.DeleteTopicsResponse.DeletableTopicResult:
            return m.DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=id_, error_code=code, error_message=text
            )

        if not self._metadata.config.delete_topic_enable:
            return result(ErrorCode.TOPIC_DELETION_DISABLED, ErrorCode.TOPIC_DELETION_DISABLED.text)
        if name is None and topic_id == _ZERO_ID:
            return result(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        if name is not None and topic_id != _ZERO_ID:
            return result(
                ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
            )
        if times > 1:
            what = "id" if name is None else "name"
            return result(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
        known = self._metadata.image.topic_names.get(topic_id) if name is None else name
        topic = None if known is None else self._metadata.image.topics.get(known)
        if topic is None:
            code = (
                ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            return result(code, code.text)
        if twice:
            text = "The provided topic name maps to an ID that was already supplied."
            return result(ErrorCode.INVALID_REQUEST, text, topic.topic_id)
        throttled = self._quotas.charge(len(topic.partitions))
        if throttled is not None:
            return result(throttled.code, throttled.message, topic.topic_id)
        cause = self._metadata.note(TopicDeleted(topic.name))
        records.append(RemoveTopicRecord(topic.topic_id, cause))
        name = topic.name
        return result(ErrorCode.NONE, None, topic.topic_id)


def _failed(name: str, error: ApiError) -> m.CreateTopicsResponse.CreatableTopicResult:
    return m.CreateTopicsResponse.CreatableTopicResult(
        name=name,
        error_code=error.code,
        error_message=error.message,
        num_partitions=-1,
        replication_factor=-1,
        configs=[],
    )


def random_topic_id(rng: Rng) -> bytes:
    """A version 4 UUID whose base64 form does not start with '-', which tools take for an option.
    Kafka: Uuid.randomUuid."""
    while True:
        raw = bytearray(rng.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if raw[0] >> 2 != 62:
            return bytes(raw)


class TopicNames:
    """The existing topics' names with '.' or '_', which metric names do not distinguish."""

    __slots__ = ("_by_unified",)

    def __init__(self) -> None:
        self._by_unified: dict[str, dict[str, None]] = {}

    def add(self, name: str) -> None:
        if _has_collision_chars(name):
            self._by_unified.setdefault(name.replace(".", "_"), {})[name] = None

    def remove(self, name: str) -> None:
        unified = name.replace(".", "_")
        names = self._by_unified.get(unified)
        if names is not None:
            names.pop(name, None)
            if not names:
                del self._by_unified[unified]

    def collision(self, name: str) -> str | None:
        """The name of an existing topic that differs from `name` only in '.' and '_'."""
        if not _has_collision_chars(name):
            return None
        return next(iter(self._by_unified.get(name.replace(".", "_"), {})), None)


def _has_collision_chars(name: str) -> bool:
    return "." in name or "_" in name
