"""What members of share groups get from a leader, compared with what they asked for.

Owns: the partitions of each share session, as the requests name them; each answer that has records
of another partition, or more of them than its request allows.  Never: looks into a leader, knows
who holds a record (shares.py does).  Kafka: SharePartitionManager.newContext, DelayedShareFetch,
SharePartition.acquire; KIP-932, KIP-1206.

    share-unasked      records of a partition that is not in the member's share session
    share-over-limit   more records than the request's max_records

A limit of records is exact with acquire mode record_limit.  Otherwise a batch is not divided, so
the last partition may exceed what is left of the limit; but one that has nothing left gives none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kcluster.contract import Reply, Request
from kcluster.invariants.facts import Measure, OutOfBounds
from kcluster.invariants.group_facts import NotAsked
from kcluster.invariants.promises import BrokenPromise, forget_oldest
from kcluster.protocol import messages as m

_OPENS: Final = 0
_RECORD_LIMIT: Final = 1
_Place = tuple[bytes, int]
"""(topic id, partition)."""
_Named = dict[_Place, int]
"""The partitions of a session, each with the number of the request that named it last."""


class _AskedFor(Struct):
    """A fetch that waits for its answer.  `named`: its session's partitions, as a live value;
    `may_get`: those of them that it may get records of; `forgotten`: those that it gives up."""

    number: int
    broker: int
    named: _Named
    may_get: frozenset[_Place]
    forgotten: tuple[_Place, ...]


class ShareAnswers:
    """The fetches of all members of share groups of one cluster."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, str, str], _Named] = {}
        """By broker, group and member."""
        self._asked: dict[Request, _AskedFor] = {}
        self._number = 0

    def on_request(self, broker: int, request: Request) -> None:
        """Record a member's fetch when it arrives at a leader.  A leader may refuse it, so what it
        gives up counts from its answer on, and what it adds from now on."""
        body = request.body
        if not isinstance(body, m.ShareFetchRequest) or body.share_session_epoch < _OPENS:
            return
        key = (broker, body.group_id or "", body.member_id or "")
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

    def on_decided(self, reply: Reply) -> Iterator[tuple[int, BrokenPromise]]:
        """What an answer breaks, with its broker; called once it is decided, and perhaps again when
        it is sent."""
        answer, body = reply.body, reply.request.body
        asked = self._asked.pop(reply.request, None)
        if asked is None or answer is None or answer.error_code:
            return
        for place in asked.forgotten:
            if asked.named.get(place, asked.number + 1) <= asked.number:
                del asked.named[place]
        counts: list[int] = []
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
        is_exact = body.share_acquire_mode == _RECORD_LIMIT
        most = body.max_records if is_exact else body.max_records - 1 + max(counts, default=0)
        if counts and sum(counts) > most:
            got = (Measure.RECORDS, sum(counts), Measure.MAX_RECORDS, body.max_records)
            broken = ("share-over-limit", f"group {body.group_id}", OutOfBounds(*got))
            yield asked.broker, broken
