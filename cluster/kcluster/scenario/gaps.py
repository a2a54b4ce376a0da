"""The times in which no client could write to a partition because its leader was lost.

Owns: Gap, the gaps of a recorded run; runs/page/gaps.js finds them in the rows of a stream.  Never:
plays a run, makes words.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from kcluster.clients.ledger import Partition
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    BrokerResumed,
    BrokerStarted,
    DiskFull,
)
from kcluster.events.network import LinkCut, LinkHealed
from kcluster.evidence.recorder import Recorder
from kcluster.node_ids import CONTROLLER_ID
from kcluster.protocol.apis import ApiKey


class Gap(Struct, frozen=True):
    """A time in which no client could write; times in ms of the cluster's clock.  `leader`: the
    leader that was lost at `from_ms`; `noticed_ms`: the controller fenced it; `elected_ms`: another
    leader was elected; `written_ms`: a producer wrote there.  None: not yet."""

    leader: int
    from_ms: int
    noticed_ms: int | None = None
    elected_ms: int | None = None
    written_ms: int | None = None

    def since(self, began_ms: int) -> Gap:
        """The gap in ms since a time."""
        noticed, elected, written = (
            None if at_ms is None else at_ms - began_ms
            for at_ms in (self.noticed_ms, self.elected_ms, self.written_ms)
        )
        return Gap(self.leader, self.from_ms - began_ms, noticed, elected, written)

    @property
    def duration_ms(self) -> int | None:
        """None: a gap that has not ended."""
        return None if self.written_ms is None else self.written_ms - self.from_ms


def gaps_of(recorder: Recorder, partition: Partition) -> list[Gap]:
    """The gaps of a partition, oldest first; only the last one may be open."""
    return list(_gaps(_Lookups(recorder, partition)))


def _gaps(known: _Lookups) -> Iterator[Gap]:
    led: int | None = None
    ended_ms: int | None = None
    for at_ms, leader in known.leaders:
        if led is not None and ended_ms is None and leader != led:
            ended_ms = at_ms
        if leader < 0:
            continue
        if led is not None and ended_ms is not None:
            lost = known.lost(led, ended_ms)
            if lost is not None and lost.noticed_ms is not None:
                written_ms = known.first_write_ms(leader, at_ms)
                yield Gap(led, lost.from_ms, lost.noticed_ms, at_ms, written_ms)
        led, ended_ms = leader, None
    if led is not None:
        open_gap = known.lost(led, known.until_ms if ended_ms is None else ended_ms)
        if open_gap is not None:
            yield open_gap


class _Lookups:
    """What a recorder has about one partition and the brokers that have led it."""

    def __init__(self, recorder: Recorder, partition: Partition) -> None:
        observed = recorder.of_partition(partition)
        self.until_ms = recorder.dispatcher.now_ms
        self.leaders = [
            (at_ms, found.leader) for one in observed for at_ms, found in one.registrations
        ]
        self._recorder, self._partition, self._observed = recorder, partition, observed

    def lost(self, broker: int, ended_ms: int) -> Gap | None:
        """The open gap of a leader that neither clients nor the controller reach at `ended_ms`;
        None if it is reached."""
        down_ms = cut_ms = None
        way = (broker, CONTROLLER_ID)
        for note in self._recorder.notes:
            if note.at_ms > ended_ms:
                break
            match note.event:
                case BrokerDown() | DiskFull() | BrokerPaused() if note.event.broker == broker:
                    down_ms = note.at_ms
                case BrokerStarted() | BrokerResumed() if note.event.broker == broker:
                    down_ms = None
                case LinkCut() if (note.event.source, note.event.destination) == way:
                    cut_ms = note.at_ms
                case LinkHealed() if (note.event.source, note.event.destination) == way:
                    cut_ms = None
        from_ms = cut_ms if down_ms is None else down_ms
        if from_ms is None:
            return None
        return Gap(broker, from_ms, self._fenced_ms(broker, from_ms, ended_ms))

    def _fenced_ms(self, broker: int, from_ms: int, until_ms: int) -> int | None:
        return next(
            (
                note.at_ms
                for note in self._recorder.notes
                if from_ms <= note.at_ms <= until_ms
                and isinstance(note.event, BrokerFenced)
                and note.event.broker == broker
            ),
            None,
        )

    def first_write_ms(self, leader: int, since_ms: int) -> int | None:
        """The first ack of a leader since a time or, if no producer asks for acks, the first
        append; `since_ms` if no client has ever written."""
        written = self._acks or [
            (append.at_ms, append.broker)
            for one in self._observed
            for append in one.appends
            if not append.batch.is_control
        ]
        if not written:
            return since_ms
        times = (at_ms for at_ms, broker in written if broker == leader and at_ms >= since_ms)
        return next(times, None)

    @cached_property
    def _acks(self) -> list[tuple[int, int]]:
        """The times and the brokers of all acks, in order of time."""
        answers = self._recorder.partition_answers(ApiKey.PRODUCE, lambda _: True)
        return [
            (answer.at_ms, answer.broker)
            for answer in answers
            if answer.partition == self._partition and not answer.error_code
        ]
