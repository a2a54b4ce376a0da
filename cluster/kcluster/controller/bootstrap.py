"""The topology's topics: created as soon as the brokers that should host them are available.

Owns: the moment at which a topic of the topology is created.  Never: creates it (topics/topics.py).
Kafka: no counterpart; an operator waits for the brokers, then creates topics.

As soon as all expected brokers are unfenced, all topics are created.  If a session timeout passes
before that, each topic is created as soon as the available brokers can host it.  A refused topic
stays pending, with the reason, and the start of the cluster reports that reason
(operations/settled.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kcluster.config.creatable_topic import creatable_topic
from kcluster.config.topology.specs import TopicSpec
from kcluster.controller.metadata_log import PendingTopics
from kcluster.controller.outcome import ApiError
from kcluster.controller.ports import MetadataPort
from kcluster.controller.topics.create_partitions import PartitionAdditions
from kcluster.controller.topics.new_partitions import MAX_PARTITIONS_PER_REQUEST
from kcluster.controller.topics.topics import Topics
from kcluster.protocol import messages as m
from kcluster.protocol.errors import error_of

_TIMER: Final = "bootstrap"


class Bootstrap:
    """Creates the pending topics.  The metadata log keeps them, so that the next controller
    continues where this one stopped."""

    def __init__(
        self,
        metadata: MetadataPort,
        topics: Topics,
        additions: PartitionAdditions,
        specs: Sequence[TopicSpec],
        expected_brokers: tuple[int, ...],
    ) -> None:
        self._metadata = metadata
        self._topics = topics
        self._additions = additions
        if metadata.log.pending_topics is None:
            metadata.log.pending_topics = PendingTopics(tuple(specs), expected_brokers)
        self._pending = metadata.log.pending_topics

    def start(self, now_ms: int) -> None:
        """Start to wait for missing brokers, for a session timeout at most."""

        def time_out(at_ms: int) -> None:
            self._pending.timed_out = True
            self._create(at_ms)

        if self._pending.topics:
            timeout_ms = self._metadata.config.broker_session_timeout_ms
            self._metadata.timers.set(_TIMER, now_ms + timeout_ms, time_out)

    def on_broker_unfenced(self, now_ms: int) -> None:
        """Create the topics that have become possible because a broker is active."""
        pending, is_active = self._pending, self._metadata.image.is_active
        if pending.topics and (pending.timed_out or all(map(is_active, pending.expected_brokers))):
            self._create(now_ms)

    def _create(self, now_ms: int) -> None:
        pending = self._pending
        pending.refused = {}
        for spec in pending.topics:
            error = self._create_topic(spec, now_ms)
            if error.code:
                pending.refused[spec.name] = error
        pending.topics = tuple(spec for spec in pending.topics if spec.name in pending.refused)
        if not pending.topics:
            self._metadata.timers.cancel(_TIMER)

    def _create_topic(self, spec: TopicSpec, now_ms: int) -> ApiError:
        """Create a topic in requests within their limit, as a careful operator would: one request
        per topic, and for a very large topic further requests that add partitions."""
        topic = creatable_topic(spec)
        assignments = topic.assignments
        count = len(assignments) or spec.partitions
        if count > MAX_PARTITIONS_PER_REQUEST:
            topic.assignments = assignments[:MAX_PARTITIONS_PER_REQUEST]
            topic.num_partitions = -1 if assignments else MAX_PARTITIONS_PER_REQUEST
        request = m.CreateTopicsRequest(topics=[topic])
        error = _error_of(self._topics.create_topics(request, now_ms).topics[0])
        for first in range(MAX_PARTITIONS_PER_REQUEST, count, MAX_PARTITIONS_PER_REQUEST):
            if error.code:
                break
            until = min(first + MAX_PARTITIONS_PER_REQUEST, count)
            growth = m.CreatePartitionsRequest(
                topics=[_more_partitions(spec.name, until, assignments[first:until])]
            )
            error = _error_of(self._additions.create_partitions(growth, now_ms).results[0])
        return error


def _more_partitions(
    name: str, count: int, assignments: Sequence[m.CreateTopicsRequest.CreatableReplicaAssignment]
) -> m.CreatePartitionsRequest.CreatePartitionsTopic:
    request = m.CreatePartitionsRequest
    by_hand = [request.CreatePartitionsAssignment(broker_ids=one.broker_ids) for one in assignments]
    return request.CreatePartitionsTopic(name=name, count=count, assignments=by_hand or None)


def _error_of(
    result: m.CreateTopicsResponse.CreatableTopicResult
    | m.CreatePartitionsResponse.CreatePartitionsTopicResult,
) -> ApiError:
    return ApiError(error_of(result.error_code), result.error_message)
