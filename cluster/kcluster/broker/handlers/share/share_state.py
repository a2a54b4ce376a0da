"""The share state APIs (83 to 87): what brokers ask a share coordinator.

Owns: the answers of InitializeShareGroupState, ReadShareGroupState, WriteShareGroupState,
DeleteShareGroupState and ReadShareGroupStateSummary.
Never: decides about a state (coordinator/share_state does).
Kafka: KafkaApis, ShareCoordinatorService; KIP-932.
Behaviour:
- each share partition is answered when all that was written before is committed;
- a request without a group, or with a topic without partitions, is answered with no result.
Versions:
- WriteShareGroupState, ReadShareGroupStateSummary v1: the number of records that need no further
  delivery (KIP-1226)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.share_state.share_state_log import batches_of
from kcluster.broker.coordinator.share_state.share_state_shard import (
    OnAnswer,
    ShareStateShard,
    StateRefusal,
)
from kcluster.broker.coordinator.share_state.state import (
    NO_COUNT,
    UNINITIALIZED,
    SharePartition,
    ShareState,
)
from kcluster.broker.registry import PARKED, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

Decide = Callable[[ShareStateShard, SharePartition, Any, OnAnswer, int], None]
"""(shard, share partition, the request's row, on_answer, now_ms)."""


@handles(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=(0, 0))
def initialize_share_group_state(broker: Broker, request: Request, now_ms: int) -> Any:
    """Begin the state of share partitions, with a start offset."""

    def decide(
        shard: ShareStateShard,
        partition: SharePartition,
        wanted: m.InitializeShareGroupStateRequest.PartitionData,
        on_answer: OnAnswer,
        at_ms: int,
    ) -> None:
        shard.initialize(partition, wanted.state_epoch, wanted.start_offset, on_answer, at_ms)

    kind = m.InitializeShareGroupStateResponse
    return _serve(
        broker,
        request,
        kind(),
        kind.InitializeStateResult,
        kind.PartitionResult,
        decide,
        "initialize the share state",
        now_ms,
    )


@handles(ApiKey.READ_SHARE_GROUP_STATE, versions=(0, 0))
def read_share_group_state(broker: Broker, request: Request, now_ms: int) -> Any:
    """The states, for the leaders of share partitions."""

    def decide(
        shard: ShareStateShard,
        partition: SharePartition,
        wanted: m.ReadShareGroupStateRequest.PartitionData,
        on_answer: OnAnswer,
        at_ms: int,
    ) -> None:
        shard.read(partition, wanted.leader_epoch, on_answer, at_ms)

    def fill(row: m.ReadShareGroupStateResponse.PartitionResult, state: ShareState | None) -> None:
        assert state is not None, row
        row.state_epoch = state.state_epoch
        row.start_offset = state.start_offset
        row.state_batches = [kind.StateBatch(*batch) for batch in state.batches]

    kind = m.ReadShareGroupStateResponse
    return _serve(
        broker,
        request,
        kind(),
        kind.ReadStateResult,
        kind.PartitionResult,
        decide,
        "read the share state",
        now_ms,
        fill,
    )


@handles(ApiKey.WRITE_SHARE_GROUP_STATE, versions=(0, 1))
def write_share_group_state(broker: Broker, request: Request, now_ms: int) -> Any:
    """What the leaders of share partitions have changed."""

    def decide(
        shard: ShareStateShard,
        partition: SharePartition,
        wanted: m.WriteShareGroupStateRequest.PartitionData,
        on_answer: OnAnswer,
        at_ms: int,
    ) -> None:
        shard.write(
            partition,
            wanted.state_epoch,
            wanted.leader_epoch,
            wanted.start_offset,
            wanted.delivery_complete_count,
            batches_of(wanted.state_batches),
            on_answer,
            at_ms,
        )

    kind = m.WriteShareGroupStateResponse
    return _serve(
        broker,
        request,
        kind(),
        kind.WriteStateResult,
        kind.PartitionResult,
        decide,
        "write the share state",
        now_ms,
    )


@handles(ApiKey.DELETE_SHARE_GROUP_STATE, versions=(0, 0))
def delete_share_group_state(broker: Broker, request: Request, now_ms: int) -> Any:
    """Forget the states; one that is not there is no error."""

    def decide(
        shard: ShareStateShard,
        partition: SharePartition,
        _wanted: m.DeleteShareGroupStateRequest.PartitionData,
        on_answer: OnAnswer,
        at_ms: int,
    ) -> None:
        shard.delete(partition, on_answer, at_ms)

    kind = m.DeleteShareGroupStateResponse
    return _serve(
        broker,
        request,
        kind(),
        kind.DeleteStateResult,
        kind.PartitionResult,
        decide,
        "delete the share state",
        now_ms,
    )


@handles(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=(0, 1))
def read_share_group_state_summary(broker: Broker, request: Request, now_ms: int) -> Any:
    """The states without their batches; one that is not there has start offset -1."""

    def decide(
        shard: ShareStateShard,
        partition: SharePartition,
        _wanted: m.ReadShareGroupStateSummaryRequest.PartitionData,
        on_answer: OnAnswer,
        at_ms: int,
    ) -> None:
        shard.summarize(partition, on_answer, at_ms)

    def fill(
        row: m.ReadShareGroupStateSummaryResponse.PartitionResult, state: ShareState | None
    ) -> None:
        row.start_offset = UNINITIALIZED if state is None else state.start_offset
        row.delivery_complete_count = NO_COUNT if state is None else state.delivery_complete_count
        if state is not None:
            row.leader_epoch = state.leader_epoch
            row.state_epoch = state.state_epoch

    kind = m.ReadShareGroupStateSummaryResponse
    return _serve(
        broker,
        request,
        kind(),
        kind.ReadStateSummaryResult,
        kind.PartitionResult,
        decide,
        "summarize the share state",
        now_ms,
        fill,
    )


# ----------------------------------------------------------------------------------- all of them


def _fill_nothing(_row: Any, _state: ShareState | None) -> None:
    """The answer of a change has only an error code."""


def _serve(
    broker: Broker,
    request: Request,
    response: Any,
    topic_result: Any,
    partition_result: Any,
    decide: Decide,
    action: str,
    now_ms: int,
    fill: Callable[[Any, ShareState | None], None] = _fill_nothing,
) -> Any:
    """Have the coordinator decide about each share partition; reply when all are answered.

    `action`: what error messages call it.
    """
    body = request.body
    if not body.group_id or not all(topic.partitions for topic in body.topics):
        return response
    left = sum(len(topic.partitions) for topic in body.topics)
    if not left:
        return response

    def answered(row: Any, outcome: ShareState | StateRefusal | None, _at_ms: int) -> None:
        nonlocal left
        if isinstance(outcome, StateRefusal):
            message = outcome.message
            row.error_code = outcome.error
            row.error_message = message or f"could not {action}: {outcome.error.text}"
        else:
            fill(row, outcome)
        left -= 1
        if not left:
            broker.reply(request, response)

    for topic in body.topics:
        rows = [partition_result(wanted.partition) for wanted in topic.partitions]
        response.results.append(topic_result(topic.topic_id, rows))
        for wanted, row in zip(topic.partitions, rows, strict=True):
            partition = SharePartition(body.group_id, topic.topic_id, wanted.partition)
            shard = broker.share_state.ready_shard(partition.coordinator_key, now_ms)
            on_answer = partial(answered, row)
            if isinstance(shard, ErrorCode):
                on_answer(StateRefusal(shard), now_ms)
            else:
                decide(shard, partition, wanted, on_answer, now_ms)
    return PARKED
