"""A checker is worth what it catches: each broken core here must be found out, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cluster.broker import fetching
from cluster.broker.handlers import fetch
from cluster.controller import brokers, elections
from cluster.partition.producers import ProducerStates
from cluster.partition.replica import Replica
from cluster.protocol.errors import ErrorCode
from tests.property.storm import Plan, Storm

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

SEEDS = range(1, 41)
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


def anybody_is_elected(patch: pytest.MonkeyPatch) -> None:
    def choose(partition: Any, is_active: Any, *_: Any) -> Any:
        for broker in reversed(partition.replicas):
            if is_active(broker):
                return elections._Choice(broker, "any")
        return elections._Choice(-1, "nobody")

    patch.setattr(elections, "_choose", choose)


def nobody_truncates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fetching, "_divergence", lambda *_: None)


def acks_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "acks_reached", lambda *_: ErrorCode.NONE)


def sequences_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "check", lambda *_: None)


def consumers_read_to_the_end(patch: pytest.MonkeyPatch) -> None:
    honest = fetch.read_partition

    def read(replica: Replica, *rest: Any, **named: Any) -> Any:
        watermark, replica.high_watermark = replica.high_watermark, replica.log.log_end_offset
        read = honest(replica, *rest, **named)
        replica.high_watermark = watermark
        return read

    patch.setattr(fetch, "read_partition", read)


def joining_the_isr_is_for_the_asking(patch: pytest.MonkeyPatch) -> None:
    def propose(self: Replica, follower_id: int) -> Any:
        registration = self.registration
        if self.proposal is not None or follower_id in registration.isr:
            return None
        return self._propose(registration.replicas, registration.isr, "somebody asked")

    patch.setattr(Replica, "propose_expansion", propose)


def heartbeats_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(brokers, "fence", lambda *_: None)


def the_low_ones_stay_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "propose_expansion", lambda *_: None)


def watermark_starts_anew(patch: pytest.MonkeyPatch) -> None:
    def commit(self: Replica, registration: Any, now_ms: int) -> bool:
        self._take(registration)
        self.high_watermark = max(self.log.log_start_offset, self.high_watermark - 5)
        return True

    patch.setattr(Replica, "commit_isr", commit)


def late_answers_are_believed_failed(patch: pytest.MonkeyPatch) -> None:
    """Who waits for an ack is told that nothing was appended."""

    def reached(self: Replica, required_offset: int) -> ErrorCode | None:
        if self.is_leader and self.high_watermark >= required_offset:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return None

    patch.setattr(Replica, "acks_reached", reached)


MUTATIONS: tuple[tuple[Patch, str], ...] = (
    (watermark_is_the_log_end, "committed-lost"),
    (joining_the_isr_is_for_the_asking, "truncated-committed"),
    (followers_overrun_their_log, "watermark-above-end"),
    (anybody_is_elected, "unclean-unasked"),
    (anybody_is_elected, "leader-not-in-isr"),
    (nobody_truncates, "committed-differs"),
    (acks_do_not_wait, "ack-before-commit"),
    (sequences_are_not_checked, "duplicate"),
    (consumers_read_to_the_end, "read-uncommitted"),
    (heartbeats_do_not_matter, "dead-leader"),
    (the_low_ones_stay_out, "does-not-heal"),
    (watermark_starts_anew, "watermark-back"),
    (late_answers_are_believed_failed, "aborted-read"),
)
HARD = Plan(
    brokers=3, replication_factor=3, min_isr=1, latency_ms=10, unclean=False, elr=True,
    flush_messages=None, deeds=12, ways_to_die=("kill",),
)  # fmt: skip


@pytest.mark.parametrize(("mutation", "name"), MUTATIONS)
@pytest.mark.timeout_s(120)
def test_mutation__a_broken_core_is_found_out(
    mutation: Patch, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    for seed in SEEDS:
        storm = Storm(seed, HARD)
        storm.heal_limit_ms = 20_000
        try:
            problems = storm.run()
        except AssertionError:
            problems = [str(found) for found in storm.watch.invariants.found]
        if any(problem.startswith(name) for problem in problems):
            return
    pytest.fail(f"no seed of {SEEDS} shows it")
