"""An application's processing of a topic: records that it missed, or processed twice or out of
order.

Owns: the facts of processing, the problems and the cause of each, as values.  Never: words for them
(processing_words.py); a verdict, which is about Kafka's promises. Kafka: no counterpart.

A record counts as processed if the application reported it.  The causes are facts at the brokers:
commits with their generations, removed members, rebalances, reads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, structs

from kcluster.clients.ledger import Partition, ReadRecord
from kcluster.evidence.group_history import Commit, Departed, Generation, GroupHistory

M = TypeVar("M", Departed, Generation)


class Processed(Struct, frozen=True, gc=False):
    """An application's report that it has processed a record.  `worker`: the name that the worker
    reported, or its thread's name."""

    at_ms: int
    partition: Partition
    offset: int
    worker: str = ""


class LastRequest(Struct, frozen=True, gc=False):
    """The last request of a client that reads: Kafka's name of its API, and the time at which the
    request was answered or given up.  `fetched_ms`: the time at which the client's last Fetch was
    answered or given up, -1 if it sent none."""

    client: str
    api: str
    at_ms: int
    fetched_ms: int = -1


class ProcessingFacts(Struct, frozen=True):
    """All known facts.  `offsets`: by partition, the offsets of the records in its log at the end,
    in order; `processed`: in the order of the reports; `reads`: the records that clients received,
    in order; `last_requests`: the last one of each client that reads."""

    offsets: Mapping[Partition, Sequence[int]]
    processed: Sequence[Processed]
    reads: Sequence[ReadRecord] = ()
    history: GroupHistory = GroupHistory()
    last_requests: Sequence[LastRequest] = ()


class ProcessingProblem(Struct, frozen=True, kw_only=True):
    """Neighbouring records of one partition with one cause: `count` records, from offset `first` to
    `last`."""

    partition: Partition
    first: int
    last: int
    count: int = 1


class Missed(ProcessingProblem, frozen=True, kw_only=True):
    """A record that was not processed.  `commit`: the first accepted commit beyond it, after which
    no member of the group reads the record again; `departed`: the departure of the member that
    committed, if it left.  Without a commit: `refused`: the last refused commit beyond the record;
    `read`: the first read of the record.  Without a read: `first_read`: the first read from the
    partition; `last_request`: the last request of any client that reads."""

    commit: Commit | None = None
    departed: Departed | None = None
    refused: Commit | None = None
    read: ReadRecord | None = None
    first_read: ReadRecord | None = None
    last_request: LastRequest | None = None


class Repeated(ProcessingProblem, frozen=True, kw_only=True):
    """A record that was processed `times` times; `before` and `again` are the first two reports.
    `commit`: the first accepted commit beyond the record; `refused`: the first refused commit after
    it was processed; `departed`, `generation`: the last member that left, and the last generation
    that began, between the two reports."""

    before: Processed
    again: Processed
    times: int = 2
    commit: Commit | None = None
    refused: Commit | None = None
    departed: Departed | None = None
    generation: Generation | None = None

    @property
    def was_committed(self) -> bool:
        """Whether a commit beyond the record had been accepted before it was processed again."""
        return self.commit is not None and self.commit.at_ms <= self.again.at_ms


class OutOfOrder(ProcessingProblem, frozen=True, kw_only=True):
    """A record that was processed for the first time after a later record of its partition.
    `generation`: the last generation that began between the two."""

    after: Processed
    own: Processed
    generation: Generation | None = None


AnyProblem = Missed | Repeated | OutOfOrder


def find_problems(facts: ProcessingFacts) -> list[AnyProblem]:
    """Every problem: by partition the missed, the repeated and the disordered records, each by
    offset."""
    return [
        problem
        for partition in sorted({*facts.offsets, *(x.partition for x in facts.processed)})
        for problem in _PartitionProcessing(facts, partition).problems()
    ]


