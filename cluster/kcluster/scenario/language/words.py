"""The words of scenario files for brokers and moments: `leader(orders-0)`, `isr(orders-0) < 2`.

Owns: Target, Condition, Moment, Count; text to these.  Never: looks at a cluster (targets.py,
conditions.py do).  ValueError, with what would be right, for text that is none of them.
Kafka: no counterpart.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from kcluster.config.files.problems import show, unknown
from kcluster.events import KINDS
from kcluster.scenario.language.fields import MAX_MS, Words, duration

PartitionName = tuple[str, int]

_PARTITION: Final = re.compile(r"([A-Za-z0-9._-]{1,249})-([0-9]{1,9})")
_CALL: Final = re.compile(r"([a-z_ ]+?) ?\( ?(.*?) ?\)")
_NUMBER: Final = r"([0-9][0-9,_]*)"
_SYMBOLS: Final = ("<=", ">=", "==", "!=", "<", ">", "=")
_COMPARED: Final = re.compile(rf"(.+?) ?(<=|>=|==|!=|<|>|=) ?{_NUMBER}")
_ACKED: Final = re.compile(rf"{_NUMBER} (acked|sent|read|failed)(?: (?:by|of) (\S+))?")
_LEADS: Final = re.compile(r"broker (\d+) leads (\S+)")
_OF: Final = re.compile(r"(isr|leader|log end|high watermark) of (\S+)(.*)", re.IGNORECASE)
_EVENT: Final = re.compile(r"event ([a-z_]+)(?: of (.+))?")
_ANY: Final = re.compile(r"any(?: ([0-9]+))? (.+)")

EVENTS: Final = KINDS
COUNTED: Final = ("acked", "sent", "read", "failed", "unknown")
OF_PARTITION: Final = ("isr", "leader", "log_end", "high_watermark", "elr")
TARGETS_SHOWN: Final = (
    "leader(orders-0), followers(orders-0), isr(orders-0), coordinator(group), controller, rack a,"
    " any broker, all, all but ..., a broker's id, or a name given by `as`"
)


class Target(Struct, frozen=True):
    """Some nodes by meaning.  `word`: broker, leader, followers, replicas, isr, coordinator,
    controller, rack, any, all, all but, down, client, clients, name."""

    word: str
    argument: str = ""
    partition: PartitionName | None = None
    count: int = 1
    inner: tuple[Target, ...] = ()
    shown: str = ""

    def __str__(self) -> str:
        return self.shown


Targets = tuple[Target, ...]


class Condition(Struct, frozen=True):
    """Something that is to hold.  `word`: of COUNTED or OF_PARTITION, event, settled."""

    word: str
    symbol: str = ">="
    number: int = 1
    partition: PartitionName | None = None
    of: str = ""
    shown: str = ""

    def __str__(self) -> str:
        return self.shown


class Moment(Struct, frozen=True):
    """A time, or one between two, drawn by the seed."""

    low_ms: int
    high_ms: int


class Count(Struct, frozen=True):
    """What a number must be: `3`, `>= 1`, `some`, `none`."""

    symbol: str
    number: int

    def holds(self, value: float) -> bool:
        """Whether `value` is such a number."""
        return compare(value, self.symbol, self.number)

    def __str__(self) -> str:
        return str(self.number) if self.symbol == "==" else f"{self.symbol} {self.number}"


def compare(value: float, symbol: str, number: float) -> bool:
    """`value symbol number`."""
    match symbol:
        case "<":
            return value < number
        case "<=":
            return value <= number
        case ">":
            return value > number
        case ">=":
            return value >= number
        case "!=":
            return value != number
        case _:
            return value == number


# ------------------------------------------------------------------------------------ targets


def partition_name(text: str) -> PartitionName:
    """`orders-0` -> ("orders", 0)."""
    match = _PARTITION.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a partition; one is written like orders-0")
    return match[1], int(match[2])


def targets(text: str) -> Targets:
    """`1, leader(orders-0)` -> two targets."""
    text = " ".join(text.split())
    if text.startswith("all but "):
        return (Target("all but", inner=targets(text.removeprefix("all but ")), shown=text),)
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)]
    return tuple(_target(part) for part in parts)


_PLAIN: Final = {
    "all": "all", "all brokers": "all", "every broker": "all", "brokers": "all",
    "controller": "controller", "the controller": "controller", "down": "down",
    "all down": "down", "down brokers": "down", "clients": "clients", "all clients": "clients",
}  # fmt: skip
_CALLS: Final = ("leader", "followers", "replicas", "isr", "elr", "coordinator", "rack", "client")


def _target(text: str) -> Target:
    if text in _PLAIN:
        return Target(_PLAIN[text], shown=text)
    if text.removeprefix("broker ").isdecimal():
        return Target("broker", text.removeprefix("broker "), shown=text)
    if (match := _ANY.fullmatch(text)) is not None and not text.startswith("any ("):
        inner = match[2]
        among = "all" if inner in ("broker", "brokers") else inner
        return Target("any", count=int(match[1] or 1), inner=targets(among), shown=text)
    for word in ("rack", "client"):
        if text.startswith(f"{word} "):
            return Target(word, text.removeprefix(f"{word} "), shown=text)
    if (match := _CALL.fullmatch(text)) is not None:
        return _call(match[1], match[2], text)
    if re.fullmatch(r"[a-z][a-z0-9_-]*", text):
        return Target("name", text, shown=text)
    raise ValueError(f"not known; there are {TARGETS_SHOWN}")


def _call(word: str, argument: str, text: str) -> Target:
    if word == "any":
        return Target("any", inner=targets(argument), shown=text)
    if word not in _CALLS:
        raise ValueError(unknown("way to name brokers", word, _CALLS))
    if word == "coordinator":
        return Target(word, argument.removeprefix("group ").strip(), shown=text)
    if word in ("rack", "client"):
        return Target(word, argument, shown=text)
    return Target(word, partition=partition_name(argument), shown=text)


# --------------------------------------------------------------------------------- conditions


def condition(text: str) -> Condition:
    """`isr(orders-0) < 2`, `ISR of orders-0 < 2`, `1,000 acked`, `broker 2 leads orders-0`,
    `event leader_elected of orders-0`, `settled`."""
    text = " ".join(text.split())
    if text == "settled":
        return Condition("settled", shown=text)
    if (match := _ACKED.fullmatch(text)) is not None:
        return Condition(match[2], ">=", _number(match[1]), of=match[3] or "", shown=text)
    if (match := _LEADS.fullmatch(text)) is not None:
        name = partition_name(match[2])
        return Condition("leader", "==", int(match[1]), name, shown=text)
    if (match := _EVENT.fullmatch(text)) is not None:
        if match[1] not in EVENTS:
            raise ValueError(unknown("event", match[1], EVENTS))
        return Condition("event", of=f"{match[1]} {match[2] or ''}".strip(), shown=text)
    folded = _OF.sub(lambda m: f"{m[1].lower().replace(' ', '_')}({m[2]}){m[3]}", text)
    match = _COMPARED.fullmatch(folded)
    if match is None:
        raise ValueError(
            "not a condition; one is isr(orders-0) < 2, 1,000 acked, broker 2 leads orders-0,"
            " or event leader_elected"
        )
    symbol = "==" if match[2] == "=" else match[2]
    return _comparison(match[1].strip(), symbol, _number(match[3]), text)


def _comparison(left: str, symbol: str, number: int, text: str) -> Condition:
    call = _CALL.fullmatch(left)
    word, argument = (call[1], call[2]) if call is not None else (left, "")
    if word in COUNTED:
        return Condition(word, symbol, number, of=argument, shown=text)
    if word not in OF_PARTITION:
        raise ValueError(unknown("thing to compare", word, (*COUNTED, *OF_PARTITION)))
    if not argument:
        raise ValueError(f"{word} of which partition? Write {word}(orders-0)")
    return Condition(word, symbol, number, partition_name(argument), shown=text)


def _number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))


# ------------------------------------------------------------------------- moments and counts

_TIME: Final = duration()


def moment(text: str) -> Moment:
    """`5s`, or `5s..20s` for one between them, drawn by the seed."""
    low, dots, high = text.partition("..")
    low_ms = _milliseconds(low)
    high_ms = _milliseconds(high) if dots else low_ms
    if high_ms < low_ms:
        raise ValueError("the first time must be the earlier one")
    return Moment(low_ms, high_ms)


def _milliseconds(text: str) -> int:
    match = re.fullmatch(_TIME.pattern, text.strip())
    if match is None:
        raise ValueError("not a time like 250ms, 5s, 2m or 5s..20s")
    number = round(_TIME.to_number(match))
    if number > MAX_MS:
        raise ValueError("more than a year")
    return number


def count(text: str) -> Count:
    """`3`, `>= 1`, `< 10`, `some`, `none`."""
    text = text.strip()
    if text in ("some", "none"):
        return Count(">=" if text == "some" else "==", 1 if text == "some" else 0)
    for symbol in _SYMBOLS:
        if text.startswith(symbol):
            return Count("==" if symbol == "=" else symbol, _count_number(text[len(symbol) :]))
    return Count("==", _count_number(text))


def _count_number(text: str) -> int:
    digits = text.strip().replace(",", "").replace("_", "")
    if not digits.isdecimal():
        raise ValueError(f"{show(text)} is no number; write 3, >= 1, some or none")
    return int(digits)


TARGETS: Final = Words(TARGETS_SHOWN, targets, lists=True)
PARTITION: Final = Words("a partition like orders-0", partition_name)
CONDITION: Final = Words("a condition like isr(orders-0) < 2", condition)
MOMENT: Final = Words("a time like 5s, or 5s..20s for one between them", moment)
COUNT: Final = Words("a number like 3, >= 1, some or none", count)
