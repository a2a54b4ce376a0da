"""The share state APIs (83 to 87): brokers' requests to a share coordinator.

Owns: the answers of InitializeShareGroupState, ReadShareGroupState, WriteShareGroupState,
DeleteShareGroupState and ReadShareGroupStateSummary.
Never: decides about a state (coordinator/share_state does).
Kafka: KafkaApis, ShareCoordinatorService; KIP-932.
Behaviour:
- each share partition is answered when all earlier writes are committed;
- a request without a group, or with a topic without partitions, is answered with no result.
Versions:
- WriteShareGroupState, ReadShareGroupStateSummary v1: the number of records that need no further
  delivery (KIP-1226)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.interface import OnAnswer, RequestRefused
from kcluster.broker.coordinator.share_state.share_state_log import batches_of
from kcluster.broker.coordinator.share_state.share_states import Decided, ShareStates
from kcluster.broker.coordinator.share_state.state import (
    NO_COUNT,
    UNINITIALIZED,
    SharePartition,
    ShareState,
)
from kcluster.broker.gather import gather
from kcluster.broker.registry import PARKED, Answer, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.messages import Message

Decide = Callable[[ShareStates, SharePartition, Any, int], Decided]
"""Decides on one share partition from (states, share partition, the request's row, now_ms)."""
Fill = Callable[[Any, ShareState | None], None]
"""Puts a state into a row of the answer."""


def _fill_nothing(_row: object, _state: ShareState | None) -> None:
    """Fill in nothing, for the answer of a change, which has only an error code."""


class _Api(Struct, frozen=True):
    """The differences between the five APIs.  `action`: the API's verb in error messages;
    `response`, `topic_result`, `partition_result`: the classes of the answer."""

    action: str
    response: Callable[..., Message]
    topic_result: Callable[..., Message]
    partition_result: Callable[..., Message]
    decide: Decide
    fill: Fill = _fill_nothing


def _initialize(
    states: ShareStates,
    partition: SharePartition,
    wanted: m.InitializeShareGroupStateRequest.PartitionData,
    now_ms: int,
) -> Decided:
    return states.initialize(partition, wanted.state_epoch, wanted.start_offset, now_ms)


def _read(
    states: ShareStates,
    partition: SharePartition,
    wanted: m.ReadShareGroupStateRequest.PartitionData,
    now_ms: int,
) -> Decided:
    return states.read(partition, wanted.leader_epoch, now_ms)


def _update(
    states: ShareStates,
    partition: SharePartition,
    wanted: m.WriteShareGroupStateRequest.PartitionData,
    now_ms: int,
) -> Decided:
    return states.update(
        partition,
        wanted.state_epoch,
        wanted.leader_epoch,
        wanted.start_offset,
        wanted.delivery_complete_count,
        batches_of(wanted.state_batches),
        now_ms,
    )


def _delete(states: ShareStates, partition: SharePartition, _row: object, _now_ms: int) -> Decided:
    return states.delete(partition)


def _summarize(
    states: ShareStates, partition: SharePartition, _row: object, _now_ms: int
) -> Decided:
    return states.summarize(partition)


def _fill_state(
    row: m.ReadShareGroupStateResponse.PartitionResult, state: ShareState | None
) -> None:
    assert state is not None, row
    batch_row = m.ReadShareGroupStateResponse.StateBatch
    row.state_epoch = state.state_epoch
    row.start_offset = state.start_offset
    row.state_batches = [batch_row(*batch) for batch in state.batches]


def _fill_summary(
    row: m.ReadShareGroupStateSummaryResponse.PartitionResult, state: ShareState | None
) -> None:
    row.start_offset = UNINITIALIZED if state is None else state.start_offset
    row.delivery_complete_count = NO_COUNT if state is None else state.delivery_complete_count
    if state is not None:
        row.leader_epoch = state.leader_epoch
        row.state_epoch = state.state_epoch


_INITIALIZED: Final = m.InitializeShareGroupStateResponse
_STATES: Final = m.ReadShareGroupStateResponse
_WRITTEN: Final = m.WriteShareGroupStateResponse
_DELETED: Final = m.DeleteShareGroupStateResponse
_SUMMARY: Final = m.ReadShareGroupStateSummaryResponse
_INITIALIZE_API: Final = _Api(
    action="initialize the share state",
    response=_INITIALIZED,
    topic_result=_INITIALIZED.InitializeStateResult,
    partition_result=_INITIALIZED.PartitionResult,
    decide=_initialize,
)
_READ_API: Final = _Api(
    action="read the share state",
    response=_STATES,
    topic_result=_STATES.ReadStateResult,
    partition_result=_STATES.PartitionResult,
    decide=_read,
    fill=_fill_state,
)
_WRITE_API: Final = _Api(
    action="write the share state",
    response=_WRITTEN,
    topic_result=_WRITTEN.WriteStateResult,
    partition_result=_WRITTEN.PartitionResult,
    decide=_update,
)
_DELETE_API: Final = _Api(
    action="delete the share state",
    response=_DELETED,
    topic_result=_DELETED.DeleteStateResult,
    partition_result=_DELETED.PartitionResult,
    decide=_delete,
)
_SUMMARIZE_API: Final = _Api(
    action="summarize the share state",
    response=_SUMMARY,
    topic_result=_SUMMARY.ReadStateSummaryResult,
    partition_result=_SUMMARY.PartitionResult,
    decide=_summarize,
    fill=_fill_summary,
)


@handles(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=(0, 0))
def initialize_share_group_state(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Begin the state of share partitions, with a start offset."""
    return _serve(broker, request, _INITIALIZE_API, now_ms)


@handles(ApiKey.READ_SHARE_GROUP_STATE, versions=(0, 0))
def read_share_group_state(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Read the states, for the leaders of share partitions."""
    return _serve(broker, request, _READ_API, now_ms)


@handles(ApiKey.WRITE_SHARE_GROUP_STATE, versions=(0, 1))
def write_share_group_state(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Write the changes of the leaders of share partitions."""
    return _serve(broker, request, _WRITE_API, now_ms)


@handles(ApiKey.DELETE_SHARE_GROUP_STATE, versions=(0, 0))
def delete_share_group_state(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Forget the states; a missing one is no error."""
    return _serve(broker, request, _DELETE_API, now_ms)


@handles(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=(0, 1))
def read_share_group_state_summary(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Read the states without their batches; a missing one has start offset -1."""
    return _serve(broker, request, _SUMMARIZE_API, now_ms)


# ----------------------------------------------------------------------------------- all of them


def _serve(broker: Broker, request: Request, api: _Api, now_ms: int) -> Answer:
    """Have the coordinator decide for each share partition; reply when all are answered."""
    body = request.body
    results: list[Message] = []
    response = api.response(results=results)
    if not body.group_id or not all(topic.partitions for topic in body.topics):
        return response
    asked: list[tuple[SharePartition, Any, Any]] = []
    for topic in body.topics:
        rows = [api.partition_result(wanted.partition) for wanted in topic.partitions]
        results.append(api.topic_result(topic.topic_id, rows))
        for wanted, row in zip(topic.partitions, rows, strict=True):
            partition = SharePartition(body.group_id, topic.topic_id, wanted.partition)
            asked.append((partition, wanted, row))

    def serve(index: int, on_answer: OnAnswer[ShareState | None]) -> None:
        partition, wanted, _ = asked[index]

        def decide(states: ShareStates) -> Decided:
            return api.decide(states, partition, wanted, now_ms)

        broker.share_state.serve(partition, decide, on_answer, now_ms)

    def served(outcomes: dict[int, ShareState | RequestRefused | None], _at_ms: int) -> None:
        for index, outcome in outcomes.items():
            _fill(asked[index][2], outcome, api)
        broker.reply(request, response)

    gather(range(len(asked)), serve, served, now_ms)
    return PARKED


def _fill(row: Any, outcome: ShareState | RequestRefused | None, api: _Api) -> None:
    if isinstance(outcome, RequestRefused):
        message = outcome.message
        row.error_code = outcome.error
        row.error_message = message or f"could not {api.action}: {outcome.error.text}"
    else:
        api.fill(row, outcome)
