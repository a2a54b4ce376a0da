"""A window against a model that keeps one state per record: whatever members do, in any order."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kcluster.broker.coordinator.share_state.state import ReadState, StateBatch, combine
from kcluster.broker.share.acquisition import Acquirer, acquire
from kcluster.broker.share.in_flight import AcknowledgeType, RecordState, Transition
from kcluster.broker.share.window import (
    Acknowledgement,
    AcknowledgeOutcome,
    InFlightWindow,
    ShareLimits,
)
from kcluster.protocol.records.batches import Batch

LOCK_MS = 1_000
MEMBERS = ("a", "b", "c")
OFFSETS = st.integers(0, 70)


def log_of(sizes: list[int]) -> list[Batch]:
    """Batches with so many records each."""
    batches, base = [], 0
    for size in sizes:
        last = base + size - 1
        batches.append(Batch(base, last, 0, 0, 0, 0, -1, -1, -1, size, 100, b""))
        base = last + 1
    return batches


@dataclass
class Modelled:
    """One record, as the model knows it."""

    deliveries: int = 0
    holder: str | None = None
    deadline_ms: int = 0
    is_settled: bool = False
    """Acknowledged or archived, and stored: it may never be delivered again."""
    stored: int = 0
    """Its delivery count as stored."""
    pending: list[Transition] = field(default_factory=list)


class WindowMachine(RuleBasedStateMachine):
    """Members fetch, acknowledge, vanish; writes succeed or fail; the leader changes."""

    @initialize(sizes=st.lists(st.integers(1, 9), min_size=3, max_size=9), limit=st.integers(2, 6))
    def begin(self, sizes: list[int], limit: int) -> None:
        self.log = log_of(sizes)
        self.end = self.log[-1].last_offset + 1
        self.limits = ShareLimits(limit, record_locks=25, lock_duration_ms=LOCK_MS)
        self.window = InFlightWindow(0, 0)
        self.now_ms = 0
        self.records = [Modelled() for _ in range(self.end)]
        self.stored: tuple[StateBatch, ...] = ()
        self.stored_start = 0
        self.open: list[Transition] = []
        self.log_start = 0
        self.seen_start = 0

    # --------------------------------------------------------------------------------- actions

    @rule(
        member=st.sampled_from(MEMBERS),
        most=st.integers(1, 30),
        size=st.integers(1, 10),
        exact=st.booleans(),
        batches=st.integers(1, 6),
    )
    def fetch(self, member: str, most: int, size: int, exact: bool, batches: int) -> None:
        if not self.window.can_acquire(self.limits):
            return
        offset = self.window.next_fetch_offset()
        if offset < self.log_start:
            self.window.move_log_start(self.log_start)
            return
        fetched = [batch for batch in self.log if batch.last_offset >= offset][:batches]
        acquirer = Acquirer(member, most, size, exact)
        got = acquire(self.window, acquirer, self.limits, offset, fetched, self.now_ms)
        if exact:
            assert sum(last - first + 1 for first, last, _ in got) <= most
        for first, last, count in got:
            for at in range(first, last + 1):
                record = self.records[at]
                assert not record.is_settled, f"{at} was settled, and is delivered again"
                assert record.holder is None, f"{at} is held by {record.holder}"
                record.deliveries += 1
                assert record.deliveries <= count <= self.limits.delivery_count
                record.deliveries = count
                record.holder = member
                record.deadline_ms = self.now_ms + LOCK_MS

    @rule(
        which=st.integers(0, 20),
        skipped=st.integers(0, 8),
        length=st.integers(1, 12),
        types=st.lists(st.sampled_from(AcknowledgeType), min_size=1, max_size=4),
        single=st.booleans(),
    )
    def acknowledge_what_is_held(
        self, which: int, skipped: int, length: int, types: list[AcknowledgeType], single: bool
    ) -> None:
        held = [
            run
            for batch in self.window.batches
            for run in batch.runs
            if run.state is RecordState.ACQUIRED
        ]
        if held:
            run = held[which % len(held)]
            size = run.last_offset - run.first_offset + 1
            skipped %= size
            length = min(length, size - skipped)
            self.acknowledge(run.member_id, run.first_offset + skipped, length, types, single)

    @rule(
        member=st.sampled_from(MEMBERS),
        first=OFFSETS,
        length=st.integers(1, 20),
        types=st.lists(st.sampled_from(AcknowledgeType), min_size=1, max_size=20),
        single=st.booleans(),
    )
    def acknowledge(
        self, member: str, first: int, length: int, types: list[AcknowledgeType], single: bool
    ) -> None:
        last = first + length - 1
        each = [types[i % len(types)] for i in range(length)]
        kinds = tuple(types[:1]) if single or length == 1 else tuple(each)
        asked = [Acknowledgement(first, last, kinds)]
        before = [
            at for at in range(max(first, self.window.start_offset), last + 1) if at < self.end
        ]
        outcome = self.window.acknowledge(member, asked, self.limits, self.now_ms)
        if isinstance(outcome, AcknowledgeOutcome):
            return
        for at in before:
            assert self.records[at].holder == member, f"{member} does not hold {at}"
            if each[at - first if len(kinds) > 1 else 0] is AcknowledgeType.RENEW:
                self.records[at].deadline_ms = self.now_ms + LOCK_MS
        self._began(outcome)

    @rule(member=st.sampled_from(MEMBERS), times=st.integers(1, 4))
    def fetch_and_crash(self, member: str, times: int) -> None:
        """Each time the delivery counts grow."""
        for _ in range(times):
            self.fetch(member, 30, 10, False, 6)
            self.leave(member)
            while self.open:
                self.write_ends(True)

    @rule(types=st.lists(st.sampled_from(AcknowledgeType), min_size=1, max_size=3))
    def everybody_acknowledges(self, types: list[AcknowledgeType]) -> None:
        """Several writes are under way at once."""
        for member in MEMBERS:
            self.fetch(member, 3, 2, False, 3)
        for which in range(6):
            self.acknowledge_what_is_held(which, 0, 4, types, True)

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member: str) -> None:
        self._began(self.window.release(member, self.limits))

    def _began(self, transition: Transition) -> None:
        if transition.state_batches:
            self.open.append(transition)

    @rule(is_stored=st.booleans())
    def write_ends(self, is_stored: bool) -> None:
        """The oldest write: the persister keeps their order."""
        if not self.open:
            return
        transition = self.open.pop(0)
        if is_stored:
            self._store(transition.state_batches)
        settled = [batch for batch in transition.state_batches if batch.delivery_state in (2, 4)]
        changed = [(run.first_offset, run.last_offset) for run in transition.runs]
        self.window.complete(transition, is_stored, self.limits, self.now_ms)
        for first, last in changed:
            for at in range(first, last + 1):
                record = self.records[at]
                if is_stored or self.now_ms >= record.deadline_ms:
                    record.holder = None
        if is_stored:
            for batch in settled:
                for at in range(batch.first_offset, batch.last_offset + 1):
                    self.records[at].is_settled = True

    def _store(self, batches: list[StateBatch]) -> None:
        self.stored_start = max(self.stored_start, self.window.start_offset)
        self.stored = combine(self.stored, batches, self.stored_start)

    @rule(ms=st.integers(1, 700))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms
        expired = self.window.expire_locks(self.limits, self.now_ms)
        for first, last, state, _ in expired:
            for at in range(first, last + 1):
                record = self.records[at]
                assert record.holder is not None
                assert record.deadline_ms <= self.now_ms
                record.holder = None
                record.is_settled |= state == RecordState.ARCHIVED
        if expired:
            self._store(expired)
            self.window.advance_start()

    @rule(by=st.integers(1, 12))
    def log_start_moves(self, by: int) -> None:
        self.log_start = min(self.log_start + by, self.end)
        self.window.move_log_start(self.log_start)
        self.log = [batch for batch in self.log if batch.last_offset >= self.log_start]

    @rule()
    def leader_changes(self) -> None:
        """What was not stored is lost: records that members hold are delivered again."""
        self.open.clear()
        window = InFlightWindow.load(
            ReadState(0, self.stored_start, self.stored), self.stored_start
        )
        assert window is not None
        self.window = window
        self.seen_start = 0
        if self.log_start > self.window.start_offset:
            self.window.move_log_start(self.log_start)
        counts = dict.fromkeys(range(self.end), 0)
        for first, last, _, count in self.stored:
            counts.update(dict.fromkeys(range(first, last + 1), count))
        for at, record in enumerate(self.records):
            record.holder = None
            record.deliveries = counts[at]

    # ------------------------------------------------------------------------------ invariants

    @invariant()
    def window_is_sound(self) -> None:
        if not hasattr(self, "window"):
            return
        expected = None
        for batch in self.window.batches:
            assert expected is None or batch.first_offset >= expected
            expected = batch.first_offset
            for run in batch.runs:
                assert run.first_offset == expected <= run.last_offset
                expected = run.last_offset + 1
            assert batch.last_offset == expected - 1
        if expected is not None and self.window.start_offset < expected:
            assert self.window.end_offset == expected - 1

    @invariant()
    def start_never_goes_back(self) -> None:
        if hasattr(self, "window"):
            assert self.window.start_offset >= self.seen_start
            self.seen_start = self.window.start_offset

    @invariant()
    def start_is_behind_settled_records_alone(self) -> None:
        if hasattr(self, "window"):
            for at in range(self.log_start, min(self.window.start_offset, self.end)):
                assert self.records[at].is_settled, f"{at} is lost"

    def teardown(self) -> None:
        """In the end a single member that accepts everything settles everything."""
        if not hasattr(self, "window"):
            return
        self.open.clear()
        self.leader_changes()
        for _ in range(200):
            if self.window.start_offset >= self.end:
                return
            self.time_passes(LOCK_MS)
            self.fetch("a", 30, 10, False, 9)
            for batch in list(self.window.batches):
                for run in list(batch.runs):
                    if run.state is RecordState.ACQUIRED and run.last_offset >= self.log_start:
                        length = run.last_offset - run.first_offset + 1
                        self.acknowledge(
                            "a", run.first_offset, length, [AcknowledgeType.ACCEPT], True
                        )
            while self.open:
                self.write_ends(True)
        raise AssertionError(f"never settled: {self.window}, log from {self.log_start}")


WindowMachine.TestCase.settings = settings(
    max_examples=100, stateful_step_count=60, deadline=None, derandomize=True
)
TestWindow = WindowMachine.TestCase
