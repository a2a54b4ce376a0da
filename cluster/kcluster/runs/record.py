"""The record of a finished run: the types of the rows in its files.

Owns: the row types and their columns.  Never: reads or writes files (directory.py).
Kafka: no counterpart.

Spark and DuckDB read each file as a table.  Rows are flat, except that a row of events has a column
`event` with the fields of its kind.  Times are in ms of the cluster's clock; the run itself begins
at `RunInfo.began_ms`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from kcluster.events import AnyEvent
from kcluster.evidence.rows import (
    BeliefRow,
    CredentialRow,
    ExchangeRow,
    GroupRow,
    LoginRow,
    SendAnomaly,
    TransactionStateRow,
)
from kcluster.json_types import JsonObject

FORMAT: Final = 4
"""The format of the directory.  Since 3, events are typed records; since 4, sends have their
fates."""
READABLE: Final = (3, FORMAT)
"""The formats that this version reads; the audit needs the newest."""


class RunInfo(Struct):
    """`run.json`: the run as a whole."""

    name: str
    clock: str
    """The clock of the run: virtual, live, kafka (a real Kafka) or proxy."""
    seed: int
    began_ms: int
    ended_ms: int
    outcome: str = "unknown"
    """The verdict's outcome: valid, invalid or unknown."""
    passed: bool = True
    failures: list[str] = []
    replay: str = ""
    source: str = ""
    story: str = ""
    trace_hash: str = ""
    version: str = ""
    environment: dict[str, str] = {}
    """The environment on which a run of real client code depends besides its seed: versions, the
    hash seed."""
    topology: JsonObject = {}
    ground: str = ""
    """What the brokers were, such as `Apache Kafka 4.4.0`; empty for simulated ones."""
    read_from_start: bool = False
    """Whether all consumers began at the beginning of their partitions, or where others had been,
    and no record was deleted on purpose."""
    format: int = FORMAT


class NoteRow(Struct, gc=False):
    """`events.jsonl`: an event with its time and its cause.  `id`, `cause`: (node, sequence
    number); `event`: a type of `kcluster.events`, by its `kind`."""

    id: tuple[int, int]
    at_ms: int
    event: AnyEvent
    cause: tuple[int, int] | None = None


class SendFate(StrEnum):
    """The fate of a record that was sent, in the words of `sends.jsonl`."""

    KEPT = "kept"
    ABORTED = "aborted"
    HIDDEN = "hidden"
    LOST = "lost"
    DELETED = "deleted"
    TRUNCATED = "truncated"
    ABSENT = "absent"
    NOT_JUDGED = ""


class SendRow(Struct, gc=False):
    """`sends.jsonl`: one record that an application sent, its outcome, and its fate.

    `fate`: kept (read_committed consumers get it), aborted (with its transaction), hidden (in a
    transaction that is open, or whose end its producer does not know), lost (acked, or read, and
    not in the log), deleted (on purpose: with its topic, by retention or compaction), truncated or
    absent (appended by a broker, or by none; its producer was promised nothing); empty in runs
    of format 3.  `at`: its lowest offset in the final log, -1 if the log does not have it; `epoch`:
    the leader epoch of that append, else of the first append, -1 for none; `anomalies`: the
    verdict's findings about the record."""

    producer: str
    topic: str
    partition: int
    value: str
    acks: int
    idempotent: bool
    outcome: str
    offset: int
    sent_ms: int
    ended_ms: int
    attempts: int
    error: str
    number: int = 0
    """The position among its producer's sends to this partition, from 1; 0: unknown."""
    transaction: int = 0
    """The number of its producer's transaction, in transactions.jsonl; 0: none."""
    fate: SendFate = SendFate.NOT_JUDGED
    at: int = -1
    epoch: int = -1
    anomalies: tuple[SendAnomaly, ...] = ()
    life: int = 1
    """The number of its producer's process: 2 after the first restart."""


