"""The histories of the tests of Jepsen's Kafka checker, with the anomalies that they expect.

Owns: the histories, in a notation of ours, and its translation to EDN.  Never: judges.
Kafka: no counterpart; kafka_test.clj of jepsen-io/jepsen, at 0d15725.

A line is a completed operation: the process, its end, its kind, then its keys or its records.
`x3=a` is value a at offset 3 of key x; `x=a` has no offset; `|` begins another poll.  A cycle that
Jepsen finds only with the option ww-deps is listed, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_RECORD = re.compile(r"(?P<key>[a-z])(?P<offset>\d*)=(?P<value>\w+)")


class JepsenCase(NamedTuple):
    """A history, and the anomalies: those that Jepsen's test expects, and those that we name."""

    name: str
    jepsen: Sequence[str]
    ours: Sequence[str]
    lines: Sequence[str]


_SKIP = ["0 ok poll x1=a x2=b", "1 ok poll x3=c"]
_FOURTH = "0 ok poll x4=d"
_SEVENTH = ["2 ok send x6=f", "0 ok poll x7=g", "3 info send x=a x=b x=c x=d x=g"]
_ABCD = "0 ok send x=a x=b x=c x=d"
_AGAIN = "0 ok poll x2=b x3=c x4=d"
_TO_C = "0 ok poll x1=a x2=b x3=c"
_LATE = "0 ok send x3=c x4=d"
_EARLY = "0 ok send x1=a x2=b"
_SIX = "0 ok send x0=0 x1=1 x2=2 x3=3 x4=4 x5=5"
_ONE_AND_TWO = ["1 ok txn poll x0=0", "1 fail txn poll x1=1 x2=2"]

