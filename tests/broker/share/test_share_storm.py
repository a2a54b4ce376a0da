"""Members of a share group while brokers die, links are cut and leaders move: every record is
settled, and none is delivered again after that."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kcluster.evidence.recorder import Recorder
from kcluster.protocol.names import SHARE_GROUP_STATE_TOPIC
from tests.broker.coordinator.share_state.share_state_rig import ShareStateRig
from tests.broker.share.share_history import ShareAcknowledgement, ShareDelivery, share_facts_of
from tests.broker.share.share_rig import (
    ACCEPT,
    REJECT,
    RELEASE,
    Acks,
    ClusterMember,
    acquired,
    partitions_of,
)
from tests.broker.share.test_share_leaders import LOCK_MS
from tests.rig.lines import CLOSED, SILENT

RECORDS, LIMIT = 100, 5
ROUNDS = 80


class Worker:
    """One member: it fetches from whoever leads, and acknowledges most of what it gets."""

    def __init__(self, rig: ShareStateRig, name: str, rng: random.Random) -> None:
        self.rig = rig
        self.name = name
        self.rng = rng
        self.session: ClusterMember | None = None
        self.held: list[tuple[int, int]] = []

    def work(self, kinds: tuple[int, ...]) -> None:
        """One request; after any failure, a new session."""
        session = self.session or self._join()
        if session is None:
            return
        acks: Acks = {0: [(first, last, self.rng.choice(kinds)) for first, last in self.held]}
        self.held = []
        limits: dict[str, Any] = {
            "max_wait_ms": 200,
            "max_records": self.rng.randrange(1, 9),
            "share_acquire_mode": self.rng.randrange(2),
        }
        if session.epoch == 0:
            answer = session.fetch(0, **limits)
        elif self.rng.random() < 0.3:
            answer = session.acknowledge(acks)
        else:
            answer = session.fetch(acks=acks if acks[0] else None, **limits)
        if answer in (SILENT, CLOSED) or answer.error_code or _has_errors(answer):
            session.line.close()
            self.session = None
        elif hasattr(answer, "acquisition_lock_timeout_ms") and _is_fetch(answer):
            self.held = [(first, last) for first, last, _ in acquired(answer)]

    def _join(self) -> ClusterMember | None:
        leader = self.rig.partition().leader
        if leader is not None:
            self.session = ClusterMember(self.rig, at=leader, member_id=self.name)
            self.session.patience_ms = 3_000
        return self.session


def _is_fetch(answer: Any) -> bool:
    return type(answer).__name__ == "ShareFetchResponse"


def _has_errors(answer: Any) -> bool:
    return any(
        data.error_code or getattr(data, "acknowledge_error_code", 0)
        for data in partitions_of(answer)
    )


def disturb(rig: ShareStateRig, rng: random.Random) -> None:
    """One fault, or its end; a majority of brokers stays up."""
    down = [broker for broker in (1, 2, 3) if rig.dispatcher.processes[broker].node is None]
    match rng.randrange(6):
        case 0 if not down:
            rig.kill(rng.choice((1, 2, 3)))
        case 1 | 2 if down:
            rig.start(down[0])
        case 3:
            one, other = rng.sample((1, 2, 3), 2)
            rig.cut(one, other)
        case 4:
            rig.heal()
        case _:
            rig.run_for(rng.randrange(8_000))


@pytest.mark.parametrize("seed", range(4))
def test_every_record_is_settled_once(seed: int) -> None:
    rng = random.Random(seed)
    rig = ShareStateRig(seed=seed, min_insync_replicas=2)
    recorder = Recorder(rig.dispatcher, rig.plan)
    for _ in range(RECORDS // 5):
        rig.produce(*[b"v"] * 5, to=1)
    assert rig.initialize(start_offset=0) == "NONE"
    workers = [Worker(rig, name, rng) for name in "abc"]
    for _ in range(ROUNDS):
        if rng.random() < 0.3:
            disturb(rig, rng)
        rng.choice(workers).work((ACCEPT, ACCEPT, REJECT, RELEASE))
    settle(rig, workers)
    check(recorder)


def settle(rig: ShareStateRig, workers: list[Worker]) -> None:
    """Everything is up again; the members accept what they get, until there is nothing more."""
    rig.heal()
    for broker in (1, 2, 3):
        if rig.dispatcher.processes[broker].node is None:
            rig.start(broker)
    rig.run_for(20_000)
    for worker in workers:
        worker.held = []
    for _ in range(40):
        rig.run_for(LOCK_MS // 2)
        for worker in workers:
            worker.work((ACCEPT,))
        if rig.partition(SHARE_GROUP_STATE_TOPIC).leader is not None and rig.stored is not None:
            state = rig.stored
            left = range(state.start_offset, RECORDS)
            settled = {
                offset
                for first, last, kind, _ in state.batches
                if kind in (2, 4)
                for offset in range(first, last + 1)
            }
            if settled.issuperset(left):
                return
    raise AssertionError(f"not settled: {rig.stored}")


def check(recorder: Recorder) -> None:
    """No record is delivered after a member was told that its acknowledgement is stored, nor more
    often than the limit."""
    final: dict[int, ShareAcknowledgement] = {}
    for fact in share_facts_of(recorder):
        offsets = range(fact.first_offset, fact.last_offset + 1)
        if isinstance(fact, ShareDelivery):
            assert fact.delivery_count <= LIMIT
            again = [
                offset
                for offset in offsets
                if offset in final and final[offset].at_ms < fact.asked_ms
            ]
            assert not again, f"{fact} after {final[again[0]]}"
        elif fact.is_final:
            final.update(dict.fromkeys(offsets, fact))
    assert final, "nobody has acknowledged anything"
