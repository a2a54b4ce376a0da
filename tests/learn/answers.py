"""Answers to the exercises of the course: for each a right one and wrong ones.

Owns: the answers, as replacements in the file that students begin with.  Never: ships in the wheel.
"""

from __future__ import annotations

from typing import NamedTuple

Edit = tuple[str, str]


class Answer(NamedTuple):
    """`edits`: (text, replacement).  `missed`: the goals that it misses, by their checks."""

    exercise: str
    what: str
    edits: tuple[Edit, ...]
    missed: tuple[str, ...] = ()


HASTY_STEPS = """\
  - {after: 5s, stop: 2, for: 10s}
  - {after: 5s, stop: 3, for: 10s}
"""
PATIENT_STEPS = """\
  - {after: 11s, when: settled, stop: 2, for: 10s}
  - {after: 11s, when: settled, stop: 3, for: 10s}
"""
KILL_STEPS = """\
  - {at: 10s..15s, kill: leader(orders-0), as: old}
  - {after: 20s, start: old}
"""
CUT_STEPS = """\
  - {at: 10s, isolate: {nodes: 1, others: "controller, 2, 3"}, for: 20s}
"""
CUT_STEPS_SHORT = """\
  - {at: 10s, isolate: {nodes: 1, others: "2, 3"}, for: 2s}
"""
LUCKY_STEPS = """\
  - {at: 5s, slow: {nodes: followers(orders-0), latency: 400ms}, for: 3s}
  - {at: 5s..25s, kill: leader(orders-0), as: old, for: 12s}
"""
SURE_STEPS = """\
  - {at: 5s, slow: {nodes: followers(orders-0), latency: 400ms}, for: 3s}
  - {at: 7s, kill: leader(orders-0), as: old, for: 12s}
"""
SECOND_STOP = "  - {after: 500ms, when: isr(orders-0) = 2, stop: 2, for: 10s}\n"
LATE_STEPS = SURE_STEPS.replace("at: 7s", "at: 12s")
RIGHT = (
    Answer("leader", "broker 4 instead of the slow one", (("[[1, 2, 3]]", "[[1, 2, 4]]"),)),
    Answer("failover", "a shorter session", (("9000", "3000"), ("ms: 2000", "ms: 500"))),
    Answer("client", "idempotent", (("    idempotent: false\n    retries: 0\n", ""),)),
    Answer("acks_one", "acks=all", (("acks: 1", "acks: all"),)),
    Answer("isr", "two", (("min.insync.replicas: 1", "min.insync.replicas: 2"),)),
    Answer("truncation", "a leader that is cut off", ((KILL_STEPS, CUT_STEPS),)),
    Answer(
        "unclean", "broker 1 first", (("start: 3", "start: 1"), ("15s, start: 1", "15s, start: 3"))
    ),
    Answer("rolling_restart", "wait for the ISR", ((HASTY_STEPS, PATIENT_STEPS),)),
    Answer("transactions", "verification", (("enable: false", "enable: true"),)),
    Answer("groups", "a shorter session", (("45000", "12000"),)),
    Answer("search", "the leader dies while the followers are slow", ((LUCKY_STEPS, SURE_STEPS),)),
    Answer("epochs", "broker 2 waits for broker 1", (("isr(orders-0) = 2", "isr(orders-0) = 3"),)),
)
WRONG = (
    Answer("leader", "as it was", (), ("writes_resume",)),
    Answer(
        "leader", "two replicas are too few", (("[[1, 2, 3]]", "[[1, 2]]"),), ("writes_resume",)
    ),
    Answer("failover", "as it was", (), ("writes_resume",)),
    Answer(
        "failover",
        "a session shorter than the heartbeat interval",
        (("9000", "1900"),),
        ("no_errors",),
    ),
    Answer("client", "as it was", (), ("unknown",)),
    Answer(
        "client", "retries without idempotence", (("retries: 0", "retries: 100"),), ("verdict",)
    ),
    Answer("acks_one", "as it was", (), ("verdict",)),
    Answer("acks_one", "no acks at all", (("acks: 1", "acks: 0"),), ("verdict",)),
    Answer("isr", "as it was", (), ("verdict",)),
    Answer(
        "isr", "three", (("min.insync.replicas: 1", "min.insync.replicas: 3"),), ("writes_resume",)
    ),
    Answer("truncation", "as it was", (), ("events",)),
    Answer("truncation", "nobody is elected", ((KILL_STEPS, CUT_STEPS_SHORT),), ("events",)),
    Answer("unclean", "as it was", (), ("verdict",)),
    Answer("rolling_restart", "as it was", (), ("no_errors", "writes_resume")),
    Answer("transactions", "as it was", (), ("verdict",)),
    Answer("transactions", "a longer timeout", (("timeout: 60s", "timeout: 10m"),), ("verdict",)),
    Answer("groups", "as it was", (), ("events",)),
    Answer("groups", "too short for the brokers", (("45000", "5000"),), ("events", "no_errors")),
    Answer("search", "as it was", (), ("anomalies",)),
    Answer("search", "the leader dies later", ((LUCKY_STEPS, LATE_STEPS),), ("anomalies",)),
    Answer("epochs", "as it was", (), ("anomalies",)),
    Answer("epochs", "too short a wait", (("after: 500ms", "after: 1s"),), ("anomalies",)),
    Answer("epochs", "no second restart", ((SECOND_STOP, ""),), ("at_end",)),
)
