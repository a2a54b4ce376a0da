"""A run made by hand: one partition, an unclean election, 3 acked records lost.

Owns: `unclean_run`, `crowded_run`.  Never: asserts.
"""

from __future__ import annotations

from typing import Any

from kcluster.runs.record import (
    AppendRow,
    ContentRow,
    LeaderRow,
    LogRow,
    MoveRow,
    NoteRow,
    ReadRow,
    RequestRow,
    RunInfo,
    RunRecord,
    SendRow,
    ToldRow,
)

BEGAN_MS = 1_000
DOWN, FENCED, ELECTED, TRUNCATED = (-1, 2), (3000, 1), (3000, 2), (1, 1)


def unclean_run(name: str = "unclean", topic: str = "orders") -> RunRecord:
    """Broker 1 dies at +2 s with 3 records that broker 2 lacks; 2 is elected unclean at +5 s."""
    about: dict[str, Any] = {"topic": topic, "partition": 0}
    subject = f"{topic}-0"
    record = RunRecord(RunInfo(name, "virtual", 7, BEGAN_MS, BEGAN_MS + 10_000, "invalid"))
    record.info.topology = {"brokers": [{"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}]}
    record.info.story = f"A story of {topic}."
    record.info.failures = ["3 lost-write that nobody expected"]
    record.notes = [
        note((-1, 0), 0, "broker_started", "broker 1", "process started", broker=1),
        note((-1, 1), 0, "broker_started", "broker 2", "process started", broker=2),
        note(DOWN, 3_000, "broker_down", "broker 1", "process killed", broker=1, how="kill"),
        note(FENCED, 6_000, "broker_fenced", "broker 1", "no heartbeat", broker=1, cause=DOWN),
        note(
            ELECTED, 6_000, "leader_elected", subject, "leader 1 -> 2, epoch 1, UNCLEAN",
            cause=FENCED, **about,
        ),
        note((-1, 3), 8_000, "broker_started", "broker 1", "process started again", broker=1),
        note(
            TRUNCATED, 8_000, "log_truncated", subject, "broker 1 drops offsets 5 to 7",
            cause=ELECTED, **about,
        ),
    ]  # fmt: skip
    record.leaders = [
        LeaderRow(topic, 0, 0, 1, 0, (1,), (2,), (1, 2)),
        LeaderRow(topic, 0, 6_000, 2, 1, (2,), (), (1, 2)),
        LeaderRow(topic, 0, 8_000, 2, 1, (1, 2), (), (1, 2)),
    ]
    record.appends = [
        AppendRow(topic, 0, 1_500, 1, 0, 0, 4, "client-100000", (1,)),
        AppendRow(topic, 0, 2_500, 1, 0, 5, 7, "client-100000", (1,)),
        AppendRow(topic, 0, 7_000, 2, 1, 5, 5, "client-100000", (2,)),
    ]
    record.moves = [
        MoveRow(topic, 0, 1_500, 1, 5, 5), MoveRow(topic, 0, 1_600, 2, 5, 5),
        MoveRow(topic, 0, 2_500, 1, 8, 8), MoveRow(topic, 0, 7_000, 2, 6, 6),
        MoveRow(topic, 0, 8_000, 1, 5, 5), MoveRow(topic, 0, 8_010, 1, 6, 6),
    ]  # fmt: skip
    record.sends = [
        SendRow("writer", topic, 0, "a", -1, True, "acked", 0, 1_400, 1_500, 1, ""),
        SendRow("writer", topic, 0, "b", -1, True, "unknown", -1, 3_100, 7_100, 3, "X"),
        SendRow("writer", topic, 0, "c", -1, True, "failed", -1, 3_200, 7_200, 3, "X"),
    ]
    record.reads = [ReadRow("reader", topic, 0, 0, "a", False, 1_700)]
    record.told = [ToldRow("writer", "Produce", "NOT_LEADER_OR_FOLLOWER", topic, 0, 6_100)]
    record.logs = [LogRow(topic, 0, 0, 0, 6)]
    record.contents = [ContentRow(topic, 0, "held", 0, -1, 0, "writer", 1, 1, 0)]
    record.requests = [RequestRow("Produce", "client-100000", 1, 3, 2)]
    record.verdict = verdict(topic)
    return record


def note(
    note_id: tuple[int, int], at_ms: int, kind: str, subject: str, text: str,
    *, cause: tuple[int, int] | None = None, **data: Any,
) -> NoteRow:  # fmt: skip
    return NoteRow(note_id, at_ms, kind, subject, text, cause, data)


def verdict(topic: str) -> dict[str, Any]:
    chain = [
        {"at_ms": 3_000, "text": "broker 1 was killed", "note_id": DOWN},
        {"at_ms": 6_000, "text": "broker 2 elected unclean", "note_id": ELECTED},
    ]
    return {
        "outcome": "invalid", "reason": "3 lost-write", "sent": 3, "acked": 1, "failed": 1,
        "unknown": 1, "read": 1, "began_ms": BEGAN_MS, "ended_ms": 11_000, "violations": [],
        "anomalies": [
            {
                "name": "lost-write", "partition": [topic, 0], "text": "offsets 5 to 7 are gone",
                "count": 3, "first": 5, "last": 7, "values": ["x", "y"], "client": "writer",
                "allowed": "unclean.leader.election.enable=true", "at_ms": 2_500, "chain": chain,
            }
        ],
        "windows": [
            {
                "kind": "writes", "partition": [topic, 0], "from_ms": 3_100, "to_ms": 7_000,
                "is_over": True, "clients": ["writer"], "errors": ["NOT_LEADER_OR_FOLLOWER"],
                "reasons": chain,
            }
        ],
    }  # fmt: skip


def crowded_run(partitions: int) -> RunRecord:
    """Many partitions of which only every hundredth ever changes, and a dense log."""
    record = unclean_run("crowded")
    record.leaders = []
    for number in range(partitions):
        record.leaders.append(LeaderRow("many", number, 0, 1, 0, (1, 2), (), (1, 2)))
        if number % 100 == 0:
            record.leaders.append(LeaderRow("many", number, 6_000, 2, 1, (2,), (), (1, 2)))
    record.moves = [
        MoveRow("many", 0, BEGAN_MS + at // 10, 1, at, at if at != 50_000 else 0)
        for at in range(100_000)
    ]
    return record
