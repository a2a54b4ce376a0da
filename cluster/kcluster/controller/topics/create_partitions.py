"""CreatePartitions (API 37, v0-3): more partitions for an existing topic.

Owns: the acceptance of increases.  Never: chooses brokers (placement.py). Kafka:
ReplicationControlManager.createPartitions, ControllerApis.createPartitions.
"""

from __future__ import annotations

from collections import Counter

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
from kcluster.events.topics import PartitionsAdded
from kcluster.metadata.image import TopicImage
from kcluster.metadata.records import MetadataRecord
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode


class PartitionAdditions:
    """Adds partitions to topics."""

    def __init__(self, metadata: MetadataPort, quotas: MutationQuotas) -> None:
        self._metadata = metadata
        self._quotas = quotas

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {"CreatePartitionsRequest": self.create_partitions}

    def create_partitions(
        self, request: m.CreatePartitionsRequest, _now_ms: int
    ) -> m.CreatePartitionsResponse:
        """Add partitions; each topic succeeds or fails by itself, and a topic that is named twice
        fails."""
        times = Counter(topic.name for topic in request.topics)
        results: dict[str, ApiError] = {}
        records: list[MetadataRecord] = []
        for requested in request.topics:
            if times[requested.name] > 1:
                results[requested.name] = ApiError(
                    ErrorCode.INVALID_REQUEST, "Duplicate topic name."
                )
                continue
            topic = self._metadata.image.topics.get(requested.name)
            if topic is None:
                results[requested.name] = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            if requested.count - len(topic.partitions) > MAX_PARTITIONS_PER_REQUEST - len(records):
                # DIFFERS: Kafka runs into the limit of its batch and answers UNKNOWN_SERVER_ERROR.
                text = "Excessively large number of partitions per request."
                results[requested.name] = ApiError(ErrorCode.POLICY_VIOLATION, text)
                continue
            added = self._place(topic, requested)
            if isinstance(added, ApiError):
                results[requested.name] = added
                continue
            throttled = self._quotas.charge(len(added))
            if throttled is not None:
                results[requested.name] = throttled
                continue
            results[requested.name] = ApiError(ErrorCode.NONE)
            if not request.validate_only:
                records += self._records(topic, added)
        self._metadata.commit(records)
        return m.CreatePartitionsResponse(
            results=[
                m.CreatePartitionsResponse.CreatePartitionsTopicResult(
                    name=name, error_code=error.code, error_message=error.message
                )
                for name, error in results.items()
            ]
        )

    def _records(self, topic: TopicImage, added: list[NewPartition]) -> list[MetadataRecord]:
        first = len(topic.partitions)
        cause = self._metadata.note(PartitionsAdded(topic.name, first, first + len(added)))
        return partition_records(topic.topic_id, first, added, cause)

    def _place(
        self, topic: TopicImage, requested: m.CreatePartitionsRequest.CreatePartitionsTopic
    ) -> list[NewPartition] | ApiError:
        first = len(topic.partitions)
        if requested.count == first:
            text = f"Topic already has {first} partition(s)."
            return ApiError(ErrorCode.INVALID_PARTITIONS, text)
        if requested.count < first:
            text = (
                f"The topic {topic.name} currently has {first} partition(s); {requested.count} "
                "would not be an increase."
            )
            return ApiError(ErrorCode.INVALID_PARTITIONS, text)
        additional = requested.count - first
        factor = len(topic.partitions[0].replicas)
        image = self._metadata.image
        if requested.assignments is None:
            return place_new(image, self._metadata.rng, additional, factor)
        if len(requested.assignments) != additional:
            text = (
                f"Attempted to add {additional} additional partition(s), but only "
                f"{len(requested.assignments)} assignment(s) were specified."
            )
            return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        added: list[NewPartition] = []
        for i, manual in enumerate(requested.assignments):
            new = place_by_hand(image, first + i, manual.broker_ids, factor)
            if isinstance(new, ApiError):
                return new
            added.append(new)
        return added