class TransactionRow(Struct, gc=False):
    """`transactions.jsonl`: a transaction of a simulated producer.  `outcome`: the producer's
    knowledge of it; `number`: its place among the producer's transactions, from 1; `version`: the
    protocol's version; `error`: the error that kept it from being committed."""

    producer: str
    number: int
    transactional_id: str
    version: int
    outcome: str
    began_ms: int
    ended_ms: int
    error: str


class ReadRow(Struct, gc=False):
    """`reads.jsonl`: one record that a consumer's application received."""

    consumer: str
    topic: str
    partition: int
    offset: int
    value: str | None
    restarted: bool
    at_ms: int
    read_committed: bool = False
    """Whether the consumer has this isolation level."""


class PositionRow(Struct, gc=False):
    """`positions.jsonl`: the next offset of a simulated consumer in a partition when it was closed:
    it has received or skipped all below."""

    consumer: str
    topic: str
    partition: int
    offset: int
    at_ms: int


class ErrorRow(Struct, gc=False):
    """`errors.jsonl`: an error that a client received, or raised itself."""

    client: str
    api: str
    error: str
    topic: str | None
    partition: int | None
    at_ms: int


class AppendRow(Struct, gc=False):
    """`appends.jsonl`: one batch appended by a leader."""

    topic: str
    partition: int
    at_ms: int
    broker: int
    epoch: int
    base_offset: int
    last_offset: int
    client: str
    isr: tuple[int, ...]


class MoveRow(Struct, gc=False):
    """`replicas.jsonl`: a replica's log end and high watermark, after one of them changed.
    `last_stable_offset`: known for the leader, else -1."""

    topic: str
    partition: int
    at_ms: int
    broker: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int = -1


class EpochsRow(Struct, gc=False):
    """`epochs.jsonl`: the leader epochs in a replica's log, after they changed.  `epochs`: (leader
    epoch, its first offset), oldest first; `start_offset`: the start of the log."""

    topic: str
    partition: int
    broker: int
    at_ms: int
    start_offset: int
    epochs: tuple[tuple[int, int], ...]


class LeaderRow(Struct, gc=False):
    """`partitions.jsonl`: the registration of a partition in the controller, from `at_ms` on."""

    topic: str
    partition: int
    at_ms: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    replicas: tuple[int, ...]


class LogRow(Struct, gc=False):
    """`logs.jsonl`: the final log of a partition's leader.  Records below `start_offset` were
    deleted on purpose; records below `clean_offset` were compacted."""

    topic: str
    partition: int
    start_offset: int
    clean_offset: int
    end_offset: int


class RequestRow(Struct, gc=False):
    """`requests.jsonl`: `count` requests of one API and client that a broker answered `took_ms`
    after they arrived.  For a Fetch this includes the wait for records."""

    api: str
    client: str
    broker: int
    took_ms: int
    count: int


class CommitRow(Struct, gc=False):
    """`commits.jsonl`: an offset that a client committed, as the broker answered it.  `error`:
    Kafka's name of the refusal, empty if it was accepted."""

    group: str
    member: str
    generation: int
    client: str
    topic: str
    partition: int
    offset: int
    broker: int
    at_ms: int
    error: str


class ProcessedRow(Struct, gc=False):
    """`processed.jsonl`: a record that an application reported as processed."""

    topic: str
    partition: int
    offset: int
    worker: str
    at_ms: int


class ProblemRow(Struct, gc=False):
    """`processing.jsonl`: records that an application missed, processed again or out of order.
    `problem`: missed, repeated, out_of_order; `text`: the problem and its cause, in words."""

    problem: str
    topic: str
    partition: int
    first: int
    last: int
    count: int
    text: str


