"""The controller's decisions: each that it must not take is named, though no record is lost yet."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.invariants.decisions import (
    eligible_newcomers,
    ended_early,
    needless_elr,
    outdated_proposal,
    proposals_in,
    unfenced_behind,
)
from kcluster.invariants.words import observed_text
from kcluster.metadata.records import BrokerRegistration, PartitionRegistration
from kcluster.principals import BrokerEndpoint
from kcluster.protocol import messages as m

TOPIC_ID = b"t" * 16


def registration(**changes: Any) -> PartitionRegistration:
    fields: dict[str, Any] = {
        "topic_id": TOPIC_ID,
        "partition": 0,
        "replicas": (1, 2, 3),
        "isr": (1, 2),
        "leader": 1,
        "leader_epoch": 3,
        "partition_epoch": 5,
    }
    return PartitionRegistration(**(fields | changes))


def broker(number: int, epoch: int) -> BrokerRegistration:
    endpoints = (BrokerEndpoint("host", 9092),)
    return BrokerRegistration(number, epoch, endpoints, None, fenced=False)


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "broker_epoch", "partition_epoch_after", "found"),
    [
        (3, 5, 20, 6, ""),
        (3, 5, -1, 6, ""),
        (2, 5, 20, 6, "leader epoch 2 was named, 3 was current"),
        (3, 4, 20, 6, "partition epoch 4 was named, 5 was current"),
        (3, 5, 19, 6, "broker epoch 19 was named, 20 was current"),
        (3, 4, 19, 5, ""),
    ],
    ids=["current", "any broker", "old leader", "old partition", "old life", "refused"],
)
def test_proposal__of_an_older_state_must_be_refused(
    leader_epoch: int,
    partition_epoch: int,
    broker_epoch: int,
    partition_epoch_after: int,
    found: str,
) -> None:
    proposal = m.AlterPartitionRequest.PartitionData(
        partition_index=0,
        leader_epoch=leader_epoch,
        new_isr_with_epochs=[
            m.AlterPartitionRequest.BrokerState(broker_id=1, broker_epoch=11),
            m.AlterPartitionRequest.BrokerState(broker_id=3, broker_epoch=broker_epoch),
        ],
        partition_epoch=partition_epoch,
    )
    topic = m.AlterPartitionRequest.TopicData(topic_id=TOPIC_ID, partitions=[proposal])
    request = m.AlterPartitionRequest(broker_id=1, broker_epoch=11, topics=[topic])
    assert dict(proposals_in(request)) == {(TOPIC_ID, 0): proposal}
    brokers = {1: broker(1, 11), 3: broker(3, 20)}
    after = registration(isr=(1, 3), partition_epoch=partition_epoch_after)
    problems = outdated_proposal(proposal, registration(), after, brokers)
    assert [_text(one) for one in problems] == ([f"isr-outdated: {found}"] if found else [])


def _text(problem: tuple[str, Any]) -> str:
    name, fact = problem
    return f"{name}: {observed_text(fact)}"


def test_unfenced__a_broker_has_applied_its_own_registration() -> None:
    assert list(unfenced_behind(broker(3, 20), 20)) == []
    (problem,) = unfenced_behind(broker(3, 20), 19)
    assert _text(problem) == "unfenced-behind: metadata offset 19, broker epoch 20"


MOVING = registration(
    replicas=(2, 3, 4, 1), adding_replicas=(4,), removing_replicas=(1,), isr=(1, 2)
)
SHRINKING = registration(replicas=(1, 2, 3), isr=(1, 2))


@pytest.mark.parametrize(
    ("old", "changes", "late"),
    [
        (MOVING, {"replicas": (2, 3, 4), "isr": (2, 4)}, ""),
        (
            MOVING,
            {"replicas": (2, 3, 4), "isr": (2, 3)},
            "[4] were needed in the ISR, which is [2, 3]",
        ),
        (MOVING, {"replicas": (2, 3, 1), "isr": (2,)}, ""),
        (MOVING, {"replicas": (2, 3, 4), "isr": (2, 3), "partition_epoch": 7}, ""),
        (SHRINKING, {"replicas": (1, 2), "isr": (1, 2)}, ""),
        (SHRINKING, {"replicas": (1, 3), "isr": (1,)}, "[3] were needed in the ISR, which is [1]"),
        (SHRINKING, {"isr": (1,)}, ""),
    ],
    ids=["in sync", "late", "cancelled", "two changes", "smaller", "smaller, late", "no move"],
)
def test_reassignment__ends_with_what_it_needs_in_sync(
    old: PartitionRegistration, changes: dict[str, Any], late: str
) -> None:
    new = registration(**({"partition_epoch": 6} | changes))
    expected = [f"reassigned-early: {late}"] if late else []
    assert [_text(one) for one in ended_early(new, old)] == expected


def test_elr__is_empty_beside_enough_in_sync_replicas() -> None:
    partition = registration(isr=(1,), elr=(2, 3))
    assert list(needless_elr(partition, 2)) == []
    (problem,) = needless_elr(partition, 1)
    assert (
        _text(problem) == "elr-needless: [2, 3] are in the ELR, though enough are in the ISR: [1]"
    )
    assert list(needless_elr(registration(isr=(1,)), 1)) == []


def test_newcomer__is_not_eligible() -> None:
    """KIP-966: its log is empty, whatever it had when it was a replica before."""
    old = registration(replicas=(1, 2), elr=(3,), isr=(1,))
    joined = registration(elr=(3,), isr=(1,), adding_replicas=(3,), partition_epoch=6)
    (problem,) = eligible_newcomers(joined, old)
    found = "eligible-newcomer: [3] were no replicas before; the replicas were [1, 2]"
    assert _text(problem) == found
    assert list(eligible_newcomers(registration(isr=(1,), partition_epoch=6), old)) == []
