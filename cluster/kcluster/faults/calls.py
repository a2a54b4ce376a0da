"""Requests in the form that rules match, wherever rules are applied: at a simulated broker, or in a
proxy before a real one.

Owns: KnownCluster, the partitions that a request names, including those of its fetch session.
Never: decides or holds anything, knows a broker's code.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Protocol

from kcluster.contract import Request
from kcluster.faults.rules import Call
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.error_answers import topic_of, topics_named
from kcluster.protocol.messages import Message


class SessionPart(Protocol):
    """A partition of a fetch session.  `topic`: empty if only the id is known."""

    @property
    def topic(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partition(self) -> int: ...


class KnownCluster(Protocol):
    """What is known of the cluster at the place where rules are applied."""

    @property
    def broker(self) -> int:
        """The id of the broker that the requests are for."""

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if it is not known."""

    def topics(self) -> Iterable[str]:
        """The names of all topics."""

    def session(self, session_id: int) -> Iterable[SessionPart]:
        """The partitions of a fetch session of the broker; empty for an unknown one."""


def is_answered(request: Request) -> bool:
    """Whether the request's client expects an answer."""
    return request.api_key != ApiKey.PRODUCE or request.body.acks != 0


def call_of(known: KnownCluster, request: Request) -> Call:
    """A request in the form that rules match."""
    return Call(
        request.api_key,
        request.api_version,
        request.client_id or "",
        known.broker,
        is_answered(request),
        partial(named, known, request),
    )


def served_call_of(known: KnownCluster, request: Request, answer: Message | None) -> Call | None:
    """An exchange that has been served, in the form that rules on records match; None if it has no
    records: nothing was fetched, or nothing was appended, or it belongs to a transaction."""
    match request.api_key, answer:
        case ApiKey.FETCH | ApiKey.SHARE_FETCH, (m.FetchResponse() | m.ShareFetchResponse()):
            parts = [
                (topic_of(topic, known.topic_name), data.partition_index)
                for topic in answer.responses
                for data in topic.partitions
                if data.records
            ]
        case ApiKey.PRODUCE, m.ProduceResponse() if request.body.transactional_id is None:
            parts = [
                (topic_of(topic, known.topic_name), data.index)
                for topic in answer.responses
                for data in topic.partition_responses
                if not data.error_code
            ]
        case _:
            return None
    if not parts:
        return None
    call = call_of(known, request)
    call.named = lambda: [(topic, partition) for topic, partition in parts if topic is not None]
    call.is_served = True
    return call


def named(known: KnownCluster, request: Request) -> list[tuple[str, int | None]]:
    """The partitions that a request names; for a fetch, the partitions of its session too."""
    if request.api_key == ApiKey.METADATA and request.body.topics is None:
        return [(name, None) for name in known.topics()]
    topics = topics_named(request.api_key, request.api_version, request.body, known.topic_name)
    if request.api_key == ApiKey.FETCH:
        parts = known.session(request.body.session_id)
        topics += [(wanted.topic, wanted.partition) for wanted in parts]
    return topics
