"""The rows of a proxy's record: what a judge of the clients' view needs, without any record's
bytes.

Owns: these row types, and the names of their files.  Never: fills them (proxy/recording.py), writes
them (proxy/run_files.py).  Kafka: no counterpart.

`exchanges.jsonl` and `commits.jsonl` have the columns of every run, and the first some more.  Times
are in ms since 1970, latencies in µs.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.evidence.rows import ExchangeRow
from kcluster.runs.record import TABLES


class BatchHead(Struct, frozen=True, gc=False, array_like=True):
    """The header of a batch: [first offset, last offset, records, producer id, producer epoch,
    first sequence, attributes, bytes, CRC, base timestamp].  In a Produce request the offsets are
    those of the client."""

    first: int
    last: int
    count: int
    producer_id: int
    producer_epoch: int
    sequence: int
    attributes: int
    size_bytes: int
    crc: int = 0
    base_timestamp_ms: int = -1


class ProxiedRow(ExchangeRow, gc=False):
    """`exchanges.jsonl`: a request and its answer.

    `client_id`: as the client sent it; `connection`, `correlation_id`: with them the exchange is
    found in the other files; `version`: of the API; `request_bytes`, `answer_bytes`: without the
    length, -1 without an answer; `latency_us`: from the arrival of the request at the proxy to the
    arrival of the answer there; `rule`: the rule that applied, empty for none."""

    client_id: str = ""
    connection: int = 0
    correlation_id: int = 0
    version: int = 0
    request_bytes: int = 0
    answer_bytes: int = -1
    latency_us: int = -1
    rule: str = ""


class ProducedRow(Struct, gc=False):
    """`produced.jsonl`: a partition of a Produce request, and its answer.  `base_offset`: -1
    if the broker gave none; `answered_ms`: -1 if the client got no answer, even if the broker gave
    one, which a rule withheld."""

    at_ms: int
    asked_ms: int
    answered_ms: int
    client_id: str
    connection: int
    correlation_id: int
    broker: int
    topic: str
    partition: int
    acks: int
    transactional_id: str | None
    batches: list[BatchHead]
    base_offset: int = -1
    error: str = ""


class FetchedRow(Struct, gc=False):
    """`fetched.jsonl`: a partition of a Fetch answer with records or an error.  `fetch_offset`: the
    offset that the client requested; `aborted`: (producer id, first offset) of aborted
    transactions; `read_committed`: the client's isolation level."""

    at_ms: int
    asked_ms: int
    answered_ms: int
    client_id: str
    connection: int
    correlation_id: int
    broker: int
    topic: str
    partition: int
    read_committed: bool
    fetch_offset: int
    high_watermark: int
    last_stable_offset: int
    batches: list[BatchHead]
    aborted: list[tuple[int, int]]
    error: str = ""


class TransactionRequestRow(Struct, gc=False):
    """`transaction_requests.jsonl`: a request that begins, extends or ends a transaction.
    `committed`: for EndTxn; `partitions`: that were added; `group`: whose offsets were added."""

    at_ms: int
    asked_ms: int
    answered_ms: int
    client_id: str
    connection: int
    correlation_id: int
    broker: int
    api: str
    error: str = ""
    transactional_id: str | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    committed: bool | None = None
    partitions: list[tuple[str, int]] = []
    group: str = ""


PROXY_CLOCK: Final = "proxy"
"""The clock of a proxy's run, in run.json: the machine's."""
EXCHANGES: Final = TABLES["exchanges"].file
COMMITS: Final = TABLES["commits"].file
BELIEFS: Final = TABLES["beliefs"].file
LEADERS: Final = TABLES["leaders"].file
EVENTS: Final = TABLES["notes"].file
PRODUCED: Final = "produced.jsonl"
FETCHED: Final = "fetched.jsonl"
TRANSACTION_REQUESTS: Final = "transaction_requests.jsonl"
INCOMPLETE: Final = "incomplete"
"""An empty file, which exists if rows were dropped."""
