"""Requests in the form that rules match; brokers' responses with a rule's error, or from old
metadata, for the rule `stale`.

Owns: the partitions that a request names, including the partitions of its fetch session; the
changed response; the copy of a broker's image.  Never: decides or holds anything (runtime/gate.py
does), changes the broker.  Kafka: no counterpart; for `stale`, a broker whose metadata log lags.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from kcluster.broker.authorization import admit
from kcluster.broker.node_view import BrokerNodeView
from kcluster.broker.registry import PARKED, SERVED_APIS
from kcluster.contract import Reply, Request
from kcluster.events.rule_effects import AnswerError
from kcluster.faults.rules import Call, Rule
from kcluster.metadata.image import MetadataImage, TopicImage
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.error_answers import ErrorAnswers, topic_of, topics_named


def is_answered(request: Request) -> bool:
    """Whether the request's client expects an answer."""
    return request.api_key != ApiKey.PRODUCE or request.body.acks != 0


def call_of(node: BrokerNodeView, request: Request) -> Call:
    """A request in the form that rules match."""
    return Call(
        request.api_key,
        request.api_version,
        request.client_id or "",
        node.node_id,
        is_answered(request),
        partial(named, node, request),
    )


def named(node: BrokerNodeView, request: Request) -> list[tuple[str, int | None]]:
    """The partitions that a request names; for a fetch, the partitions of its session too."""
    names = node.image.topic_names
    if request.api_key == ApiKey.METADATA and request.body.topics is None:
        return [(name, None) for name in node.image.topics]
    topics = topics_named(request.api_key, request.api_version, request.body, names.get)
    if request.api_key == ApiKey.FETCH:
        known = node.sessions.peek(request.body.session_id)
        topics += [(wanted.topic, wanted.partition) for wanted in known]
    return topics


def with_error(
    answers: ErrorAnswers,
    node: BrokerNodeView,
    rule: Rule,
    request: Request,
    _node_id: int,
    reply: Reply,
) -> Reply:
    """A broker's reply with the rule's error for the partitions that the rule matches."""
    if reply.body is None:
        return reply
    body = reply.body
    effect = rule.effect
    assert isinstance(effect, AnswerError)
    if request.api_key == ApiKey.FETCH and rule.picks_partitions and not body.error_code:
        body = _with_missing(node, rule, body)
    changed, _ = answers.override(body)
    return Reply(reply.request, changed)


def _with_missing(node: BrokerNodeView, rule: Rule, body: m.FetchResponse) -> m.FetchResponse:
    """A fetch response with all partitions of its session that a rule matches: an incremental
    response omits partitions without changes, but these must now have the error."""
    names = node.image.topic_names
    there = {
        (topic_of(topic, names.get), data.partition_index)
        for topic in body.responses
        for data in topic.partitions
    }
    changed = copy.copy(body)
    changed.responses = list(body.responses)
    kind = m.FetchResponse
    for wanted in node.sessions.peek(body.session_id):
        topic = topic_of(wanted, names.get)
        if (
            topic is not None
            and (topic, wanted.partition) not in there
            and rule.wants(topic, wanted.partition)
        ):
            data = kind.PartitionData(wanted.partition, high_watermark=-1, records=b"")
            changed.responses.append(
                kind.FetchableTopicResponse(wanted.topic, wanted.topic_id, [data])
            )
    return changed


class StaleImage:
    """A broker's image as of the creation of this object."""

    def __init__(self, node: BrokerNodeView) -> None:
        self._image = copied(node.image)

    def answer(self, node: BrokerNodeView, request: Request, now_ms: int) -> Any:
        """The response that the broker would have given at that time. If the response requests the
        creation of a topic, the broker sends the request in its next step."""
        then: Any = _BrokerThen(node, self._image)
        access, asked = node.access, request
        if access is not None:
            admitted = admit(then, request)
            if not isinstance(admitted, Request):
                return admitted
            asked = admitted
        body = SERVED_APIS[request.api_key].handler(then, asked, now_ms)
        assert body is not PARKED, request
        return body if access is None else access.complete(asked, body)[1]


class _BrokerThen:
    """A broker with an old image, as a handler reads it."""

    def __init__(self, node: BrokerNodeView, image: MetadataImage) -> None:
        self.image = image
        self._node = node

    def __getattr__(self, name: str) -> object:
        return getattr(self._node, name)


def copied(image: MetadataImage) -> MetadataImage:
    """A copy that does not change with the image: its values are replaced rather than mutated,
    except for the lists of partitions and the dicts of configs, which are copied."""
    copy = MetadataImage()
    for name in MetadataImage.__slots__:
        value = getattr(image, name)
        setattr(copy, name, dict(value) if isinstance(value, dict) else value)
    copy.topics = {
        name: TopicImage(topic.name, topic.topic_id, list(topic.partitions))
        for name, topic in image.topics.items()
    }
    copy.configs = {key: dict(values) for key, values in image.configs.items()}
    copy.client_quotas = {key: dict(values) for key, values in image.client_quotas.items()}
    return copy