class RunRecord(Struct):
    """A whole run.  `verdict`: the value of `Verdict.to_json`."""

    info: RunInfo
    notes: list[NoteRow] = field(default_factory=list)
    sends: list[SendRow] = field(default_factory=list)
    transactions: list[TransactionRow] = field(default_factory=list)
    reads: list[ReadRow] = field(default_factory=list)
    positions: list[PositionRow] = field(default_factory=list)
    errors: list[ErrorRow] = field(default_factory=list)
    appends: list[AppendRow] = field(default_factory=list)
    moves: list[MoveRow] = field(default_factory=list)
    leaders: list[LeaderRow] = field(default_factory=list)
    logs: list[LogRow] = field(default_factory=list)
    requests: list[RequestRow] = field(default_factory=list)
    commits: list[CommitRow] = field(default_factory=list)
    processed: list[ProcessedRow] = field(default_factory=list)
    problems: list[ProblemRow] = field(default_factory=list)
    exchanges: list[ExchangeRow] = field(default_factory=list)
    beliefs: list[BeliefRow] = field(default_factory=list)
    epochs: list[EpochsRow] = field(default_factory=list)
    groups: list[GroupRow] = field(default_factory=list)
    transaction_states: list[TransactionStateRow] = field(default_factory=list)
    logins: list[LoginRow] = field(default_factory=list)
    credentials: list[CredentialRow] = field(default_factory=list)
    verdict: JsonObject = field(default_factory=dict)
    scenario: str = ""
    """The text of the scenario, if there is one."""


Rows = dict[str, list[Any]]
"""The rows of a run, by field of RunRecord."""


class Table(NamedTuple):
    """A table of a run: its file, the type of its rows, and its origin."""

    file: str
    row: type[Struct]
    is_streamed: bool = False
    """Whether the table's rows are known while a run goes on; they are then written and streamed,
    and pages draw them.  Each has its `at_ms`; recorder_rows.rows_between takes them from the
    recorder."""
    state_of: tuple[str, ...] = ()
    """The columns that identify a state, in a table of states."""
    is_new: bool = False
    """Whether the table is newer than kcluster 0.1: older runs of this format may lack its file."""


TABLES: Final[dict[str, Table]] = {
    "notes": Table("events.jsonl", NoteRow, is_streamed=True),
    "sends": Table("sends.jsonl", SendRow),
    "transactions": Table("transactions.jsonl", TransactionRow),
    "reads": Table("reads.jsonl", ReadRow),
    "positions": Table("positions.jsonl", PositionRow, is_new=True),
    "errors": Table("errors.jsonl", ErrorRow),
    "appends": Table("appends.jsonl", AppendRow, is_streamed=True),
    "moves": Table(
        "replicas.jsonl", MoveRow, is_streamed=True, state_of=("topic", "partition", "broker")
    ),
    "leaders": Table(
        "partitions.jsonl", LeaderRow, is_streamed=True, state_of=("topic", "partition")
    ),
    "logs": Table("logs.jsonl", LogRow),
    "requests": Table("requests.jsonl", RequestRow),
    "commits": Table(
        "commits.jsonl", CommitRow, is_streamed=True, state_of=("group", "topic", "partition")
    ),
    "processed": Table("processed.jsonl", ProcessedRow),
    "problems": Table("processing.jsonl", ProblemRow),
    "exchanges": Table("exchanges.jsonl", ExchangeRow, is_streamed=True, is_new=True),
    "beliefs": Table(
        "beliefs.jsonl",
        BeliefRow,
        is_streamed=True,
        state_of=("client", "topic", "partition"),
        is_new=True,
    ),
    "epochs": Table(
        "epochs.jsonl",
        EpochsRow,
        is_streamed=True,
        state_of=("topic", "partition", "broker"),
        is_new=True,
    ),
    "groups": Table("groups.jsonl", GroupRow, is_streamed=True, state_of=("group",), is_new=True),
    "transaction_states": Table(
        "transaction_states.jsonl",
        TransactionStateRow,
        is_streamed=True,
        state_of=("transactional_id",),
        is_new=True,
    ),
    "logins": Table(
        "logins.jsonl",
        LoginRow,
        is_streamed=True,
        state_of=("client_id", "broker", "listener", "principal"),
        is_new=True,
    ),
    "credentials": Table(
        "credentials.jsonl",
        CredentialRow,
        is_streamed=True,
        state_of=("kind", "owner", "name"),
        is_new=True,
    ),
}
"""All tables by field of RunRecord."""

STREAMED: Final = tuple(field for field, table in TABLES.items() if table.is_streamed)
