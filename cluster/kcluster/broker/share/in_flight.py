"""Records in flight: batches that a share group has fetched, and the state of each record in them.

Owns: `RecordState`, `AcknowledgeType`, and the runs of equal state that a batch consists of. Never:
decides on a change of state (window.py does).  Kafka: InFlightBatch, InFlightState, RecordState;
KIP-932.

Kafka keeps one state for each batch until it must keep one for each record.  Here a batch is always
a list of runs, which are neighbours in one state.  A batch that was never split has one run.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final, final

from msgspec import Struct

from kcluster.broker.coordinator.share_state.state import StateBatch

NO_MEMBER: Final = ""


class RecordState(IntEnum):
    """The state of a record for one group.  ARCHIVING: on its way to the dead letter queue
    (KIP-1191)."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """A member's report on a record.

    GAP: there is no record at this offset.  RENEW: the member needs more time (KIP-1222).
    """

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


AVAILABLE: Final = RecordState.AVAILABLE
ACQUIRED: Final = RecordState.ACQUIRED
ACKNOWLEDGED: Final = RecordState.ACKNOWLEDGED
ARCHIVING: Final = RecordState.ARCHIVING
ARCHIVED: Final = RecordState.ARCHIVED


class DeadLetterCause(Enum):
    """The reason why records are not delivered again."""

    REJECTED = "rejected"
    EXHAUSTED = "exhausted"
    """The records were delivered as often as the group allows."""


class DeadLetterBatch(Struct, frozen=True):
    """Neighbouring records that go to the dead letter queue together."""

    first_offset: int
    last_offset: int
    delivery_count: int
    cause: DeadLetterCause

    @property
    def records(self) -> int:
        return self.last_offset - self.first_offset + 1


@final
class Transition:
    """State changes that take effect, or are undone, together: when the persister has stored them.

    `state_batches`: the batches to store; none if the changes need no storing.  `dead_letters`: the
    batches for the dead letter queue, once the others are stored.
    """

    __slots__ = ("dead_letters", "runs", "state_batches")

    def __init__(self) -> None:
        self.state_batches: list[StateBatch] = []
        self.dead_letters: list[DeadLetterBatch] = []
        self.runs: list[InFlightRun] = []
        """The runs that this transition has changed, including the parts into which they have since
        been split."""


@final
class InFlightRun:
    """Neighbouring records of one batch in one state.

    `member_id`, `lock_deadline_ms`: the member that has acquired the records, and the end of its
    lock; kept while `transition` is under way, because its failure returns the records to that
    member.  `transition`: the change to `state` that is not stored yet.
    """

    __slots__ = (
        "delivery_count", "first_offset", "last_offset", "lock_deadline_ms", "member_id", "state",
        "transition",
    )  # fmt: skip

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        state: RecordState,
        delivery_count: int,
        member_id: str = NO_MEMBER,
        lock_deadline_ms: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock_deadline_ms = lock_deadline_ms
        self.transition: Transition | None = None

    def __repr__(self) -> str:
        held = f" by {self.member_id} until {self.lock_deadline_ms}" if self.member_id else ""
        change = " (not stored)" if self.transition is not None else ""
        return (
            f"<{self.first_offset}..{self.last_offset} {self.state.name.lower()}"
            f" x{self.delivery_count}{held}{change}>"
        )

    @property
    def is_available(self) -> bool:
        return self.state is AVAILABLE and self.transition is None

    @property
    def is_terminal(self) -> bool:
        return self.state is ACKNOWLEDGED or self.state is ARCHIVED

    @property
    def is_settled(self) -> bool:
        """Whether nothing can happen to these records any more."""
        return self.is_terminal and self.transition is None

    def rest_from(self, offset: int) -> InFlightRun:
        """Shorten this run to end before `offset`; returns the rest as a new run."""
        assert self.first_offset < offset <= self.last_offset, (self, offset)
        rest = InFlightRun(
            offset,
            self.last_offset,
            self.state,
            self.delivery_count,
            self.member_id,
            self.lock_deadline_ms,
        )
        self.last_offset = offset - 1
        if self.transition is not None:
            rest.transition = self.transition
            self.transition.runs.append(rest)
        return rest

    def continues(self, before: InFlightRun) -> bool:
        """Whether this run and the previous one can be joined."""
        return (
            self.state is before.state
            and self.delivery_count == before.delivery_count
            and self.transition is before.transition
            and self.member_id == before.member_id
            and self.lock_deadline_ms == before.lock_deadline_ms
        )


@final
class InFlightBatch:
    """Records that were fetched together.  Their number decides at which distance from the delivery
    limit the batch is split."""

    __slots__ = ("first_offset", "last_offset", "runs")

    def __init__(self, run: InFlightRun) -> None:
        self.first_offset = run.first_offset
        self.last_offset = run.last_offset
        self.runs = [run]
        """The runs, without gaps, in order of offset."""

    def __repr__(self) -> str:
        return f"<InFlightBatch {self.runs}>"

    def within(self, first_offset: int, last_offset: int) -> list[InFlightRun]:
        """The runs of exactly these offsets: runs that reach beyond are split."""
        self._split_at(first_offset)
        self._split_at(last_offset + 1)
        return self.overlapping(first_offset, last_offset)

    def overlapping(self, first_offset: int, last_offset: int) -> list[InFlightRun]:
        """The runs that have any of these offsets."""
        return [
            run
            for run in self.runs
            if run.first_offset <= last_offset and run.last_offset >= first_offset
        ]

    def _split_at(self, offset: int) -> None:
        for index, run in enumerate(self.runs):
            if run.first_offset < offset <= run.last_offset:
                self.runs.insert(index + 1, run.rest_from(offset))
                return

    def join(self) -> None:
        """Join neighbouring runs that no longer differ."""
        joined = self.runs[:1]
        for run in self.runs[1:]:
            before = joined[-1]
            # A run with a transition stays, because the transition refers to it.
            if run.transition is None and run.continues(before):
                before.last_offset = run.last_offset
            else:
                joined.append(run)
        self.runs = joined
