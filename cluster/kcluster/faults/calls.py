"""Requests and answers of brokers, as rules look at them and errors are put into them.

Owns: what a request is about, a fetch of a session included; an answer with the error of a rule.
Never: decides or holds anything (gate.py does).  Kafka: no counterpart.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from kcluster.broker.node import BrokerNode
from kcluster.contract import Reply, Request
from kcluster.faults.effects import Answer
from kcluster.faults.rules import Call, Rule
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.error_answers import ErrorAnswers, topic_of, topics_named


def is_answered(request: Request) -> bool:
    """Whether its client expects an answer."""
    return request.api_key != ApiKey.PRODUCE or request.body.acks != 0


def call_of(node: BrokerNode, request: Request) -> Call:
    """What rules look at."""
    return Call(
        request.api_key, request.api_version, request.client_id or "", node.node_id,
        is_answered(request), partial(named, node, request),
    )  # fmt: skip


def named(node: BrokerNode, request: Request) -> list[tuple[str, int | None]]:
    """What a request is about: a fetch of a session also what it named before."""
    names = node.image.topic_names
    if request.api_key == ApiKey.METADATA and request.body.topics is None:
        return [(name, None) for name in node.image.topics]
    found = topics_named(request.api_key, request.api_version, request.body, names.get)
    if request.api_key == ApiKey.FETCH:
        known = node.sessions.peek(request.body.session_id)
        found += [(wanted.topic, wanted.partition) for wanted in known]
    return found


def with_error(
    answers: ErrorAnswers, node: BrokerNode, rule: Rule, request: Request, _node_id: int,
    reply: Reply,
) -> Reply:  # fmt: skip
    if reply.body is None:
        return reply
    body = reply.body
    effect = rule.effect
    assert isinstance(effect, Answer)
    if request.api_key == ApiKey.FETCH and rule.picks_partitions and not body.error_code:
        body = _with_missing(node, rule, body)
    told, _ = answers.override(body)
    return Reply(reply.request, told)


def _with_missing(node: BrokerNode, rule: Rule, body: Any) -> Any:
    """A fetch's answer with those of its session's partitions that a rule means: an incremental one
    leaves out what has no news, but an error is news."""
    names = node.image.topic_names
    there = {
        (topic_of(topic, names.get), data.partition_index)
        for topic in body.responses
        for data in topic.partitions
    }
    told = copy.copy(body)
    told.responses = list(body.responses)
    kind = m.FetchResponse
    for wanted in node.sessions.peek(body.session_id):
        topic = topic_of(wanted, names.get)
        if (
            topic is not None
            and (topic, wanted.partition) not in there
            and rule.wants(topic, wanted.partition)
        ):
            data = kind.PartitionData(wanted.partition, high_watermark=-1, records=b"")
            told.responses.append(
                kind.FetchableTopicResponse(wanted.topic, wanted.topic_id, [data])
            )
    return told
