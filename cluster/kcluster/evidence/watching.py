"""The messages between nodes, the brokers' sessions at the controller, and the consumers' fetches
that wait, while a page is open.

Owns: the choice of messages to show, their rows, the rows of sessions and of waiting fetches.
Never: records while no page is open, decides what is drawn (runs/page/).
Kafka: no counterpart; tcpdump between the brokers, and the broker.session.timeout.ms that a
KRaft controller counts down for each of them (BrokerHeartbeatManager).

At full speed some thousand messages pass in a second; a viewer sees a few.  So each reading shows
at most MAX_REQUESTS requests, and FETCHES_PER_READING fetches of a link: after a first burst of
that number, they are spread over the time between two readings.  The slower the clock, the fewer
messages pass in that time: in slow motion all are shown.  An answer is shown if its request was.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final, NamedTuple

from kcluster.broker.handlers.data.fetch import PendingFetch
from kcluster.contract import Input, PeerRequest, PeerResponse
from kcluster.evidence.recorder import Recorder
from kcluster.network.fabric import Link
from kcluster.protocol import messages as m
from kcluster.runtime.dispatch import ASKED_BITS
from kcluster.structs import Untracked

MAX_REQUESTS: Final = 150
"""The most requests that are shown between two readings."""
MAX_ROWS: Final = 4_000
MAX_PARTITIONS: Final = 8
"""The most partitions that a row names."""
FETCHES_PER_READING: Final = 4
"""The fetches of a link that are shown between two readings."""
UNWATCHED_US: Final = 10_000_000
"""The time without a reading after which nothing is recorded any more."""


class MessageRow(Untracked):
    """A message from one node to another.

    `number`: the request's id, which its answer repeats.  `sent_us`, `arrives_us`: in µs of the
    cluster's clock; -1 for a message that is lost.  `parts`: of the answer to a fetch (topic,
    partition, first and last offset, high watermark), with -1 for no records."""

    source: int
    destination: int
    number: int
    is_answer: bool
    api: str
    sent_us: int
    arrives_us: int
    parts: list[tuple[str, int, int, int, int]]


class SessionRow(Untracked):
    """A broker's session at the controller, after a heartbeat at `at_ms`.  `expires_ms`: the time
    at which the controller fences the broker without another one."""

    at_ms: int
    broker: int
    expires_ms: int


class AskingRow(Untracked):
    """A consumer's fetch that has waited at a broker since `at_ms`.  `partitions`: the names of the
    partitions in its session, at most MAX_PARTITIONS."""

    at_ms: int
    client: str
    broker: int
    partitions: list[str]


class WatchedRows(NamedTuple):
    """What one reading returns, by table of the stream."""

    messages: list[MessageRow]
    sessions: list[SessionRow]
    asking: list[AskingRow]


class Watching:
    """The messages and sessions of a cluster, while readings go on.  Used in the driver's
    thread."""

    def __init__(self, recorder: Recorder) -> None:
        dispatcher = self._dispatcher = recorder.dispatcher
        self._exchanges = recorder.exchanges()
        self._messages: deque[MessageRow] = deque(maxlen=MAX_ROWS)
        self._sessions: deque[SessionRow] = deque(maxlen=MAX_ROWS)
        self._contacts_ms: dict[int, int] = {}
        self._shown: dict[tuple[int, int, int], bool] = {}
        """The requests that are shown and have no answer yet."""
        self._free_us: dict[Link, int] = {}
        """The time from which a link's next fetch is shown."""
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
            self._asking(after_ms, until_ms),
        )

    def _asking(self, after_ms: int, until_ms: int) -> list[AskingRow]:
        fetches = (
            (node.node_id, fetch)
            for node in self._dispatcher.brokers()
            for connection, fetch in node.parked_fetches.items()
            if connection >= 0
            and isinstance(fetch, PendingFetch)
            and after_ms < fetch.request.arrived_ms <= until_ms
        )
        rows = []
        for broker, fetch in islice(fetches, MAX_REQUESTS):
            client = self._exchanges.client(fetch.request.client_id)
            wanted = islice(fetch.partitions.values(), MAX_PARTITIONS)
            names = [f"{each.topic}-{each.partition}" for each in wanted]
            rows.append(AskingRow(fetch.request.arrived_ms, client, broker, names))
        return rows

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
        # This runs for each message of the cluster: the usual ends come first.
        if isinstance(event, PeerRequest):
            now_us, body = self._dispatcher.now_us, event.body
            if type(body) is m.FetchRequest:
                link = (source, destination)
                free_us = self._free_us.get(link, 0)
                if now_us < free_us or self._is_full(now_us):
                    return
                burst_us = (FETCHES_PER_READING - 1) * self._apart_us
                self._free_us[link] = max(free_us, now_us - burst_us) + self._apart_us
            elif self._is_full(now_us):
                return
            self._left -= 1
            if len(self._shown) > MAX_ROWS:
                self._shown.clear()
            self._shown[source, destination, event.request_id & ASKED_BITS] = True
        elif isinstance(event, PeerResponse):
            if not self._shown.pop((destination, source, event.request_id & ASKED_BITS), False):
                return
            now_us, body = self._dispatcher.now_us, event.body
        else:
            return
        number = event.request_id & ASKED_BITS
        api = type(body).__name__.removesuffix("Request").removesuffix("Response")
        parts = self._parts(body) if isinstance(body, m.FetchResponse) else []
        is_answer = isinstance(event, PeerResponse)
        self._messages.append(
            MessageRow(source, destination, number, is_answer, api, now_us, arrives_us, parts)
        )

    def _is_full(self, now_us: int) -> bool:
        """Whether no more requests are shown before the next reading, which may never come."""
        if self._left > 0:
            return False
        if now_us > self._read_us + UNWATCHED_US:
            self._dispatcher.message_sink = None
        return True

    def _parts(self, body: m.FetchResponse) -> list[tuple[str, int, int, int, int]]:
        """The partitions that an answer names, as in MessageRow."""
        parts = []
        for topic in body.responses[:MAX_PARTITIONS]:
            name = self._exchanges.topics.get(topic.topic_id, "")
            for one in topic.partitions[:MAX_PARTITIONS]:
                batches = one.records
                is_read = isinstance(batches, list) and batches
                first = batches[0].base_offset if is_read else -1
                last = batches[-1].last_offset if is_read else -1
                parts.append((name, one.partition_index, first, last, one.high_watermark))
        return parts[:MAX_PARTITIONS]
