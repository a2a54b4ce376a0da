"""Fetch sessions as they pass the proxy: the partitions that a Fetch means without naming them.

Owns: the partitions of each session, with the offsets that its consumer has requested.  Never:
serves a fetch.  Kafka: FetchSession, FetchSessionHandler; KIP-227.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kcluster.protocol import messages as m

MAX_SESSIONS: Final = 20_000
"""The most sessions of all brokers; beyond it the oldest are forgotten."""
_NO_SESSION: Final = 0
_FIRST_EPOCH: Final = 0

PartKey = tuple[bytes, str, int]
"""(topic id, topic name, partition); a Fetch has either the id or the name."""


class FetchPart(Struct):
    """A partition of a session, and the offset that was last requested from it."""

    topic: str
    topic_id: bytes
    partition: int
    offset: int


class PassingSessions:
    """The sessions of all brokers."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, int], dict[PartKey, FetchPart]] = {}

    def parts(self, broker_id: int, session_id: int) -> Iterable[FetchPart]:
        """The partitions of a session; empty for an unknown one."""
        return self._sessions.get((broker_id, session_id), {}).values()

    def wanted(self, broker_id: int, request: m.FetchRequest) -> dict[PartKey, FetchPart]:
        """The partitions that a Fetch means, with those of its session, which is brought up to
        date."""
        key = (broker_id, request.session_id)
        is_full = request.session_id == _NO_SESSION or request.session_epoch <= _FIRST_EPOCH
        parts = {} if is_full else self._sessions.get(key, {})
        for topic in request.topics:
            for data in topic.partitions:
                name = topic.topic or ""
                place = (topic.topic_id, name, data.partition)
                parts[place] = FetchPart(name, topic.topic_id, data.partition, data.fetch_offset)
        for gone in request.forgotten_topics_data:
            for partition in gone.partitions:
                parts.pop((gone.topic_id, gone.topic or "", partition), None)
        return parts

    def answered(
        self, broker_id: int, parts: dict[PartKey, FetchPart], answer: m.FetchResponse
    ) -> None:
        """Take note of the session that an answer opens or goes on with."""
        if answer.session_id == _NO_SESSION or answer.error_code:
            return
        key = (broker_id, answer.session_id)
        if key not in self._sessions:
            while len(self._sessions) >= MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        self._sessions[key] = parts
