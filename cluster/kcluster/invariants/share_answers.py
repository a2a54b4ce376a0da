"""What members of share groups get from a leader, compared with what they asked for.

Owns: the partitions of each share session, as the requests name them; each answer that has records
of another partition, or more of them than its request allows, or does not know the session.
Never: looks into a leader, knows who holds a record (shares.py does).  Kafka:
SharePartitionManager.newContext, DelayedShareFetch, SharePartition.acquire; KIP-932, KIP-1206.

    share-unasked           records of a partition that is not in the member's share session
    share-over-limit        more records than the request's max_records
    share-over-deliveries   a record that was delivered more often than share.delivery.count.limit
    share-last-together     a record at its last delivery, together with other records
    share-session-lost      a leader does not know a session that it has opened, though neither the
                            member nor its connection has ended it

The limit of records is exact with acquire mode record_limit.  Otherwise batches are not split, so
the last partition may exceed what is left of the limit; once nothing is left, no partition follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from kcluster.contract import Reply, Request
from kcluster.invariants.facts import Measure, OutOfBounds
from kcluster.invariants.group_facts import GivenTogether, NotAsked, SessionLost
from kcluster.invariants.promises import BrokenPromise, forget_oldest
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

MaxDeliveries = Callable[[int, str], int | None]
"""(broker, group) -> share.delivery.count.limit of the group by the broker's metadata; None if it
is not known."""
_OPENS: Final = 0
_UNKNOWN_SESSION: Final = ErrorCode.SHARE_SESSION_NOT_FOUND
_RECORD_LIMIT: Final = 1
_Place = tuple[bytes, int]
"""(topic id, partition)."""
_Named = dict[_Place, int]
"""The partitions of a session, each with the number of the request that named it last."""


class _AskedFor(Struct):
    """A fetch that waits for its answer.  `named`: the partitions of its session, as a live value;
    `may_get`: the partitions that may be in the answer; `forgotten`: the partitions that the fetch
    removes from the session."""

    number: int
    broker: int
    named: _Named
    may_get: frozenset[_Place]
    forgotten: tuple[_Place, ...]


class _OpenedSession(Struct):
    """A share session that a member has asked for.  `is_open`: whether it was confirmed."""

    connection: int
    is_open: bool = False


def _unknown_limit(_broker: int, _group: str) -> int | None:
    return None


class ShareAnswers:
    """The fetches of all members of share groups of one cluster."""

    def __init__(self) -> None:
        self.max_deliveries: MaxDeliveries = _unknown_limit
        self._opened: dict[tuple[int, str, str], _OpenedSession] = {}
        """The newest session, by broker, group and member."""
        self._opening: dict[Request, _OpenedSession] = {}
        self._continued: dict[Request, int] = {}
        """The requests within an open session of their own connection, with their broker."""
        self._sessions: dict[tuple[int, str, str], _Named] = {}
        """By broker, group and member."""
        self._asked: dict[Request, _AskedFor] = {}
        self._number = 0

    def on_request(self, broker: int, request: Request) -> None:
        """Record a member's fetch when it arrives at a leader.  Since the leader may refuse it,
        added partitions count from now on, and removed partitions only after the answer."""
        body: m.ShareFetchRequest | m.ShareAcknowledgeRequest = request.body
        key = (broker, body.group_id or "", body.member_id or "")
        self._follow_session(key, request)
        if not isinstance(body, m.ShareFetchRequest) or body.share_session_epoch < _OPENS:
            return
        if body.share_session_epoch == _OPENS:
            self._sessions[key] = {}
            forget_oldest(self._sessions)
        named = self._sessions.get(key)
        if named is None:
            return  # the session began before the watch
        self._number += 1
        for topic in body.topics:
            for one in topic.partitions:
                named[topic.topic_id, one.partition_index] = self._number
        forgotten = tuple(
            (topic.topic_id, index)
            for topic in body.forgotten_topics_data
            for index in topic.partitions
        )
        may_get = frozenset(named).difference(forgotten)
        self._asked[request] = _AskedFor(self._number, broker, named, may_get, forgotten)
        forget_oldest(self._asked)

    def _follow_session(self, key: tuple[int, str, str], request: Request) -> None:
        epoch, session = request.body.share_session_epoch, self._opened.get(key)
        if epoch == _OPENS:
            if isinstance(request.body, m.ShareFetchRequest):
                session = self._opened[key] = _OpenedSession(request.connection_id)
                self._opening[request] = session
                forget_oldest(self._opened)
                forget_oldest(self._opening)
        elif session is not None and session.is_open:
            if session.connection == request.connection_id:
                self._continued[request] = key[0]
                forget_oldest(self._continued)
            if epoch < _OPENS:
                del self._opened[key]

    def on_closed(self, connection_id: int) -> list[tuple[int, str, str]]:
        """Record the end of a connection, which ends its share sessions.  Returns these as (broker,
        group, member)."""
        ended = [key for key, one in self._opened.items() if one.connection == connection_id]
        for key in ended:
            del self._opened[key]
        return ended

    def _check_session(self, reply: Reply) -> Iterator[tuple[int, BrokenPromise]]:
        request, answer = reply.request, reply.body
        opening = self._opening.pop(request, None)
        broker = self._continued.pop(request, -1)
        if answer is None:
            return
        if opening is not None:
            opening.is_open = not answer.error_code
        elif broker >= 0 and answer.error_code == _UNKNOWN_SESSION:
            lost = SessionLost(request.body.member_id or "")
            yield broker, ("share-session-lost", f"group {request.body.group_id}", lost)

    def on_decided(self, reply: Reply) -> Iterator[tuple[int, BrokenPromise]]:
        """What an answer breaks, with its broker.  Called once the answer is decided, and perhaps
        again when it is sent."""
        yield from self._check_session(reply)
        answer, body = reply.body, reply.request.body
        asked = self._asked.pop(reply.request, None)
        if asked is None or answer is None or answer.error_code:
            return
        for place in asked.forgotten:
            if asked.named.get(place, asked.number + 1) <= asked.number:
                del asked.named[place]
        counts: list[int] = []
        deliveries = 0
        for topic in answer.responses:
            for row in topic.partitions:
                if not row.acquired_records:
                    continue
                first = row.acquired_records[0].first_offset
                if (topic.topic_id, row.partition_index) not in asked.may_get:
                    subject = f"group {body.group_id}, partition {row.partition_index}"
                    unasked = NotAsked(body.member_id or "", first)
                    yield asked.broker, ("share-unasked", subject, unasked)
                some = (one.last_offset - one.first_offset + 1 for one in row.acquired_records)
                counts.append(sum(some))
                deliveries = max(deliveries, *(one.delivery_count for one in row.acquired_records))
        limit = self.max_deliveries(asked.broker, body.group_id or "") if deliveries > 1 else None
        if limit is not None and deliveries > limit:
            often = OutOfBounds(Measure.DELIVERIES, deliveries, Measure.MAX_DELIVERIES, limit)
            yield asked.broker, ("share-over-deliveries", f"group {body.group_id}", often)
        if limit is not None:
            for fact in _given_together(body.member_id or "", answer, limit):
                yield asked.broker, ("share-last-together", f"group {body.group_id}", fact)
        is_exact = body.share_acquire_mode == _RECORD_LIMIT
        most = body.max_records if is_exact else body.max_records - 1 + max(counts, default=0)
        if counts and sum(counts) > most:
            got = (Measure.RECORDS, sum(counts), Measure.MAX_RECORDS, body.max_records)
            broken = ("share-over-limit", f"group {body.group_id}", OutOfBounds(*got))
            yield asked.broker, broken


def _given_together(
    member: str, answer: m.ShareFetchResponse, limit: int
) -> Iterator[GivenTogether]:
    """The records in an answer that are at their last delivery and do not come alone.  A record
    near the limit may be what its members die of, so it is isolated before, unless the limit is too
    small for that."""
    for topic in answer.responses if limit > 2 else ():
        for row in topic.partitions:
            count = sum(one.last_offset - one.first_offset + 1 for one in row.acquired_records)
            last = [one for one in row.acquired_records if one.delivery_count == limit]
            if last and count > 1:
                yield GivenTogether(member, last[0].first_offset, limit, count)
