"""AlterPartitionReassignments (API 45, v0-1), ListPartitionReassignments (API 46, v0): the
controller decides.

Owns: the answers when the controller does not answer in time.  Never: checks or changes anything.
Kafka: KafkaApis (forwarded), ControllerApis, QuorumController; KIP-455, KIP-860.
"""

from __future__ import annotations

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.forwarding import forward
from kcluster.broker.registry import Answer, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode


@handles(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=(0, 1))
def alter_partition_reassignments(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Move partitions to other brokers, or cancel such moves.

    Behaviour:
    - as the controller answers; after timeout_ms REQUEST_TIMED_OUT for the whole request and each
      partition;
    - the answer does not wait for the move;
    - a request without topics is answered at once. Versions:
    - v1: allow_replication_factor_change (KIP-860)
    """
    body: m.AlterPartitionReassignmentsRequest = request.body
    if not body.topics:
        return m.AlterPartitionReassignmentsResponse()
    return forward(broker, request, body.timeout_ms, alter_timed_out, now_ms)


@handles(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=(0, 0))
def list_partition_reassignments(broker: Broker, request: Request, now_ms: int) -> Answer:
    """List the partitions that are being moved.

    Behaviour:
    - as the controller answers.  timeout_ms is ignored, as by Kafka: its controller reads at once,
      and the broker waits for request.timeout.ms.
    Versions:
    - v0: KIP-455
    """
    return forward(broker, request, broker.config.request_timeout_ms, list_timed_out, now_ms)


def alter_timed_out(
    request: m.AlterPartitionReassignmentsRequest,
) -> m.AlterPartitionReassignmentsResponse:
    """REQUEST_TIMED_OUT for the whole request and for each partition."""
    answer = m.AlterPartitionReassignmentsResponse
    return answer(
        error_code=ErrorCode.REQUEST_TIMED_OUT,
        error_message=None,
        responses=[
            answer.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    answer.ReassignablePartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.REQUEST_TIMED_OUT,
                        error_message=None,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def list_timed_out(
    request: m.ListPartitionReassignmentsRequest,
) -> m.ListPartitionReassignmentsResponse:
    """REQUEST_TIMED_OUT; as in Kafka, every partition that the request names seems to move."""
    answer = m.ListPartitionReassignmentsResponse
    moving = answer.OngoingPartitionReassignment
    return answer(
        error_code=ErrorCode.REQUEST_TIMED_OUT,
        error_message=None,
        topics=[
            answer.OngoingTopicReassignment(
                name=topic.name,
                partitions=[moving(partition_index=index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )
