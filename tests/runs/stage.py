"""A run made by hand: one partition, an unclean election, 3 acked records lost.

Owns: `unclean_run`, `crowded_run`.  Never: asserts.
"""

from __future__ import annotations

from typing import Any

from kcluster.deaths import DeathKind
from kcluster.events.brokers import BrokerDown, BrokerFenced, BrokerStarted
from kcluster.events.partitions import LeaderElected, LogTruncated
from kcluster.events.reasons import ElectionKind, Fencing, Restarted
from kcluster.runs.record import (
    AppendRow,
    ErrorRow,
    LeaderRow,
    LogRow,
    MoveRow,
    NoteRow,
    ProblemRow,
    ReadRow,
    RequestRow,
    RunInfo,
    RunRecord,
    SendFate,
    SendRow,
)

BEGAN_MS = 1_000
DOWN, FENCED, ELECTED, TRUNCATED = (-1, 2), (3000, 1), (3000, 2), (1, 1)


def unclean_run(name: str = "unclean", topic: str = "orders") -> RunRecord:
    """Broker 1 dies at +2 s with 3 records that broker 2 lacks; 2 is elected unclean at +5 s."""
    record = RunRecord(RunInfo(name, "virtual", 7, BEGAN_MS, BEGAN_MS + 10_000, "invalid"))
    record.info.topology = {"brokers": [{"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}]}
    record.info.story = f"A story of {topic}."
    record.info.failures = ["3 lost-write that nobody expected"]
    missed = f"missed: {topic}-0, offset 4: nobody processed it"
    record.problems = [ProblemRow("missed", topic, 0, 4, 4, 1, missed)]
    record.notes = [
        NoteRow((-1, 0), 0, BrokerStarted(1)),
        NoteRow((-1, 1), 0, BrokerStarted(2)),
        NoteRow(DOWN, 3_000, BrokerDown(1, DeathKind.KILL)),
        NoteRow(FENCED, 6_000, BrokerFenced(1, Fencing.SESSION_EXPIRED, 3_000), DOWN),
        NoteRow(ELECTED, 6_000, elected(topic), FENCED),
        NoteRow((-1, 3), 8_000, BrokerStarted(1, restarted=True)),
        NoteRow(TRUNCATED, 8_000, truncated(topic), ELECTED),
    ]
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
        MoveRow(topic, 0, 1_500, 1, 5, 5),
        MoveRow(topic, 0, 1_600, 2, 5, 5),
        MoveRow(topic, 0, 2_500, 1, 8, 8),
        MoveRow(topic, 0, 7_000, 2, 6, 6),
        MoveRow(topic, 0, 8_000, 1, 5, 5),
        MoveRow(topic, 0, 8_010, 1, 6, 6),
    ]
    record.sends = [
        SendRow(
            *("writer", topic, 0, "a", -1, True, "acked", 0, 1_400, 1_500, 1, ""),
            number=1,
            fate=SendFate.KEPT,
            at=0,
            epoch=0,
        ),
        SendRow("writer", topic, 0, "b", -1, True, "unknown", -1, 3_100, 7_100, 3, "X"),
        SendRow("writer", topic, 0, "c", -1, True, "failed", -1, 3_200, 7_200, 3, "X"),
    ]
    record.reads = [ReadRow("reader", topic, 0, 0, "a", False, 1_700)]
    record.errors = [ErrorRow("writer", "Produce", "NOT_LEADER_OR_FOLLOWER", topic, 0, 6_100)]
    record.logs = [LogRow(topic, 0, 0, 0, 6)]
    record.requests = [RequestRow("Produce", "client-100000", 1, 3, 2)]
    record.verdict = verdict(topic)
    return record


def elected(topic: str) -> LeaderElected:
    return LeaderElected(
        topic=topic,
        partition=0,
        old_leader=1,
        new_leader=2,
        leader_epoch=1,
        clean=False,
        reason=Restarted(1, 7, False),
        election=ElectionKind.UNCLEAN,
    )


def truncated(topic: str, partition: int = 0) -> LogTruncated:
    return LogTruncated(
        topic=topic,
        partition=partition,
        broker=1,
        from_offset=8,
        to_offset=5,
        high_watermark=8,
        leader=2,
        leader_end_offset=5,
        diverging_epoch=0,
    )


def verdict(topic: str) -> dict[str, Any]:
    chain = [
        {"at_ms": 3_000, "text": "broker 1 was killed", "note_id": DOWN},
        {"at_ms": 6_000, "text": "broker 2 elected unclean", "note_id": ELECTED},
    ]
    return {
        "outcome": "invalid",
        "reason": "3 lost-write",
        "sent": 3,
        "acked": 1,
        "failed": 1,
        "unknown": 1,
        "read": 1,
        "began_ms": BEGAN_MS,
        "ended_ms": 11_000,
        "violations": [],
        "anomalies": [
            {
                "name": "lost-write",
                "partition": [topic, 0],
                "text": "offsets 5 to 7 are gone",
                "count": 3,
                "first": 5,
                "last": 7,
                "values": ["x", "y"],
                "client": "writer",
                "allowed": "unclean.leader.election.enable=true",
                "at_ms": 2_500,
                "chain": chain,
            }
        ],
        "windows": [
            {
                "kind": "writes",
                "partition": [topic, 0],
                "from_ms": 3_100,
                "to_ms": 7_000,
                "is_over": True,
                "clients": ["writer"],
                "errors": ["NOT_LEADER_OR_FOLLOWER"],
                "reasons": chain,
            }
        ],
    }


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
