"""The controller's decisions: each that it must not take is named, though no record is lost yet."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.controller.membership.liveness import Sessions
from kcluster.events.partitions import LeaderElected
from kcluster.events.reasons import ElectionKind, Requested, Restarted, Unfenced
from kcluster.invariants.decisions import (
    eligible_newcomers,
    ended_early,
    needless_elr,
    needless_last_known,
    outdated_last_known,
    outdated_proposal,
    proposals_in,
    unfenced_behind,
)
from kcluster.invariants.heartbeats import BrokerHeartbeats
from kcluster.invariants.words import observed_text
from kcluster.metadata.image import MetadataImage
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


def test_last_known_leader__is_forgotten_once_another_leads() -> None:
    offline = registration(isr=(), leader=-1, last_known_elr=(3,))
    assert list(outdated_last_known(offline)) == []
    ((name, fact),) = outdated_last_known(registration(last_known_elr=(3,)))
    assert name == "last-known-outdated"
    assert observed_text(fact) == "last known leader is 3, though 1 leads"


@pytest.mark.parametrize(
    ("elr", "reason", "kind", "found"),
    [
        ((2,), Unfenced(3), ElectionKind.LAST_KNOWN_LEADER, [2]),
        ((), Unfenced(3), ElectionKind.LAST_KNOWN_LEADER, []),
        ((2,), Unfenced(2), ElectionKind.ELIGIBLE, []),
        ((2,), Restarted(2, 20, clean=False), ElectionKind.LAST_KNOWN_LEADER, []),
        ((2,), Restarted(2, 20, clean=True), ElectionKind.LAST_KNOWN_LEADER, [2]),
        ((4,), Requested(""), ElectionKind.LAST_KNOWN_LEADER, []),
    ],
    ids=[
        "eligible",
        "none is",
        "it leads",
        "it restarted uncleanly",
        "it restarted cleanly",
        "it is no replica",
    ],
)
def test_last_known_leader__leads_only_if_nobody_is_eligible(
    elr: tuple[int, ...], reason: Unfenced | Restarted, kind: ElectionKind, found: list[int]
) -> None:
    offline = registration(isr=(), leader=-1, elr=elr, last_known_elr=(3,))
    elected = LeaderElected(
        topic="orders",
        partition=0,
        old_leader=-1,
        new_leader=3,
        leader_epoch=4,
        clean=False,
        reason=reason,
        election=kind,
    )
    facts = [observed_text(fact) for _, fact in needless_last_known(elected, offline)]
    assert facts == [f"last known leader 3 was elected, though {found} were eligible"][: len(found)]


@pytest.mark.parametrize(("broker_epoch", "is_taken"), [(19, True), (19, False), (20, True)])
def test_heartbeat__of_an_earlier_life_changes_no_session(
    broker_epoch: int, is_taken: bool
) -> None:
    image, sessions, heartbeats = MetadataImage(), Sessions(9_000), BrokerHeartbeats()
    image.brokers[2] = broker(2, 20)
    session = sessions.register(2, 20)
    late = m.BrokerHeartbeatRequest(broker_id=2, broker_epoch=broker_epoch)
    heartbeats.on_heartbeat(1, late, image, sessions, 500)
    if is_taken:
        session.last_contact_ms = 500
    taken = heartbeats.taken(sessions)
    is_stale = is_taken and broker_epoch < 20
    text = "broker epoch 19 was named, 20 was current"
    assert (taken and (taken[0], observed_text(taken[1]))) == ((2, text) if is_stale else None)
    assert heartbeats.taken(sessions) is None
