"""The messages between nodes, and the brokers' sessions at the controller, while a page is open.

Owns: the choice of messages to show, their rows, the rows of sessions.  Never: records while no
page is open, decides what is drawn (runs/page/).
Kafka: no counterpart; tcpdump between the brokers, and the broker.session.timeout.ms that a
KRaft controller counts down for each of them (BrokerHeartbeatManager).

At full speed some thousand messages pass in a second; a viewer sees a few.  So each reading shows
at most MAX_REQUESTS requests, and FETCHES_PER_READING fetches of a link: after a first burst of
that number, they are spread over the time between two readings.  The slower the clock, the fewer
messages pass in that time: in slow motion all are shown.  An answer is shown if its request was.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from msgspec import Struct

from kcluster.contract import Input, PeerRequest, PeerResponse
from kcluster.evidence.recorder import Recorder
from kcluster.network.fabric import Link
from kcluster.protocol import messages as m
from kcluster.runtime.dispatch import ASKED_BITS

MAX_REQUESTS: Final = 150
"""The most requests that are shown between two readings."""
MAX_ROWS: Final = 4_000
MAX_PARTITIONS: Final = 8
"""The most partitions that a message's row names."""
FETCHES_PER_READING: Final = 4
"""The fetches of a link that are shown between two readings."""
UNWATCHED_US: Final = 10_000_000
"""The time without a reading after which nothing is recorded any more."""


class MessageRow(Struct, gc=False):
    """A message from one node to another.

    `number`: the request's id, which its answer repeats.  `sent_us`, `arrives_us`: in µs of the
    cluster's clock; -1 for a message that is lost.  `parts`: of a fetch's request (topic,
    partition, the offset asked for, -1, -1); of its answer (topic, partition, first and last
    offset, high watermark), with -1 for no records."""

    source: int
    destination: int
    number: int
    is_answer: bool
    api: str
    sent_us: int
    arrives_us: int
    parts: list[tuple[str, int, int, int, int]]


class SessionRow(Struct, gc=False):
    """A broker's session at the controller, after a heartbeat at `at_ms`.  `expires_ms`: the time
    at which the controller fences the broker without another one."""

    at_ms: int
    broker: int
    expires_ms: int


class WatchedRows(NamedTuple):
    """What one reading returns, by table of the stream."""

    messages: list[MessageRow]
    sessions: list[SessionRow]


class Watching:
    """The messages and sessions of a cluster, while readings go on.  Used in the driver's
    thread."""

    def __init__(self, recorder: Recorder) -> None:
        dispatcher = self._dispatcher = recorder.dispatcher
        self._topics = recorder.exchanges().topics
        self._messages: deque[MessageRow] = deque(maxlen=MAX_ROWS)
        self._sessions: deque[SessionRow] = deque(maxlen=MAX_ROWS)
        self._contacts_ms: dict[int, int] = {}
        self._shown: dict[tuple[int, int, int], None] = {}
        """The requests that are shown and have no answer yet."""
        self._busy_until_us: dict[Link, int] = {}
        """The time up to which a link's share of fetches is used, if each has `_apart_us`."""
        self._apart_us = 0
        self._left = MAX_REQUESTS
        self._read_us = dispatcher.now_us

    def read(self, after_ms: int, until_ms: int) -> WatchedRows:
        """The rows after `after_ms` and up to `until_ms`.  What happens from now on is recorded for
        the next readings."""
        dispatcher = self._dispatcher
        now_us = dispatcher.now_us
        if now_us > self._read_us:
            self._apart_us = min(now_us - self._read_us, 1_000_000) // FETCHES_PER_READING
            self._read_us = now_us
        self._left = MAX_REQUESTS
        dispatcher.message_sink = self._on_message
        self._read_sessions()
        after_us, until_us = after_ms * 1000 + 999, until_ms * 1000 + 999
        return WatchedRows(
            [row for row in self._messages if after_us < row.sent_us <= until_us],
            [row for row in self._sessions if after_ms < row.at_ms <= until_ms],
        )

    def _read_sessions(self) -> None:
        for process in self._dispatcher.processes.values():
            controller = process.controller
            if controller is None:
                continue
            timeout_ms = controller.sessions.timeout_ms
            for session in controller.sessions.all():
                contact_ms, broker = session.last_contact_ms, session.broker_id
                if contact_ms is not None and self._contacts_ms.get(broker) != contact_ms:
                    self._contacts_ms[broker] = contact_ms
                    row = SessionRow(contact_ms, broker, contact_ms + timeout_ms)
                    self._sessions.append(row)

    def _on_message(self, source: int, destination: int, event: Input, arrives_us: int) -> None:
        now_us = self._dispatcher.now_us
        if isinstance(event, PeerRequest):
            is_answer, body = False, event.body
            if self._left <= 0:
                if now_us > self._read_us + UNWATCHED_US:
                    self._dispatcher.message_sink = None
                return
            if isinstance(body, m.FetchRequest):
                link = (source, destination)
                busy_us = max(self._busy_until_us.get(link, 0), now_us) + self._apart_us
                if busy_us > now_us + FETCHES_PER_READING * self._apart_us:
                    return
                self._busy_until_us[link] = busy_us
            self._left -= 1
            if len(self._shown) > MAX_ROWS:
                self._shown.clear()
            self._shown[source, destination, event.request_id & ASKED_BITS] = None
        elif isinstance(event, PeerResponse):
            is_answer, body = True, event.body
            key = (destination, source, event.request_id & ASKED_BITS)
            if key not in self._shown:
                return
            del self._shown[key]
        else:
            return
        number = event.request_id & ASKED_BITS
        api = type(body).__name__.removesuffix("Request").removesuffix("Response")
        parts = self._parts(body)
        self._messages.append(
            MessageRow(source, destination, number, is_answer, api, now_us, arrives_us, parts)
        )

    def _parts(self, body: object) -> list[tuple[str, int, int, int, int]]:
        """The partitions that a message names, as in MessageRow."""
        if isinstance(body, m.FetchRequest):
            return [
                (topic.topic, one.partition, one.fetch_offset, -1, -1)
                for topic in body.topics[:MAX_PARTITIONS]
                for one in topic.partitions[:MAX_PARTITIONS]
            ][:MAX_PARTITIONS]
        if not isinstance(body, m.FetchResponse):
            return []
        parts = []
        for topic in body.responses[:MAX_PARTITIONS]:
            name = self._topics.get(topic.topic_id, "")
            for one in topic.partitions[:MAX_PARTITIONS]:
                batches = one.records
                is_read = isinstance(batches, list) and batches
                first = batches[0].base_offset if is_read else -1
                last = batches[-1].last_offset if is_read else -1
                parts.append((name, one.partition_index, first, last, one.high_watermark))
        return parts[:MAX_PARTITIONS]
