"""Effects that change messages: the request that the broker gets, the answer that the client gets.

Owns: these changes, as functions of decoded messages.  Never: decides which rule applies
(faults/rules.py does), sends or waits (runtime/gate.py, or a proxy, does), builds an error
response (protocol/error_answers.py does).  Kafka: no counterpart.

A request that writes gets its error here, for the partitions that the rule matches; the broker
serves the rest, and the two responses are merged.  A request that only reads is served by the
broker, and the error is put into its response, so that fetch sessions stay consistent.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct

from kcluster.contract import Request, Rng
from kcluster.events.rule_effects import (
    AnswerError,
    AnyEffect,
    CapVersion,
    CorruptRecords,
    Delay,
    EmptyFetch,
    ReplaceSchemaId,
)
from kcluster.faults.calls import KnownCluster, is_answered, named
from kcluster.faults.records import as_bytes, copied, corrupted, with_schema_id
from kcluster.faults.rules import Rule
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.error_answers import ErrorAnswers, is_read, topic_of
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.protocol.records.compression import Buffer

AnswerChange = Callable[[Message], Message]
"""Makes the client's answer of the broker's; does not change the broker's."""


class Altered(Struct, frozen=True):
    """The messages of an exchange that an effect changes.

    `request`: the request's body for the broker; None: the broker gets no request.  `answer`: the
    answer to the client in place of the broker's; None if there is none: the connection is closed
    for `close_reason`.  `answer_version`: the version of `answer`; None: the request's.  `change`:
    the change of the broker's answer.
    """

    request: Message | None
    answer: Message | None = None
    answer_version: int | None = None
    change: AnswerChange | None = None
    close_reason: str = ""


def with_error(rule: Rule, effect: AnswerError, known: KnownCluster, request: Request) -> Altered:
    """The exchange with the rule's error, for the partitions that the rule matches."""
    wanted = rule.wants if rule.picks_partitions and named(known, request) else None
    answers = ErrorAnswers(
        request.api_key, request.api_version, effect.code, known.topic_name, wanted
    )
    body = request.body
    if effect.after or is_read(request.api_key):
        if request.api_key == ApiKey.FETCH and not effect.after:
            # An error is returned at once, even if the fetch would wait for data.
            body = copy.copy(body)
            body.max_wait_ms = 0
        return Altered(body, change=partial(_overridden, answers, known, rule))
    error_body = answers.answer(body)
    if not is_answered(request):
        # With acks=0 a broker has no other way to report an error.
        reason = f"{effect.error} for a request that gets no answer"
        return Altered(None, close_reason=reason)
    if error_body is None:
        return Altered(body)
    rest = None if wanted is None else answers.rest(body)
    if rest is None:
        return Altered(None, answer=error_body)
    return Altered(rest, change=lambda answer: answers.merged(answer, error_body))


def _overridden(answers: ErrorAnswers, known: KnownCluster, rule: Rule, answer: Message) -> Message:
    """A broker's answer with the error for the partitions that the rule matches."""
    if isinstance(answer, m.FetchResponse) and rule.picks_partitions and not answer.error_code:
        answer = _with_missing(known, rule, answer)
    return answers.override(answer)[0]


def _with_missing(known: KnownCluster, rule: Rule, answer: m.FetchResponse) -> m.FetchResponse:
    """A fetch response with all partitions of its session that a rule matches: an incremental
    response omits partitions without changes, but these must now have the error."""
    there = {
        (topic_of(topic, known.topic_name), data.partition_index)
        for topic in answer.responses
        for data in topic.partitions
    }
    changed = copy.copy(answer)
    changed.responses = list(answer.responses)
    for wanted in known.session(answer.session_id):
        topic = topic_of(wanted, known.topic_name)
        if (
            topic is not None
            and (topic, wanted.partition) not in there
            and rule.wants(topic, wanted.partition)
        ):
            data = _FETCHED(wanted.partition, high_watermark=-1, records=b"")
            changed.responses.append(
                m.FetchResponse.FetchableTopicResponse(wanted.topic, wanted.topic_id, [data])
            )
    return changed


_FETCHED: Final = m.FetchResponse.PartitionData
AnyFetchAnswer = TypeVar("AnyFetchAnswer", m.FetchResponse, m.ShareFetchResponse)
Fetched = TypeVar("Fetched", m.FetchResponse.PartitionData, m.ShareFetchResponse.PartitionData)
ProducedBatch = tuple[tuple[str, bytes], int, Buffer]
"""((topic name, topic id), partition, records) in a Produce request."""
DUPLICATE_TIMEOUT_MS: Final = 30_000
"""Kafka: the default of request.timeout.ms."""


# ------------------------------------------------------------------------------------ records


