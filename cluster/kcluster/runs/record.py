"""What is known of a run when it is over, as plain values that files hold.

Owns: the row types and their columns.  Never: reads or writes files (directory.py).
Spark and DuckDB read each file as a table; all rows are flat but those of events, which have one
column `event` with the fields of all kinds.  Times in ms of the cluster's
clock; `began_ms` of RunInfo is where a run's own time starts.
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from kcluster.events import AnyEvent

FORMAT: Final = 3
"""Of the directory; one of another format is refused.  3: events as typed records."""


class RunInfo(Struct):
    """`run.json`: the run as a whole."""

    name: str
    clock: str
    """virtual or live."""
    seed: int
    began_ms: int
    ended_ms: int
    outcome: str = "unknown"
    """valid, invalid, unknown."""
    passed: bool = True
    failures: list[str] = []
    replay: str = ""
    source: str = ""
    story: str = ""
    trace_hash: str = ""
    version: str = ""
    topology: dict[str, Any] = {}
    format: int = FORMAT


class NoteRow(Struct, gc=False):
    """`events.jsonl`: something that happened, with its time and its cause.  `id`, `cause`: (node,
    running number); `event`: a type of `kcluster.events`, by its `kind`."""

    id: tuple[int, int]
    at_ms: int
    event: AnyEvent
    cause: tuple[int, int] | None = None


class SendRow(Struct, gc=False):
    """`sends.jsonl`: one record given to a producer, and its outcome."""

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
    """Which of its producer's sends to this partition, from 1; 0: not known."""


class ReadRow(Struct, gc=False):
    """`reads.jsonl`: one record given to a consumer."""

    consumer: str
    topic: str
    partition: int
    offset: int
    value: str | None
    restarted: bool
    at_ms: int


class ToldRow(Struct, gc=False):
    """`errors.jsonl`: an error that a client was told, or met."""

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
    """`replicas.jsonl`: a replica's log end and high watermark, after one of them moved."""

    topic: str
    partition: int
    at_ms: int
    broker: int
    log_end_offset: int
    high_watermark: int


class LeaderRow(Struct, gc=False):
    """`partitions.jsonl`: a partition as the controller knows it, from `at_ms` on."""

    topic: str
    partition: int
    at_ms: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    replicas: tuple[int, ...]


class LogRow(Struct, gc=False):
    """`logs.jsonl`: a partition's log at the end: the leader's.  Below `start_offset` records were
    deleted, below `clean_offset` compacted, on purpose."""

    topic: str
    partition: int
    start_offset: int
    clean_offset: int
    end_offset: int


class ContentRow(Struct, gc=False):
    """`contents.jsonl`: `count` sends of a producer, from `number` on, at `offset` and on.

    `state`: held in the log at the end; cut: appended in this epoch, and not in the log at the end,
    a row for each append; deleted: appended to a topic that has been deleted since.  `copy`: 0
    where a send is so for the first time (held: at its lowest offset), 1 for the second.  `at_ms`:
    of the append, -1 of what is held."""

    topic: str
    partition: int
    state: str
    epoch: int
    at_ms: int
    offset: int
    producer: str
    number: int
    count: int
    copy: int


class RequestRow(Struct, gc=False):
    """`requests.jsonl`: `count` requests of an API and a client that a broker answered `took_ms`
    after they arrived.  Of a Fetch that is also the time in which there was nothing to read."""

    api: str
    client: str
    broker: int
    took_ms: int
    count: int


class RunRecord(Struct):
    """A whole run.  `verdict`: as `Verdict.to_json` gives it."""

    info: RunInfo
    notes: list[NoteRow] = field(default_factory=list)
    sends: list[SendRow] = field(default_factory=list)
    reads: list[ReadRow] = field(default_factory=list)
    told: list[ToldRow] = field(default_factory=list)
    appends: list[AppendRow] = field(default_factory=list)
    moves: list[MoveRow] = field(default_factory=list)
    leaders: list[LeaderRow] = field(default_factory=list)
    logs: list[LogRow] = field(default_factory=list)
    contents: list[ContentRow] = field(default_factory=list)
    requests: list[RequestRow] = field(default_factory=list)
    verdict: dict[str, Any] = field(default_factory=dict)
    scenario: str = ""
    """The scenario's own text, where there is one."""


TABLES: Final[dict[str, tuple[str, type[Struct]]]] = {
    "notes": ("events.jsonl", NoteRow),
    "sends": ("sends.jsonl", SendRow),
    "reads": ("reads.jsonl", ReadRow),
    "told": ("errors.jsonl", ToldRow),
    "appends": ("appends.jsonl", AppendRow),
    "moves": ("replicas.jsonl", MoveRow),
    "leaders": ("partitions.jsonl", LeaderRow),
    "logs": ("logs.jsonl", LogRow),
    "contents": ("contents.jsonl", ContentRow),
    "requests": ("requests.jsonl", RequestRow),
}
"""Field of RunRecord -> its file and the type of its rows."""

HELD: Final = "held"
CUT: Final = "cut"
DELETED: Final = "deleted"
