"""The causes of anomalies are values, made from the facts of the chain and not from its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.checks.settings import CAUSES, Setting
from kcluster.checks.verdict import Verdict
from kcluster.contract import Event
from kcluster.deaths import DeathKind
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    BrokerStarted,
    ControlledShutdown,
    ControllerDown,
    DiskFull,
    RecordsLost,
)
from kcluster.events.network import LinkCut, NetworkShaped, RuleHit
from kcluster.events.partitions import (
    IsrShrunk,
    LeaderElected,
    LogTruncated,
    PartitionOffline,
    ReassignmentStarted,
)
from kcluster.events.reasons import (
    AnyReason,
    ElectionKind,
    Fenced,
    Fencing,
    ReassignmentDone,
    Requested,
    ShuttingDown,
)
from kcluster.events.rule_effects import Drop
from kcluster.evidence.causes import MEANINGS, Cause, causes_of
from kcluster.scenario.language.model import Checks
from kcluster.scenario.outcome import unexplained
from tests.rig.stage import Hand, Stage

FENCED = Fenced(1, Fencing.SESSION_EXPIRED, 90)


def elected(
    kind: ElectionKind, reason: AnyReason = FENCED, clean: bool | None = None
) -> LeaderElected:
    is_clean = kind is ElectionKind.IN_SYNC if clean is None else clean
    return LeaderElected("orders", 0, 1, 2, 5, is_clean, reason, kind)


def truncated(to_offset: int, high_watermark: int) -> LogTruncated:
    return LogTruncated("orders", 0, 2, 9, to_offset, high_watermark, 1, to_offset)


def shaped(**how: object) -> NetworkShaped:
    return NetworkShaped(links=(), clients={}, **how)  # type: ignore[arg-type]  # any field of it


@pytest.mark.parametrize(
    ("event", "causes"),
    [
        (elected(ElectionKind.IN_SYNC), "leader-election"),
        (elected(ElectionKind.UNCLEAN), "leader-election unclean-election"),
        (elected(ElectionKind.LAST_KNOWN_LEADER), "leader-election last-known-leader-election"),
        (elected(ElectionKind.IN_SYNC, Requested()), "leader-election requested-election"),
        (elected(ElectionKind.IN_SYNC, ShuttingDown(1)), "leader-election controlled-shutdown"),
        (elected(ElectionKind.IN_SYNC, ReassignmentDone()), "leader-election reassignment"),
        (PartitionOffline("orders", 0, 1, -1, 5, True, FENCED, (1,), ()), "partition-offline"),
        (IsrShrunk("orders", 0, (1, 2), (1,), (2,), (), (), 3, FENCED), "isr-shrink"),
        (truncated(5, 5), "truncation"),
        (truncated(5, 6), "truncation truncation-below-high-watermark"),
        (ReassignmentStarted("orders", 0, (1,), (2,), 3, (2,), (1,), False), "reassignment"),
        (BrokerDown(1, DeathKind.CLEAN), "controlled-shutdown"),
        (BrokerDown(1, DeathKind.KILL), "broker-crash"),
        (BrokerDown(1, DeathKind.POWER), "power-loss"),
        (BrokerDown(1, DeathKind.WIPE), "disk-loss"),
        (RecordsLost(1, 3), "power-loss"),
        (ControlledShutdown(1), "controlled-shutdown"),
        (DiskFull(1), "disk-full"),
        (BrokerPaused(1), "broker-pause"),
        (BrokerFenced(1, Fencing.SESSION_EXPIRED, 90), "broker-fenced"),
        (ControllerDown(), "controller-down"),
        (LinkCut(1, 2), "network-partition"),
        (shaped(latency_us=5), "slow-network"),
        (shaped(loss=0.1, bytes_per_s=9), "slow-network message-loss"),
        (shaped(latency_us=5, of_disk=True), "slow-disk"),
        (shaped(latency_us=5, undone=True), ""),
        (RuleHit("r", 1, "Produce", "shop", 4, 5, Drop(), 1, False), "fault-rule"),
        (BrokerStarted(1, True), ""),
    ],
)
def test_causes__of_an_event(event: Event, causes: str) -> None:
    assert " ".join(causes_of(event)) == causes


def test_causes__each_has_a_meaning_and_is_in_the_docs() -> None:
    assert list(MEANINGS) == list(Cause)
    assert set(CAUSES) == set(Setting) - {Setting.NONE}
    page = (Path(__file__).parents[3] / "docs" / "reference" / "scenarios.md").read_text("utf-8")
    assert [cause for cause in Cause if f"`{cause}`" not in page] == []


def lost_with_the_lone_leaders_disk() -> Verdict:
    """Brokers 2 and 3 have left the ISR, broker 1 acks alone and loses its disk."""
    stage = Stage()
    hand: Hand = stage.hand()
    stage.kill(2)
    stage.kill(3)
    stage.run_for(4_000)
    hand.produce(1, [b"a"])
    stage.run_for(100)
    stage.kill(1, "wipe")
    for broker in (1, 2, 3):
        stage.start(broker)
    stage.run_for(20_000)
    return stage.verdict()


def test_causes__of_an_anomaly_are_those_of_its_chain() -> None:
    (lost,) = lost_with_the_lone_leaders_disk().anomalies
    assert {Cause.MIN_INSYNC_ONE, Cause.DISK_LOSS, Cause.ISR_SHRINK} <= set(lost.causes)
    assert Cause.ACKS_1 not in lost.causes
    assert lost.causes == tuple(cause for cause in Cause if cause in lost.causes), "always in order"


def test_checks__a_cause_that_explains_no_anomaly_fails_the_check() -> None:
    verdict = lost_with_the_lone_leaders_disk()
    assert list(unexplained(Checks(causes=("disk-loss",)), verdict)) == []
    (failure,) = unexplained(Checks(causes=("disk-loss", "acks=1")), verdict)
    assert failure.startswith("causes: no anomaly is explained by acks=1 (the causes are: ")
    assert "disk-loss" in failure


def test_causes__an_answer_that_was_lost_and_an_error_of_a_client() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(1, [b"a"])
    hand.produce(1, [b"a"], again=True)
    stage.run_for(100)
    (duplicate,) = stage.verdict().anomalies
    assert set(duplicate.causes) >= {Cause.NOT_IDEMPOTENT, Cause.LOST_RESPONSE}
    assert duplicate.errors == ()


def test_causes__errors_have_kafkas_names() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(2, [b"a"])
    stage.run_for(10)
    hand.produce(1, [b"b"])
    stage.run_for(10)
    hand.produce(1, [b"a"], again=True)
    stage.run_for(100)
    (reordered,) = stage.verdict().anomalies
    assert reordered.name == "nonmonotonic-send"
    assert reordered.errors == ("NOT_LEADER_OR_FOLLOWER",)