def with_altered_records(rule: Rule, known: KnownCluster, answer: AnyFetchAnswer) -> AnyFetchAnswer:
    """A fetch's answer with the rule's effect on the records of the partitions that it matches."""
    topics = []
    for topic in answer.responses:
        name = topic_of(topic, known.topic_name)
        altered = copy.copy(topic)
        altered.partitions = [
            _altered(rule.effect, data)
            if data.records and _is_meant(rule, name, data.partition_index)
            else data
            for data in topic.partitions
        ]
        topics.append(altered)
    changed = copy.copy(answer)
    changed.responses = topics
    return changed


def _is_meant(rule: Rule, topic: str | None, partition: int) -> bool:
    """Whether a rule matches a partition; a topic of unknown name only if it matches all."""
    return rule.wants(topic, partition) if topic is not None else not rule.picks_partitions


def _altered(effect: AnyEffect, data: Fetched) -> Fetched:
    """The answer for one partition with an effect on its records."""
    changed = copy.copy(data)
    match effect:
        case CorruptRecords(of=of):
            changed.records = corrupted(as_bytes(data.records), of)
        case ReplaceSchemaId(schema_id=schema_id):
            changed.records = with_schema_id(as_bytes(data.records), schema_id)
        case EmptyFetch():
            changed.records = b""
    return changed


def has_records(answer: m.FetchResponse) -> bool:
    """Whether a fetch's answer has records for any partition."""
    return any(data.records for topic in answer.responses for data in topic.partitions)


def batches_of(body: m.ProduceRequest) -> list[ProducedBatch]:
    """The batches of a Produce request.  They are read before the broker serves it, as the broker
    takes them out of the request."""
    return [
        ((topic.name, topic.topic_id), data.index, data.records)
        for topic in body.topic_data
        for data in topic.partition_data
        if data.records
    ]


def duplicate_of(
    rule: Rule, known: KnownCluster, batches: Sequence[ProducedBatch], answer: m.ProduceResponse
) -> m.ProduceRequest | None:
    """The request that appends copies of a request's batches: those that were appended, to
    partitions that the rule matches; None if there are none.  Its answer is for no client."""
    appended = {
        (topic.name, topic.topic_id, data.index)
        for topic in answer.responses
        for data in topic.partition_responses
        if not data.error_code
    }
    kind = m.ProduceRequest
    topics: dict[tuple[str, bytes], m.ProduceRequest.TopicProduceData] = {}
    for (name, topic_id), index, records in batches:
        topic = name or known.topic_name(topic_id)
        if (name, topic_id, index) in appended and _is_meant(rule, topic, index):
            entry = topics.setdefault(
                (name, topic_id), kind.TopicProduceData(name, topic_id, partition_data=[])
            )
            entry.partition_data.append(kind.PartitionProduceData(index, copied(records)))
    if not topics:
        return None
    return kind(acks=1, timeout_ms=DUPLICATE_TIMEOUT_MS, topic_data=list(topics.values()))


# ----------------------------------------------------------------------------------- versions


def with_caps(rules: Iterable[Rule], request: Request) -> Altered:
    """The exchange with a broker that knows no version of some APIs above the caps of these rules:
    ApiVersions shows the caps, and a request above one closes its connection, as from Kafka.  A too
    new ApiVersions request is answered in version 0 (KIP-511)."""
    caps: dict[int, int] = {}
    for rule in rules:
        assert isinstance(rule.effect, CapVersion)
        for key in rule.apis:
            caps[key] = min(rule.effect.max_version, caps.get(key, rule.effect.max_version))
    most = caps.get(request.api_key, request.api_version)
    if request.api_key != ApiKey.API_VERSIONS:
        api = APIS[request.api_key].name
        reason = f"{api} version {request.api_version} is not served: a rule caps it at {most}"
        return Altered(None, close_reason=reason)
    if request.api_version > most:
        known = m.ApiVersionsResponse.ApiVersion(ApiKey.API_VERSIONS, 0, most)
        refusal = m.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[known])
        return Altered(None, answer=refusal, answer_version=0)
    return Altered(request.body, change=partial(_capped, caps))


def _capped(caps: Mapping[int, int], answer: Message) -> Message:
    assert isinstance(answer, m.ApiVersionsResponse)
    changed = copy.copy(answer)
    changed.api_keys = []
    for line in answer.api_keys:
        most = caps.get(line.api_key, line.max_version)
        if line.max_version <= most:
            changed.api_keys.append(line)
        elif line.min_version <= most:
            below = m.ApiVersionsResponse.ApiVersion(line.api_key, line.min_version, most)
            changed.api_keys.append(below)
    return changed


# -------------------------------------------------------------------------------------- times


def throttled(answer: Message, throttle_ms: int) -> Message:
    """An answer with this throttle_time_ms; unchanged if it has no such field."""
    if not hasattr(answer, "throttle_time_ms"):
        return answer
    changed = copy.copy(answer)
    changed.throttle_time_ms = throttle_ms
    return changed


def drawn_us(delay: Delay, rng: Rng) -> int:
    """The time for which a request or a reply is held, in µs."""
    return delay.delay_ms * 1000 + (rng.randrange(delay.jitter_ms * 1000 + 1))
