"""CreateTopics, DeleteTopics, CreatePartitions, UnregisterBroker: the controller decides.

Owns: the answers when the controller does not answer in time.  Never: checks or changes anything.
Kafka: KafkaApis (forwarded), ControllerApis; KIP-4, KIP-195, KIP-516, KIP-631.
"""

from __future__ import annotations

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.forwarding import forward
from kcluster.broker.registry import Answer, handles
from kcluster.broker.versions import FIRST_WITH_PARTITION_DEFAULTS
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode


@handles(ApiKey.CREATE_TOPICS, versions=(2, 7))
def create_topics(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Create topics.

    Behaviour:
    - as the controller answers; REQUEST_TIMED_OUT for every topic after timeout_ms;
    - the answer does not wait for brokers to learn of the topics.
    Versions:
    - v4: default partitions and replication factor (KIP-464)
    - v5: the topics' configs in the answer (KIP-525)
    - v6: a quota is an error (KIP-599)
    - v7: topic ids (KIP-516)
    Not done: policies.
    """
    if broker.release.number < FIRST_WITH_PARTITION_DEFAULTS:
        _take_no_defaults(request.body)
    return forward(broker, request, request.body.timeout_ms, create_topics_timed_out, now_ms)


def _take_no_defaults(request: m.CreateTopicsRequest) -> None:
    """Replace a -1 (the default) by 0, which the controller refuses; partitions first."""
    for topic in request.topics:
        if not topic.assignments and topic.num_partitions == -1:
            topic.num_partitions = 0
        elif not topic.assignments and topic.replication_factor == -1:
            topic.replication_factor = 0


@handles(ApiKey.DELETE_TOPICS, versions=(1, 6))
def delete_topics(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Delete topics.

    Behaviour:
    - as the controller answers; REQUEST_TIMED_OUT for every topic after timeout_ms.
    Versions:
    - v5: error messages; a quota is an error (KIP-599)
    - v6: by topic id (KIP-516)
    """
    return forward(broker, request, request.body.timeout_ms, delete_topics_timed_out, now_ms)


@handles(ApiKey.CREATE_PARTITIONS, versions=(0, 3))
def create_partitions(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Add partitions to topics.

    Behaviour:
    - as the controller answers; REQUEST_TIMED_OUT for every topic after timeout_ms.
    Versions:
    - v2: flexible
    - v3: a quota is an error (KIP-599)
    """
    return forward(broker, request, request.body.timeout_ms, create_partitions_timed_out, now_ms)


@handles(ApiKey.UNREGISTER_BROKER, versions=(0, 0))
def unregister_broker(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Forget a broker that will not return.

    Behaviour:
    - as the controller answers; REQUEST_TIMED_OUT after request.timeout.ms.
    Versions:
    - v0: KIP-631
    """
    timeout_ms = broker.config.request_timeout_ms
    return forward(broker, request, timeout_ms, unregister_broker_timed_out, now_ms)


# --------------------------------------------------------------------------- after a time-out


def create_topics_timed_out(request: m.CreateTopicsRequest) -> m.CreateTopicsResponse:
    """REQUEST_TIMED_OUT for each topic of the request, once."""
    return m.CreateTopicsResponse(
        topics=[
            m.CreateTopicsResponse.CreatableTopicResult(
                name=name, error_code=ErrorCode.REQUEST_TIMED_OUT, error_message=None
            )
            for name in dict.fromkeys(topic.name for topic in request.topics)
        ]
    )


def delete_topics_timed_out(request: m.DeleteTopicsRequest) -> m.DeleteTopicsResponse:
    """REQUEST_TIMED_OUT for each topic: by name before v6, later by name or id."""
    return m.DeleteTopicsResponse(
        responses=[
            m.DeleteTopicsResponse.DeletableTopicResult(
                name=name,
                topic_id=topic_id,
                error_code=ErrorCode.REQUEST_TIMED_OUT,
                error_message=None,
            )
            for name, topic_id in (
                *((name, bytes(16)) for name in request.topic_names),
                *((topic.name, topic.topic_id) for topic in request.topics),
            )
        ]
    )


def create_partitions_timed_out(request: m.CreatePartitionsRequest) -> m.CreatePartitionsResponse:
    """REQUEST_TIMED_OUT for each topic."""
    return m.CreatePartitionsResponse(
        results=[
            m.CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=topic.name, error_code=ErrorCode.REQUEST_TIMED_OUT, error_message=None
            )
            for topic in request.topics
        ]
    )


def unregister_broker_timed_out(_request: m.UnregisterBrokerRequest) -> m.UnregisterBrokerResponse:
    """REQUEST_TIMED_OUT."""
    error = ErrorCode.REQUEST_TIMED_OUT
    return m.UnregisterBrokerResponse(error_code=error, error_message=error.text)