class _PartitionProcessing:
    """The history of the records of one partition."""

    def __init__(self, facts: ProcessingFacts, partition: Partition) -> None:
        self.partition = partition
        self.offsets = facts.offsets.get(partition, ())
        self.processed = [x for x in facts.processed if x.partition == partition]
        commits = [x for x in facts.history.commits if x.partition == partition]
        self.accepted = [x for x in commits if x.is_accepted]
        self.refused = [x for x in commits if not x.is_accepted]
        self.committed_end = max((x.offset for x in self.accepted), default=0)
        self.departures = facts.history.departures
        self.generations = facts.history.generations
        self.last_request = max(facts.last_requests, key=lambda x: x.at_ms, default=None)
        self.first_read: ReadRecord | None = None
        self.reads: dict[int, ReadRecord] = {}
        for read in facts.reads:
            if read.partition == partition:
                self.first_read = self.first_read or read
                self.reads.setdefault(read.offset, read)

    def problems(self) -> Iterator[AnyProblem]:
        yield from _joined(self._missed(), self.offsets)
        yield from _joined(self._repeated(), self.offsets)
        yield from _joined(self._out_of_order(), self.offsets)

    # ------------------------------------------------------------------------------- missed

    def _missed(self) -> Iterator[Missed]:
        done = {x.offset for x in self.processed}
        for offset in self.offsets:
            if offset not in done:
                yield self._missed_one(offset)

    def _missed_one(self, offset: int) -> Missed:
        commit = self._accepted_beyond(offset)
        if commit is not None:
            departed = next(
                (x for x in self._departures_of(commit) if x.at_ms >= commit.at_ms), None
            )
            return Missed(
                partition=self.partition,
                first=offset,
                last=offset,
                commit=commit,
                departed=departed,
            )
        read = self.reads.get(offset)
        return Missed(
            partition=self.partition,
            first=offset,
            last=offset,
            refused=next((x for x in reversed(self.refused) if x.offset > offset), None),
            read=read,
            first_read=self.first_read if read is None else None,
            last_request=self.last_request if read is None else None,
        )

    def _accepted_beyond(self, offset: int) -> Commit | None:
        if offset >= self.committed_end:
            return None
        return next(x for x in self.accepted if x.offset > offset)

    def _departures_of(self, commit: Commit) -> Iterator[Departed]:
        for departed in self.departures:
            event = departed.event
            if (event.group, event.member) == (commit.group, commit.member):
                yield departed

    # ----------------------------------------------------------------------------- repeated

    def _repeated(self) -> Iterator[Repeated]:
        all_times: dict[int, list[Processed]] = {}
        for processed in self.processed:
            all_times.setdefault(processed.offset, []).append(processed)
        for _, times in sorted(all_times.items()):
            if len(times) > 1:
                yield self._repeated_one(times)

    def _repeated_one(self, times: Sequence[Processed]) -> Repeated:
        before, again = times[:2]
        offset = again.offset
        refused = (x for x in self.refused if x.offset > offset and x.at_ms >= before.at_ms)
        return Repeated(
            partition=self.partition,
            first=offset,
            last=offset,
            before=before,
            again=again,
            times=len(times),
            commit=self._accepted_beyond(offset),
            refused=next(refused, None),
            departed=_last_between(self.departures, before.at_ms, again.at_ms),
            generation=_last_between(self.generations, before.at_ms, again.at_ms),
        )

    # ------------------------------------------------------------------------- out of order

    def _out_of_order(self) -> Iterator[OutOfOrder]:
        done: set[int] = set()
        highest: Processed | None = None
        for own in self.processed:
            if own.offset in done:
                continue
            done.add(own.offset)
            if highest is None or own.offset > highest.offset:
                highest = own
                continue
            yield OutOfOrder(
                partition=self.partition,
                first=own.offset,
                last=own.offset,
                after=highest,
                own=own,
                generation=_last_between(self.generations, highest.at_ms, own.at_ms),
            )


def _last_between(moments: Sequence[M], from_ms: int, to_ms: int) -> M | None:
    """The last of these items at or after `from_ms` and before `to_ms`."""
    at = bisect_left(moments, to_ms, key=lambda moment: moment.at_ms)
    return moments[at - 1] if at and moments[at - 1].at_ms >= from_ms else None


def _joined(problems: Iterator[AnyProblem], offsets: Sequence[int]) -> list[AnyProblem]:
    """The problems, with neighbouring records of equal cause joined."""
    places = {offset: place for place, offset in enumerate(offsets)}
    joined: list[AnyProblem] = []
    for problem in problems:
        before = joined[-1] if joined else None
        if (
            before is not None
            and places.get(problem.first, -1) - places.get(before.last, -1) == 1
            and _story(problem) == _story(before)
        ):
            joined[-1] = structs.replace(before, last=problem.last, count=before.count + 1)
        else:
            joined.append(problem)
    return joined


def _story(problem: AnyProblem) -> tuple[object, ...]:
    """The facts that neighbouring records must have in common, so that one sentence covers them."""
    match problem:
        case Missed(commit=commit, departed=departed, refused=refused, read=read):
            reader = None if read is None else read.consumer
            return (commit, departed, refused, reader, problem.first_read)
        case Repeated(before=before, again=again):
            who = (before.worker, again.worker, problem.times)
            error = None if problem.refused is None else problem.refused.error
            return (*who, problem.was_committed, error, problem.departed, problem.generation)
        case OutOfOrder(after=after, own=own):
            return (after, own.worker, problem.generation)
