"""A past played again in virtual time: what the clients of one partition see of it.

Owns: playing a scenario until a moment and on until the partition can be written, PlayedPast.
Never: chooses values (parameters.py does), compares two pasts (parameter_difference.py does).
Kafka: no counterpart.

From the moment on no further step is played; the clients go on.
"""

from __future__ import annotations

from statistics import median_low
from typing import Final

from msgspec import Struct

from kcluster.clients.ledger import Outcome, Partition
from kcluster.operations.errors import ClusterError
from kcluster.runs.record import RunRecord, SendFate, SendRow
from kcluster.scenario.gaps import Gap, gaps_of
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.fork import check_moment
from kcluster.scenario.play.virtual import VirtualRun

LONGEST_GAP_MS: Final = 60_000
"""The time after the moment in which a gap may still end."""
FIRST_SLICE_MS: Final = 500
"""The time that is played before an open gap is looked at again; it doubles each time."""


class PlayedPast(Struct, frozen=True):
    """A past of a partition; times in ms since the start of the run, which was played until
    `until_ms`.

    Counts are of the records that were sent until the moment, to any partition: `lost`:
    acknowledged records that are lost; `duplicated`: records that are in the log more than once;
    `failed`: sends that failed.  `ack_ms`: the median time of an ack of this partition outside its
    gaps, None if there is none; `longest_wait_ms`: the longest time without an outcome of one of
    its records.  `problems`: the reasons why steps could not be performed, one line each."""

    gaps: tuple[Gap, ...]
    until_ms: int
    lost: int
    duplicated: int
    failed: int
    ack_ms: int | None
    longest_wait_ms: int
    problems: tuple[str, ...]

    @property
    def gap(self) -> Gap | None:
        """The last gap."""
        return self.gaps[-1] if self.gaps else None


class Past(Struct, frozen=True):
    """A past as it was played.  `record`: of its whole run."""

    facts: PlayedPast
    record: RunRecord


def play_past(scenario: Scenario, seed: int, at_ms: int, partition: Partition) -> Past:
    """Play a scenario until `at_ms` after its start, and on until producers write to the partition
    again.  ClusterError for a moment or a partition that the run does not have."""
    check_moment(scenario, at_ms)
    played = VirtualRun(scenario, seed)
    stage, recorder = played.stage, played.run.recorder
    played.advance(at_ms)
    moment_ms = stage.dispatcher.now_ms
    if not recorder.of_partition(partition):
        raise ClusterError(f"{partition[0]}-{partition[1]} does not exist in the past as played")
    played.run.runner.branch_off(())
    stage.run_until(at_ms + 1)  # the repair after the run is no part of the moment
    gaps = gaps_of(recorder, partition)
    slice_ms, limit_ms = FIRST_SLICE_MS, at_ms + LONGEST_GAP_MS
    while gaps and gaps[-1].written_ms is None and stage.now_ms < limit_ms:
        stage.run_until(min(stage.now_ms + slice_ms, limit_ms))
        slice_ms *= 2
        gaps = gaps_of(recorder, partition)
    problems, until_ms = tuple(stage.problems), stage.now_ms
    record = played.finish().record()
    began_ms = moment_ms - at_ms
    sends = [send for send in record.sends if send.sent_ms < moment_ms]
    own = [send for send in sends if (send.topic, send.partition) == partition]
    facts = PlayedPast(
        gaps=tuple(gap.since(began_ms) for gap in gaps),
        until_ms=until_ms,
        lost=sum(send.fate is SendFate.LOST for send in sends),
        duplicated=sum(each.name == "duplicate" for send in sends for each in send.anomalies),
        failed=sum(send.outcome == Outcome.FAILED for send in sends),
        ack_ms=_median_ack_ms(own, gaps),
        longest_wait_ms=max((_wait_ms(send, began_ms + until_ms) for send in own), default=0),
        problems=problems,
    )
    return Past(facts, record)


def _median_ack_ms(sends: list[SendRow], gaps: list[Gap]) -> int | None:
    """The median time of acks outside the gaps; None without any, as with acks=0."""
    taken = [
        send.ended_ms - send.sent_ms
        for send in sends
        if send.outcome == Outcome.ACKED
        and send.acks
        and not any(_overlap(send, gap) for gap in gaps)
    ]
    return median_low(taken) if taken else None


def _overlap(send: SendRow, gap: Gap) -> bool:
    is_before = gap.written_ms is not None and gap.written_ms < send.sent_ms
    return not is_before and gap.from_ms <= send.ended_ms


def _wait_ms(send: SendRow, until_ms: int) -> int:
    ended_ms = send.ended_ms if 0 <= send.ended_ms <= until_ms else until_ms
    return ended_ms - send.sent_ms
