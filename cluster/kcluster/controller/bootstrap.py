"""The topology's topics: created as soon as the brokers that should host them are available.

Owns: when a topic of the topology is created.  Never: how (topics/topics.py).
Kafka: no counterpart; an operator waits for the brokers, then creates topics.

As soon as all expected brokers are unfenced, all topics are created.  If a session timeout passes
before, each topic is created as soon as the available brokers can host it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kcluster.config.creatable_topic import creatable_topic
from kcluster.config.topology.specs import TopicSpec
from kcluster.controller.metadata_log import PendingTopics
from kcluster.controller.ports import MetadataPort
from kcluster.controller.topics.topics import Topics
from kcluster.protocol import messages as m

_TIMER: Final = "bootstrap"


class Bootstrap:
    """Creates the pending topics.  They are kept in the metadata log, so that the next controller
    continues where this one stopped."""

    def __init__(
        self,
        metadata: MetadataPort,
        topics: Topics,
        specs: Sequence[TopicSpec],
        expected_brokers: tuple[int, ...],
    ) -> None:
        self._metadata = metadata
        self._topics = topics
        if metadata.log.pending_topics is None:
            metadata.log.pending_topics = PendingTopics(tuple(specs), expected_brokers)
        self._pending = metadata.log.pending_topics

    def start(self, now_ms: int) -> None:
        """Do not wait for missing brokers longer than a session timeout."""

        def time_out(at_ms: int) -> None:
            self._pending.timed_out = True
            self._create(at_ms)

        if self._pending.topics:
            timeout_ms = self._metadata.config.broker_session_timeout_ms
            self._metadata.timers.set(_TIMER, now_ms + timeout_ms, time_out)

    def on_broker_unfenced(self, now_ms: int) -> None:
        """A broker has become active."""
        pending, is_active = self._pending, self._metadata.image.is_active
        if pending.topics and (pending.timed_out or all(map(is_active, pending.expected_brokers))):
            self._create(now_ms)

    def _create(self, now_ms: int) -> None:
        pending = self._pending
        request = m.CreateTopicsRequest(topics=[creatable_topic(spec) for spec in pending.topics])
        response = self._topics.create_topics(request, now_ms)
        failed = {topic.name for topic in response.topics if topic.error_code}
        pending.topics = tuple(spec for spec in pending.topics if spec.name in failed)
        if not pending.topics:
            self._metadata.timers.cancel(_TIMER)
