"""When a leader takes a follower out of the ISR: not while it keeps up, and soon once it does not.

Owns: what leaders have proposed, and since when each member of an ISR lacks the same records.
Never: changes anything.  Kafka: Partition.maybeShrinkIsr, ReplicaState.isCaughtUp; KIP-227.

    isr-hasty      a leader proposed an ISR without a follower that, within replica.lag.time.max.ms,
                   was caught up at its last fetch, or at its last fetch but one
    isr-laggard    a leader proposed nothing although a member of its ISR lacked the same records
                   for much longer than replica.lag.time.max.ms

A fetch finds a follower caught up if it has all that its leader has then, even if an incremental
fetch does not name the partition.  It was caught up at its last fetch but one if it now has all
that its leader had then: on a slow link, a follower never has all of a log that is being written
to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kcluster.invariants.facts import KeptLaggard, LeftInSync
from kcluster.invariants.observed import Move
from kcluster.invariants.promises import forget_oldest
from kcluster.partition.replica import FollowerProgress, IsrProposal, Replica

SLACK_MS: Final = 1_000
"""The time beyond two lag times, in which the leader has looked at least twice."""


class _Lacking(NamedTuple):
    """A member of an ISR that lacks records, as its leader knows."""

    leader_epoch: int
    log_end_offset: int
    since_ms: int


class _Fetched(NamedTuple):
    """The newest fetch of a follower that named a partition, with its leader's log end then, and
    the time at which the follower was caught up, as far as later fetches show; -1: never."""

    at_ms: int
    leader_end: int
    caught_up_ms: int


class InSyncRules:
    """The leaders of one run."""

    def __init__(self) -> None:
        self._proposals: dict[Replica, IsrProposal] = {}
        """The newest proposal of each leader."""
        self._lacking: dict[tuple[Replica, int], _Lacking] = {}
        self._fetched: dict[FollowerProgress, _Fetched] = {}

    def on_fetch(self, replicas: Iterable[Replica], follower: int, now_ms: int) -> None:
        """Record a fetch that a leader has handled in this step.  `replicas`: the named ones."""
        fetched = self._fetched
        for replica in replicas:
            progress = replica.followers.get(follower)
            if progress is None or progress.last_fetch_ms != now_ms:
                continue
            known = fetched.get(progress)
            caught_up_ms = -1
            if known is not None:
                has_all = progress.log_end_offset >= known.leader_end
                caught_up_ms = known.at_ms if has_all else known.caught_up_ms
            fetched[progress] = _Fetched(now_ms, replica.log.log_end_offset, caught_up_ms)
        forget_oldest(fetched)

    def on_proposal(
        self, replica: Replica, moves: Sequence[Move], last_fetches: Mapping[int, int], now_ms: int
    ) -> Iterator[LeftInSync]:
        """Check the members that a leader's new proposal removes from the ISR.  `moves`: the moves
        of the partition before this step."""
        proposal = replica.proposal
        if proposal is None or self._proposals.get(replica) is proposal:
            return
        self._proposals[replica] = proposal
        for broker in replica.isr:
            self._lacking.pop((replica, broker), None)
            progress = replica.followers.get(broker)
            if broker in proposal.isr or progress is None:
                continue
            isr = tuple(replica.isr)
            newest = self._fetched.get(progress)
            caught_up_ms = -1 if newest is None else newest.caught_up_ms
            if caught_up_ms >= 0 and now_ms - caught_up_ms <= replica.lag_time_max_ms:
                yield LeftInSync(broker, isr, caught_up_ms, now_ms)
                continue
            fetched_ms = last_fetches.get(broker, -1)
            if fetched_ms < 0 or now_ms - fetched_ms > replica.lag_time_max_ms:
                continue
            end = _log_end_at(moves, replica.broker_id, fetched_ms)
            if end is not None and progress.log_end_offset >= end:
                yield LeftInSync(broker, isr, fetched_ms, now_ms)

    def look(
        self, replicas: Iterable[Replica], now_ms: int
    ) -> Iterator[tuple[Replica, KeptLaggard]]:
        """Look at the replicas of one broker whose process runs."""
        for replica in replicas:
            for broker, progress in replica.followers.items():
                place = (replica, broker)
                end = progress.log_end_offset
                if (
                    broker not in replica.isr
                    or replica.proposal is not None
                    or end >= replica.log.log_end_offset
                ):
                    self._lacking.pop(place, None)
                    continue
                known = self._lacking.get(place)
                if known is None or known[:2] != (replica.leader_epoch, end):
                    self._lacking[place] = _Lacking(replica.leader_epoch, end, now_ms)
                elif now_ms - known.since_ms > 2 * replica.lag_time_max_ms + SLACK_MS:
                    del self._lacking[place]
                    isr = tuple(replica.isr)
                    yield replica, KeptLaggard(broker, isr, end, known.since_ms, now_ms)

    def forget_all(self) -> None:
        """Forget what all members lack."""
        self._lacking = {}

    def forget(self, replicas: Iterable[Replica]) -> None:
        """Discard what followers lack, for the replicas of a broker that is not running."""
        for replica in replicas:
            for broker in replica.followers:
                self._lacking.pop((replica, broker), None)


def _log_end_at(moves: Sequence[Move], broker: int, at_ms: int) -> int | None:
    """The end of a leader's log at the end of a millisecond; None if nothing is known of it."""
    for move in reversed(moves):
        if move.broker == broker and move.at_ms <= at_ms:
            return move.log_end_offset
    return None
