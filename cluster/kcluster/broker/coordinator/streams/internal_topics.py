"""Creating the repartition and changelog topics of streams groups.

Owns: the creations in progress, and the errors of failed ones, for a while.  Never: decides which
topics are needed (configured.py).  Kafka:
DefaultAutoTopicCreationManager.createStreamsInternalTopics, ExpiringErrorCache.

A topic that could not be created is not tried again before its error has expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.broker.coordinator.streams.topology import InternalTopic
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.java import hash_order, java_hash_code

MAX_ERRORS: Final = 1_000
"""Kafka: topicErrorCacheCapacity."""
_NO_ANSWER: Final = "no answer in time"
_BROKER_DEFAULT: Final = -1


class InternalTopics:
    """The internal topics of all streams groups that one broker coordinates."""

    def __init__(self, broker: CoordinatorBroker) -> None:
        self._broker = broker
        self._in_flight: set[str] = set()
        self._errors: dict[str, tuple[int, str]] = {}
        """The errors of failed creations, by topic: (the time at which the error expires, its
        message)."""

    def create(self, topics: Mapping[str, InternalTopic], errors_ms: int, now_ms: int) -> None:
        """Have the controller create `topics`; remember the errors for `errors_ms`."""
        self._forget_expired(now_ms)
        wanted = {
            name: topic
            for name, topic in topics.items()
            if name not in self._errors and name not in self._in_flight
        }
        if not wanted:
            return
        self._in_flight.update(wanted)
        timeout_ms = self._broker.config.request_timeout_ms
        request = m.CreateTopicsRequest(
            topics=[_creatable(topic) for topic in wanted.values()], timeout_ms=timeout_ms
        )

        def answered(body: m.CreateTopicsResponse | None, at_ms: int) -> None:
            self._in_flight.difference_update(wanted)
            expires_ms = at_ms + errors_ms
            if body is None:
                self._errors.update(dict.fromkeys(wanted, (expires_ms, _NO_ANSWER)))
                return
            for result in body.topics:
                if result.error_code != ErrorCode.NONE:
                    message = result.error_message or error_of(result.error_code).text
                    self._errors[result.name] = (expires_ms, message)

        self._broker.ask_controller(request, answered, timeout_ms, now_ms)

    def errors_of(self, topics: Iterable[str], now_ms: int) -> list[tuple[str, str]]:
        """(topic, the error of its creation), in Kafka's order."""
        self._forget_expired(now_ms)
        names = hash_order(topics, java_hash_code)
        return [(name, self._errors[name][1]) for name in names if name in self._errors]

    def _forget_expired(self, now_ms: int) -> None:
        kept = sorted(
            (item for item in self._errors.items() if item[1][0] > now_ms),
            key=lambda item: item[1][0],
        )
        self._errors = dict(kept[-MAX_ERRORS:])


def _creatable(topic: InternalTopic) -> m.CreateTopicsRequest.CreatableTopic:
    request = m.CreateTopicsRequest
    return request.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or _BROKER_DEFAULT,
        assignments=[],
        configs=[request.CreatableTopicConfig(*config) for config in topic.configs],
    )
