"""Each mutation breaks the core, and a check must detect it by name."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from kcluster.broker.handlers.data import fetch
from kcluster.broker.node import BrokerNode
from kcluster.broker.serving import reading
from kcluster.checks.anomalies import find_anomalies
from kcluster.clients.ledger import Ledger
from kcluster.controller.membership.membership import Membership
from kcluster.controller.partitions import elections
from kcluster.controller.partitions.partitions import Partitions
from kcluster.events.reasons import ElectionKind
from kcluster.evidence.outside import outside_ledger
from kcluster.metadata.placement import coordinator_partition
from kcluster.partition.producers import ProducerStates
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import Record, build_batch
from tests.property.clients import Consumer
from tests.property.storm import Plan, Storm
from tests.rig.stage import Stage

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

SHOW_MOST = (1, 29, 18, 31, 14, 8)
"""Seeds that show most mutations.  They are tried first, which saves time and changes nothing."""
SEEDS = (*SHOW_MOST, *(seed for seed in range(1, 41) if seed not in SHOW_MOST))
Patch = Callable[[pytest.MonkeyPatch], None]


def watermark_is_the_log_end(patch: pytest.MonkeyPatch) -> None:
    def advance(self: Replica, now_ms: int) -> bool:
        self.high_watermark = self.log.log_end_offset
        return True

    patch.setattr(Replica, "advance_high_watermark", advance)


def followers_overrun_their_log(patch: pytest.MonkeyPatch) -> None:
    def follow(self: Replica, leader_high_watermark: int) -> bool:
        self.high_watermark = leader_high_watermark + 1
        return True

    patch.setattr(Replica, "follow_high_watermark", follow)


def any_replica_is_elected(patch: pytest.MonkeyPatch) -> None:
    def choose(partition: Any, is_active: Any, *_: Any) -> Any:
        for broker in reversed(partition.replicas):
            if is_active(broker):
                return elections._Choice(broker, ElectionKind.IN_SYNC)
        return elections._Choice(-1, ElectionKind.IN_SYNC)

    patch.setattr(elections, "_choose", choose)


def followers_do_not_truncate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "_divergence", lambda *_: None)


def acks_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "acks_reached", lambda *_: ErrorCode.NONE)


def sequences_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "check", lambda *_: None)


def consumers_read_to_the_end(patch: pytest.MonkeyPatch) -> None:
    original = reading.read_partition

    def read(replica: Replica, *rest: Any, **named: Any) -> Any:
        watermark, replica.high_watermark = replica.high_watermark, replica.log.log_end_offset
        read = original(replica, *rest, **named)
        replica.high_watermark = watermark
        return read

    patch.setattr(fetch, "read_partition", read)


def any_follower_joins_the_isr(patch: pytest.MonkeyPatch) -> None:
    def propose(self: Replica, follower_id: int) -> Any:
        registration = self.registration
        if self.proposal is not None or follower_id in registration.isr:
            return None
        return self._propose(registration.replicas, registration.isr)

    patch.setattr(Replica, "propose_expansion", propose)


def heartbeats_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Membership, "fence", lambda *_, **__: None)


def the_isr_never_expands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "propose_expansion", lambda *_: None)


def watermark_starts_again(patch: pytest.MonkeyPatch) -> None:
    def commit(self: Replica, registration: Any, now_ms: int) -> bool:
        self._take(registration)
        self.high_watermark = max(self.log.log_start_offset, self.high_watermark - 5)
        return True

    patch.setattr(Replica, "commit_isr", commit)


def late_answers_are_reported_as_failures(patch: pytest.MonkeyPatch) -> None:
    """A request that waits for its acks gets an error that means: nothing was appended."""

    def reached(self: Replica, required_offset: int) -> ErrorCode | None:
        if self.is_leader and self.high_watermark >= required_offset:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return None

    patch.setattr(Replica, "acks_reached", reached)


def fencing_leaves_the_isr_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partitions, "_change_all", lambda *_, **__: [])


def epochs_are_not_bumped(patch: pytest.MonkeyPatch) -> None:
    original = elections.elect

    def elect(partition: Any, *rest: Any, **named: Any) -> Any:
        election = original(partition, *rest, **named)
        if election is None:
            return None
        stale = replace(election.registration, leader_epoch=partition.leader_epoch)
        return replace(election, registration=stale)

    patch.setattr(elections, "elect", elect)


def epochs_go_back(patch: pytest.MonkeyPatch) -> None:
    original = elections.elect

    def elect(partition: Any, *rest: Any, **named: Any) -> Any:
        election = original(partition, *rest, **named)
        if election is None:
            return None
        back = replace(election.registration, leader_epoch=partition.leader_epoch - 1)
        return replace(election, registration=back)

    patch.setattr(elections, "elect", elect)


def every_hundredth(
    original: Callable[..., Any], instead: Callable[..., Any]
) -> Callable[..., Any]:
    calls = count(1)

    def called(*args: Any, **named: Any) -> Any:
        return (original if next(calls) % 100 else instead)(*args, **named)

    return called


def answers_are_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerNode, "reply", every_hundredth(BrokerNode.reply, lambda *_: None))


def answers_are_sent_twice(patch: pytest.MonkeyPatch) -> None:
    original = BrokerNode.reply

    def twice(*args: Any) -> None:
        original(*args)
        original(*args)

    patch.setattr(BrokerNode, "reply", every_hundredth(original, twice))


def records_are_invented(patch: pytest.MonkeyPatch) -> None:
    original = Replica.append_as_leader

    def append(self: Replica, records: Any, acks: int, now_ms: int, *more: bool) -> Any:
        made_up = build_batch([Record(0, now_ms, None, b"made up", ())])
        return original(self, memoryview(made_up), acks, now_ms)

    patch.setattr(Replica, "append_as_leader", every_hundredth(original, append))


def consumers_are_moved_past_records(patch: pytest.MonkeyPatch) -> None:
    original = reading.read_partition

    def read(*args: Any, **named: Any) -> Any:
        found = original(*args, **named)
        if found.batches and len(found.batches) > 1 and not args[2].is_follower:
            found.batches = found.batches[1:]
        return found

    patch.setattr(fetch, "read_partition", read)


def consumers_lose_their_position(patch: pytest.MonkeyPatch) -> None:
    original = Consumer._take

    def take(self: Consumer, *args: Any) -> None:
        original(self, *args)
        self.position = max(0, self.position - 1)

    patch.setattr(Consumer, "_take", every_hundredth(original, take))


def producers_are_not_replayed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "rewind", lambda _, end_offset: end_offset)


MUTATIONS: tuple[tuple[Patch, str], ...] = (
    (watermark_is_the_log_end, "committed-lost"),
    (watermark_is_the_log_end, "watermark-above-isr"),
    (fencing_leaves_the_isr_alone, "fenced-in-isr"),
    (epochs_are_not_bumped, "two-leaders"),
    (epochs_go_back, "epoch-back"),
    (answers_are_dropped, "no-reply"),
    (answers_are_sent_twice, "two-replies"),
    (any_follower_joins_the_isr, "truncated-committed"),
    (any_follower_joins_the_isr, "joined-lacking"),
    (producers_are_not_replayed, "producers-differ"),
    (followers_overrun_their_log, "watermark-above-end"),
    (any_replica_is_elected, "unclean-unasked"),
    (any_replica_is_elected, "leader-not-in-isr"),
    (followers_do_not_truncate, "committed-differs"),
    (acks_do_not_wait, "ack-before-commit"),
    (acks_do_not_wait, "lost-write"),
    (sequences_are_not_checked, "duplicate"),
    (sequences_are_not_checked, "nonmonotonic-send"),
    (followers_do_not_truncate, "inconsistent-offsets"),
    (records_are_invented, "phantom"),
    (consumers_are_moved_past_records, "poll-skip"),
    (consumers_are_moved_past_records, "unseen"),
    (consumers_lose_their_position, "nonmonotonic-poll"),
    (consumers_read_to_the_end, "read-uncommitted"),
    (heartbeats_are_ignored, "dead-leader"),
    (the_isr_never_expands, "does-not-heal"),
    (watermark_starts_again, "watermark-back"),
    (late_answers_are_reported_as_failures, "aborted-read"),
)
HARD = Plan(
    brokers=3,
    replication_factor=3,
    min_isr=1,
    latency_ms=10,
    unclean=False,
    elr=True,
    flush_messages=None,
    actions=12,
    ways_to_die=("kill",),
)


@pytest.mark.parametrize(("mutation", "name"), MUTATIONS)
def test_mutation__a_broken_core_is_detected(
    mutation: Patch, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    for seed in SEEDS:
        storm = Storm(seed, HARD)
        storm.heal_limit_ms = 20_000
        try:
            problems = storm.run()
        except AssertionError:
            problems = [str(found) for found in storm.watch.invariants.violations]
        if any(problem.startswith(name) for problem in problems):
            return
    pytest.fail(f"no seed from 1 to {max(SEEDS)} shows it")


@pytest.mark.parametrize("is_broken", [False, True])
def test_mutation__a_coordinator_that_acks_too_early_loses_commits(
    is_broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_broken:
        acks_do_not_wait(monkeypatch)
    stage = Stage()
    hand = stage.hand("g1")
    hand.wire.send(1, ApiKey.FIND_COORDINATOR, 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
    stage.run_for(2_000)
    home = coordinator_partition("g", 50)
    stage.move("__consumer_offsets", home, 1)
    stage.run_for(500)
    hand.commit(1, "g", 3)
    stage.run_for(500)
    for other in (2, 3):
        stage.cut(1, other)
    hand.commit(1, "g", 5)
    stage.run_for(100)
    stage.kill(1)
    stage.run_for(5_000)
    for broker in (2, 3):
        hand.fetch_offset(broker, "g")
    stage.run_for(500)
    stage.recorder.check_last_step()
    ledger, _ = outside_ledger(stage.recorder, Ledger(), lambda _: False)
    found = find_anomalies(ledger, {})
    assert [anomaly.name for anomaly in found] == ["committed-offset-back"] * is_broken
