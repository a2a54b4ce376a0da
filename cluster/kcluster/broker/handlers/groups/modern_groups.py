"""The common part of the handlers of groups with epochs: consumer, share and streams groups.

Owns: the check whether a kind of group is served, the answer of a heartbeat, the rows of a Describe
request.  Never: changes a group, knows a kind.  Kafka: KafkaApis, GroupCoordinatorService; KIP-848,
KIP-932, KIP-1071.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.interface import CoordinatorResult, RequestRefused
from kcluster.broker.coordinator.modern.group import AnyModernGroup, ToJoin
from kcluster.broker.handlers.groups.groups import GROUP_OPERATIONS
from kcluster.broker.registry import PARKED, Parked
from kcluster.contract import Request
from kcluster.protocol.errors import ErrorCode

A = TypeVar("A")
G = TypeVar("G", bound=AnyModernGroup)


def is_served(broker: Broker, kind: type[AnyModernGroup], feature: str) -> bool:
    """Whether groups of this kind are served: the feature is on, and
    group.coordinator.rebalance.protocols names the protocol."""
    protocols = broker.config.group_coordinator_rebalance_protocols
    return kind.protocol in protocols and broker.image.supports(feature)


def serve_heartbeat(
    broker: Broker,
    request: Request,
    kind: type[G],
    decide: Callable[[ToJoin[G], Request, int], CoordinatorResult[A] | RequestRefused],
    response: Callable[..., A],
    now_ms: int,
) -> Parked:
    """Have the group decide, and answer when the decision is committed."""

    def answer(outcome: A | RequestRefused, _at_ms: int) -> None:
        if isinstance(outcome, RequestRefused):
            outcome = refusal_of(response, outcome)
        broker.reply(request, outcome)

    broker.coordinator.modern_heartbeat(kind, decide, request, answer, now_ms)
    return PARKED


def refusal_of(response: Callable[..., A], refusal: RequestRefused) -> A:
    """The answer to a heartbeat that changes nothing."""
    return response(error_code=refusal.error, error_message=refusal.message)


class DescribedRow(Protocol):
    """A group in the answer."""

    error_code: int
    authorized_operations: int


Row = TypeVar("Row", bound=DescribedRow)


def describe_groups(
    broker: Broker,
    request: Request,
    kind: type[G],
    is_served: bool,
    row: Callable[..., Row],
    describe: Callable[[G], Row],
) -> list[Row]:
    """A row for each group.

    DIFFERS: Kafka describes the group from committed records; here from records that are written,
    committed or not.
    """
    body = request.body
    rows = [_described(broker, one, kind, is_served, row, describe) for one in body.group_ids]
    for each in rows:
        if body.include_authorized_operations and each.error_code == ErrorCode.NONE:
            each.authorized_operations = GROUP_OPERATIONS
    return rows


def _described(
    broker: Broker,
    group_id: str,
    kind: type[G],
    is_served: bool,
    row: Callable[..., Row],
    describe: Callable[[G], Row],
) -> Row:
    if not is_served:
        return row(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return row(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    described = broker.coordinator.describe(group_id, kind, describe)
    if isinstance(described, RequestRefused):
        error, message = described.error, described.message
        return row(group_id=group_id, error_code=error, error_message=message)
    return described