CASES: Sequence[JepsenCase] = (
    JepsenCase(
        "two acks at one offset",
        ["inconsistent-offsets"],
        ["lost-write"],
        ["379 ok send k537=641", "363 ok send k537=645"],
    ),
    JepsenCase(
        "a read and an ack that differ",
        ["inconsistent-offsets"],
        ["inconsistent-offsets"],
        ["0 ok poll x0=a x1=b", "1 info send x1=c x3=b x4=d"],
    ),
    JepsenCase(
        "an offset of a send whose end is unknown",
        [],
        [],
        ["0 info send x0=1 y=1", "1 ok send x0=2"],
    ),
    JepsenCase(
        "an offset of a send that turns out committed",
        ["inconsistent-offsets"],
        ["torn-transaction"],
        ["0 info send x0=1 y=1", "1 ok send x0=2", "2 ok poll y5=1"],
    ),
    JepsenCase("a read of a failed send", ["G1a"], ["aborted-read"],
        ["0 fail send x=2 y=3", "1 ok poll x0=2"]),
    JepsenCase("acked records below a read", ["lost-write"], ["lost-write"],
        ["0 ok send x0=a", "0 ok send x1=b x3=d", "1 info send x=c", "0 ok poll x2=c"]),
    JepsenCase("an acked record that another one replaced", ["lost-write"], ["lost-write"],
        ["0 ok send x0=a", "0 ok send x0=b x2=c", "0 ok poll x0=b x2=c"]),
    JepsenCase("a part of a transaction whose end is unknown", [], [],
        ["0 info send x=a y0=b", "1 info send y=c", "3 ok poll y1=c"]),
    JepsenCase("a part of a transaction of which the rest was read",
        ["lost-write"], ["torn-transaction"],
        ["0 info send x=a y0=b", "1 info send y=c", "2 ok poll x0=a", "3 ok poll y1=c"]),
    JepsenCase("records between the polls of a process", ["poll-skip"],
        ["lost-write", "poll-skip"], [*_SKIP, _FOURTH, *_SEVENTH]),
    JepsenCase("the same, other keys subscribed or assigned in between", [], ["lost-write"],
        [*_SKIP, "0 ok subscribe y", _FOURTH, "0 info assign y", *_SEVENTH]),
    JepsenCase("the same, the key assigned again", ["poll-skip"],
        ["lost-write", "poll-skip"],
        [*_SKIP, "0 ok assign x y", _FOURTH, "0 ok assign x y", *_SEVENTH]),
    JepsenCase("the same, the key subscribed again", ["poll-skip"],
        ["lost-write"],
        [*_SKIP, "0 ok subscribe x y", _FOURTH, "0 ok subscribe x y", *_SEVENTH]),
    JepsenCase("polls again after aborted transactions", [], [],
        ["0 ok send x0=0 x1=1 x2=2", *_ONE_AND_TWO, "1 info txn poll x1=1 x2=2",
         "1 ok txn poll x1=1 x2=2"]),
    JepsenCase("polls that go on after aborted transactions", ["poll-skip"],
        ["poll-skip"],
        [_SIX, *_ONE_AND_TWO, "1 fail txn poll x3=3 x4=4", "1 ok txn poll x5=5"]),
    JepsenCase("a poll whose end is unknown that goes on", ["poll-skip"], ["poll-skip"],
        [_SIX, *_ONE_AND_TWO, "1 info txn poll x3=3 x4=4"]),
    JepsenCase("a process that polls records again", ["nonmonotonic-poll"],
        ["nonmonotonic-poll"], [_ABCD, _TO_C, _AGAIN]),
    JepsenCase("the same, another key subscribed in between", [], [],
        [_ABCD, _TO_C, "0 ok subscribe y", _AGAIN]),
    JepsenCase("the same, another key assigned in between", [], [],
        [_ABCD, _TO_C, "0 ok assign y", _AGAIN]),
    JepsenCase("the same, the key subscribed again in between", ["nonmonotonic-poll"], [],
        [_ABCD, _TO_C, "0 ok subscribe x y", _AGAIN]),
    JepsenCase("the same, the key assigned again in between", ["nonmonotonic-poll"],
        ["nonmonotonic-poll"], [_ABCD, _TO_C, "0 ok assign x y", _AGAIN]),
    JepsenCase("acks that go back", ["nonmonotonic-send"], ["nonmonotonic-send"],
        [_LATE, _EARLY]),
    JepsenCase("acks that go back, another key assigned in between", [], ["nonmonotonic-send"],
        [_LATE, "0 ok subscribe y", _EARLY]),
    JepsenCase("acks that go back, the key assigned again", ["nonmonotonic-send"],
        ["nonmonotonic-send"], [_LATE, "0 ok assign x y", _EARLY]),
    JepsenCase("a record between those of one operation", ["int-poll-skip"],
        ["nonmonotonic-poll", "poll-skip"],
        ["1 info send x=a x=b x=d", "0 ok poll x1=a x4=d", "0 ok poll x1=a | x4=d",
         "2 ok poll x2=b"]),
    JepsenCase("a record of another one between those of a transaction", ["int-send-skip"],
        ["lost-write", "torn-transaction"],
        ["0 ok send x1=a x=c", "1 info send x=b", "2 ok poll x2=b x3=c"]),
    JepsenCase("polls of one operation that go back",
        ["int-nonmonotonic-poll"], ["nonmonotonic-poll"],
        ["2 info send x=a x=b x=c", "0 ok poll x3=c x1=a", "0 ok poll x2=b x3=c | x3=c"]),
    JepsenCase("sends of one operation that go back",
        ["int-nonmonotonic-send"],
        ["G0", "nonmonotonic-send"],
        ["0 ok send x3=c x1=a", "0 info send y=d y=b", "1 info send y=c",
         "2 ok poll y2=b y3=c y4=d"]),
    JepsenCase("an acked record that is read elsewhere", ["duplicate"],
        ["inconsistent-offsets"],
        ["0 ok send x1=a", "1 info send x=b", "2 ok poll x2=b x3=a"]),
    JepsenCase("ten records at two offsets", ["duplicate", "inconsistent-offsets"],
        ["inconsistent-offsets", "lost-write", "nonmonotonic-poll"],
        [line for n in range(10) for line in (f"0 ok send x0={n}", f"1 ok poll x1={n}")]),
    JepsenCase("a record that an aborted transaction reads elsewhere", ["duplicate"],
        ["aborted-read", "inconsistent-offsets"],
        ["0 ok send x1=0", "0 fail send x2=1", "1 fail poll x11=0 x12=1"]),
    JepsenCase("an acked record that is never read", ["unseen"], [],
        ["0 ok poll", "0 ok send x0=a x1=b", "0 ok poll x0=a"]),
    JepsenCase("a history without records", ["valid? is not true"], [], ["0 ok assign x"]),
    JepsenCase("writes in a circle", ["G0"], ["G0"],
        ["0 ok send x0=a y1=a", "1 ok send x1=b y0=b", "2 ok poll x0=a x1=b y0=b y1=a"]),
    JepsenCase("transactions that read each other", ["G1c"], ["G1c"],
        ["0 ok txn send x0=a poll y0=b", "1 ok txn send y0=b poll x0=a"]),
    JepsenCase("a read and a write in a circle", ["G1c"], [],
        ["0 ok txn send x0=a y2=c", "1 ok txn poll x0=a send y1=b"]),
    JepsenCase("a transaction that reads its own record", ["precommitted-read"],
        ["precommitted-read"], ["0 ok txn send x0=a poll x0=a"]),
)  # fmt: skip


def edn_lines(lines: Sequence[str]) -> Iterator[str]:
    """A history in EDN, with an invocation before each completion."""
    for number, line in enumerate(lines):
        process, end, kind, *words = line.split()
        time_ns = 10_000_000 * (number + 1)
        yield (f"{{:type :invoke, :f :{kind}, :value nil, :process {process}, :time {time_ns}}}")
        value = f"[{' '.join(f':{word}' for word in words)}]"
        if kind in ("send", "poll", "txn"):
            value = f"[{' '.join(_steps(kind, words))}]"
        yield (
            f"{{:type :{end}, :f :{kind}, :value {value}, :process {process},"
            f" :time {time_ns + 5_000_000}}}"
        )


def _steps(kind: str, words: Sequence[str]) -> Iterator[str]:
    """The micro-operations of an operation."""
    polled: dict[str, list[str]] = {}
    is_poll = kind == "poll"
    for word in (*words, "|"):
        record = _RECORD.fullmatch(word)
        if record is None:
            if polled:
                keys = (f":{key} [{' '.join(pairs)}]" for key, pairs in polled.items())
                yield f"[:poll {{{' '.join(keys)}}}]"
                polled = {}
            is_poll = is_poll if word == "|" else word == "poll"
        elif is_poll:
            pair = f"[{record['offset']} :{record['value']}]"
            polled.setdefault(record["key"], []).append(pair)
        else:
            value = f":{record['value']}"
            offset = record["offset"]
            yield f"[:send :{record['key']} {f'[{offset} {value}]' if offset else value}]"
