from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import Controller


def grow(t: Controller, *topics: tuple[str, int, Any], validate_only: bool = False) -> list[Any]:
    ask = m.CreatePartitionsRequest
    request = ask(
        topics=[
            ask.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else [ask.CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assignments],
            )
            for name, count, assignments in topics
        ],
        validate_only=validate_only,
    )
    return list(t.ask(1, request).results)


def test_create_partitions__new_ones_start_at_epoch_zero() -> None:
    t = Controller()
    t.create("orders", partitions=2)
    (result,) = grow(t, ("orders", 4, None))
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    partitions = t.follow(2).topics["orders"].partitions
    assert [p.partition for p in partitions] == [0, 1, 2, 3]
    assert all(p.leader_epoch == 0 and len(p.replicas) == 3 for p in partitions)


def test_create_partitions__by_hand() -> None:
    t = Controller()
    t.create("orders", [[1, 2]])
    grow(t, ("orders", 2, [[3, 1]]))
    assert t.partition("orders", 1).replicas == (3, 1)


@pytest.mark.parametrize(
    ("topics", "error", "text"),
    [
        ([("orders", 2, None)], ErrorCode.INVALID_PARTITIONS, "already has 2"),
        ([("orders", 1, None)], ErrorCode.INVALID_PARTITIONS, "1 would not be an increase"),
        ([("zz", 3, None)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        ([("orders", 2**31 - 1, None)], ErrorCode.POLICY_VIOLATION, "Excessively large"),
        ([("orders", 4, [[1, 2, 3]])], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "only 1"),
        ([("orders", 3, [[1, 2]])], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not consistent"),
        ([("orders", 3, [[1, 2, 9]])], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 9"),
        ([("orders", 3, None), ("orders", 4, None)], ErrorCode.INVALID_REQUEST, "Duplicate"),
    ],
)
def test_create_partitions__refused(topics: Any, error: ErrorCode, text: str | None) -> None:
    t = Controller()
    t.create("orders", partitions=2)
    (result,) = grow(t, *topics)
    assert ErrorCode(result.error_code) is error
    assert result.error_message is None if text is None else text in result.error_message
    assert len(t.node.image.topics["orders"].partitions) == 2


def test_create_partitions__validate_only() -> None:
    t = Controller()
    t.create("orders")
    assert grow(t, ("orders", 9, None), validate_only=True)[0].error_code == ErrorCode.NONE
    assert len(t.node.image.topics["orders"].partitions) == 1
