"""Conditions: `isr(orders-0) < 2`, `1,000 acked`, `event leader_elected of orders-0`, `settled`.

Owns: one class per kind of condition, with its written form, its test, and the names in it that
must exist.  Never: waits (stages and handles do).  Kafka: no counterpart.

A partition that does not exist yet has no leader (-1), and counts zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from kcluster.config.files.durations import milliseconds
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import nearest, show, unknown
from kcluster.contract import Note
from kcluster.events import KINDS
from kcluster.operations.errors import ClusterError
from kcluster.operations.moments import MOMENTS, NthMoment, awaited_moment
from kcluster.operations.names import Names, PartitionName, partition_name
from kcluster.operations.python_values import seconds_in, text_in
from kcluster.operations.verbs import Verbs
from kcluster.partition.replica import Replica
from kcluster.runtime.dispatch import Dispatcher

EVENTS: Final = KINDS
COUNTED: Final = ("acked", "sent", "read", "failed", "unknown")
OF_ALL: Final = ("fewest_copies",)
OF_PARTITION: Final = ("isr", "leader", "log_end", "high_watermark", "elr")

FORMS: Final = (
    ("isr(orders-0) < 2", "The number of in-sync replicas; also <=, >, >=, =, !=."),
    ("leader(orders-0) = 2", "The leader's id; < 0: there is none."),
    ("broker 2 leads orders-0", "The same in words."),
    ("high_watermark(orders-0) > 100", "The leader's high watermark."),
    ("log_end(orders-0) > 100", "The leader's log end offset."),
    ("elr(orders-0) = 0", "The number of eligible leader replicas (KIP-966)."),
    (
        "fewest_copies > 1",
        "The number of disks whose log reaches what is committed, of the partition that has"
        " fewest.",
    ),
    ("1,000 acked", "At least this many records were acked; also sent, read, failed."),
    ("500 acked by shop", "The same of one client of the workload."),
    ("unknown(shop) < 5", "Records of a client that may have been written: no answer came."),
    ("event leader_elected of orders-0", "This has happened since the step began to wait."),
    (
        "3rd commit of billing",
        "A moment of clients, only for `when` and `until`; also of produce, ack, delivery,"
        " rebalance, transaction, or an event; `of` a group, topic, partition or client.",
    ),
    (
        "commit_written of billing",
        "A moment inside a broker, only for `when` and `until`: its coordinator has written a"
        " commit, and has not answered; also append, marker_written, group_written,"
        " transaction_written, share_state_written.",
    ),
    ("settled", "All brokers serve, and every replica is in sync."),
)
"""Each form of a condition by an example, with its meaning; for the reference."""
_NUMBER: Final = r"([0-9][0-9,_]*)"
_CALL: Final = re.compile(r"([a-z_ ]+?) ?\( ?(.*?) ?\)")
_COMPARED: Final = re.compile(rf"(.+?) ?(<=|>=|==|!=|<|>|=) ?{_NUMBER}")
_COUNT: Final = re.compile(rf"{_NUMBER} (acked|sent|read|failed)(?: (?:by|of) (\S+))?")
_LEADS: Final = re.compile(r"broker (\d+) leads (\S+)")
_OF: Final = re.compile(r"(isr|leader|log end|high watermark) of (\S+)(.*)", re.IGNORECASE)
_WORD_OF: Final = re.compile(r"([A-Za-z_-]+)( of \S+)?")
_EVENT: Final = re.compile(r"event ([a-z_]+)(?: of (.+))?")


class Condition(Struct, frozen=True, kw_only=True):
    """A condition on a cluster; a subclass per kind.  `shown`: the condition as it was written."""

    shown: str

    def holds(self, facts: ConditionFacts, since: int = 0) -> bool:
        """Whether the condition holds now; events count from the note with index `since` on."""
        raise AssertionError(f"{type(self).__name__} has no test")

    def value(self, facts: ConditionFacts) -> int | None:
        """The number that is compared, for messages; None if no number is compared."""
        return None

    def standing(self, facts: ConditionFacts) -> str:
        """The present state in a few words, for the message that the condition does not hold."""
        return f"it is {self.value(facts)}"

    def problems(self, names: Names) -> Iterator[str]:
        """The names in the condition that a scenario does not have."""
        yield from ()

    def __str__(self) -> str:
        return self.shown


class SettledCondition(Condition, frozen=True, kw_only=True):
    """`settled`: all brokers serve, and every replica is in sync."""

    def holds(self, facts: ConditionFacts, since: int = 0) -> bool:
        return facts.verbs.settled.all_in_sync()

    def standing(self, facts: ConditionFacts) -> str:
        settled = facts.verbs.settled
        behind = [x for x in settled.brokers() if not settled.is_running(x)]
        if behind:
            return f"not in service: broker {', '.join(map(str, behind))}"
        lacking = [
            f"{name}-{found.partition}"
            for name, topic in settled.image.topics.items()
            for found in topic.partitions
            if found.leader < 0 or len(found.isr) < len(found.replicas)
        ]
        if not lacking:
            return next((one.text for one in settled.unsettled()), "it holds now")
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        return f"replicas out of sync: {', '.join(lacking[:5])}{more}"


class EventCondition(Condition, frozen=True, kw_only=True):
    """`event leader_elected of orders-0`: an event of this kind has happened."""

    kind: str
    subject: str

    def holds(self, facts: ConditionFacts, since: int = 0) -> bool:
        return any(map(self.matches, facts.notes[since:]))

    def matches(self, note: Note) -> bool:
        """Whether an event is the expected one."""
        event = note.event
        return event.kind == self.kind and (not self.subject or event.subject == self.subject)

    def standing(self, facts: ConditionFacts) -> str:
        return "there was no such event"


class MomentCondition(Condition, frozen=True, kw_only=True):
    """`3rd commit of billing`: a moment in the life of clients, which a step awaits (`when`)."""

    moment: NthMoment

    def holds(self, facts: ConditionFacts, since: int = 0) -> bool:
        raise ClusterError(
            f"{self}: a moment holds at no other time; only a step's `when` takes it"
        )

    def standing(self, facts: ConditionFacts) -> str:
        return "it has not come"


class _Comparison(Condition, frozen=True, kw_only=True):
    """A comparison: `word symbol number`."""

    word: str
    symbol: str
    number: int

    def holds(self, facts: ConditionFacts, since: int = 0) -> bool:
        return compare(self.value(facts), self.symbol, self.number)

    def value(self, facts: ConditionFacts) -> int:
        raise AssertionError(f"{type(self).__name__} has no value")


class CountCondition(_Comparison, frozen=True, kw_only=True):
    """`1,000 acked by shop`: a count of the ledger; `client` "" for all clients."""

    client: str

    def value(self, facts: ConditionFacts) -> int:
        return facts.count(self.word, self.client)

    def problems(self, names: Names) -> Iterator[str]:
        if self.client and self.client not in names.clients:
            yield f"{self.client}: {unknown('client', self.client, names.clients)}"


class CopiesCondition(_Comparison, frozen=True, kw_only=True):
    """`fewest_copies > 1`: how many disks have a log that reaches what is committed, of the
    partition that has fewest.  Brokers that are down count: they come back with their disks."""

    def value(self, facts: ConditionFacts) -> int:
        return facts.verbs.fewest_copies()


class PartitionCondition(_Comparison, frozen=True, kw_only=True):
    """`isr(orders-0) < 2`: a number of a partition."""

    partition: PartitionName

    def value(self, facts: ConditionFacts) -> int:
        partition = facts.verbs.settled.image.partition(*self.partition)
        if partition is None:
            return -1 if self.word == "leader" else 0
        match self.word:
            case "leader":
                return partition.leader
            case "isr":
                return len(partition.isr)
            case "elr":
                return len(partition.elr)
        replica = facts.leader_replica(*self.partition)
        if replica is None:
            return 0
        is_watermark = self.word == "high_watermark"
        return replica.high_watermark if is_watermark else replica.log.log_end_offset

    def standing(self, facts: ConditionFacts) -> str:
        try:
            partition = facts.verbs.partition(*self.partition)
        except ClusterError as error:
            return str(error)
        if self.word == "leader" and partition.leader < 0:
            return "it has no leader"
        members = {"isr": partition.isr, "elr": partition.elr}.get(self.word)
        shown = f" ({', '.join(map(str, members))})" if members else ""
        return f"it is {self.value(facts)}{shown}"

    def problems(self, names: Names) -> Iterator[str]:
        yield from filter(None, [names.partition_problem(*self.partition)])


Counter = Callable[[str, str], int]
"""Counts records: (word, client) -> the number that were sent or read with this outcome; client ""
for all."""


class ConditionFacts:
    """The facts against which conditions are tested: one cluster, its notes, its workload's
    counts."""

    def __init__(
        self, dispatcher: Dispatcher, verbs: Verbs, notes: list[Note], count: Counter
    ) -> None:
        self.verbs = verbs
        self.notes = notes
        self.count = count
        self._dispatcher = dispatcher

    def high_watermark(self, topic: str, partition: int) -> int:
        """The high watermark at a partition's leader; 0 without a leader."""
        replica = self.leader_replica(topic, partition)
        return 0 if replica is None else replica.high_watermark

    def log_end(self, topic: str, partition: int) -> int:
        """The log end offset of a partition's leader; 0 without a leader."""
        replica = self.leader_replica(topic, partition)
        return 0 if replica is None else replica.log.log_end_offset

    def leader_replica(self, topic: str, number: int) -> Replica | None:
        """The leader's replica of a partition; None without a leader."""
        partition = self.verbs.settled.image.partition(topic, number)
        if partition is None:
            return None
        return self._dispatcher.replica(partition.leader, partition.topic_id, number)


# ------------------------------------------------------------------------------------- reading


def condition(text: str) -> Condition:
    """`isr(orders-0) < 2`, `ISR of orders-0 < 2`, `1,000 acked`, `broker 2 leads orders-0`,
    `event leader_elected of orders-0`, `settled`."""
    text = " ".join(text.split())
    if text == "settled":
        return SettledCondition(shown=text)
    if (match := _COUNT.fullmatch(text)) is not None:
        number = _number(match[1])
        return CountCondition(
            word=match[2], symbol=">=", number=number, client=match[3] or "", shown=text
        )
    if (moment := awaited_moment(text)) is not None:
        return MomentCondition(moment=moment, shown=text)
    if (match := _LEADS.fullmatch(text)) is not None:
        partition = partition_name(match[2])
        return PartitionCondition(
            word="leader", symbol="==", number=int(match[1]), partition=partition, shown=text
        )
    if (match := _EVENT.fullmatch(text)) is not None:
        if match[1] not in EVENTS:
            raise ValueError(unknown("event", match[1], EVENTS))
        return EventCondition(kind=match[1], subject=match[2] or "", shown=text)
    folded = _OF.sub(lambda m: f"{m[1].lower().replace(' ', '_')}({m[2]}){m[3]}", text)
    match = _COMPARED.fullmatch(folded)
    if match is None:
        raise ValueError(f"not a condition; {_meant(text)}")
    symbol = "==" if match[2] == "=" else match[2]
    return _comparison(match[1].strip(), symbol, _number(match[3]), text)


def _meant(text: str) -> str:
    """What a text probably means that is no condition: a word alone or with `of` is a misspelled
    moment, or an event."""
    if (match := _WORD_OF.fullmatch(text)) is not None:
        words = {name: name for name in ("settled", *MOMENTS)}
        words |= {name: f"event {name}" for name in EVENTS if name not in words}
        word = nearest(match[1], words)
        if word is not None:
            return f"did you mean {words[word]}{match[2] or ''}?"
    return "one is isr(orders-0) < 2, 1,000 acked, broker 2 leads orders-0, or event leader_elected"


def _number(text: str) -> int:
    number = whole_number(text.replace(",", "").replace("_", ""))
    if number is None:
        raise ValueError(f"{show(text)} is too long for a number")
    return number


def _comparison(left: str, symbol: str, number: int, text: str) -> Condition:
    call = _CALL.fullmatch(left)
    word, argument = (call[1], call[2]) if call is not None else (left, "")
    if word in COUNTED:
        return CountCondition(word=word, symbol=symbol, number=number, client=argument, shown=text)
    if word in OF_ALL and not argument:
        return CopiesCondition(word=word, symbol=symbol, number=number, shown=text)
    if word not in OF_PARTITION:
        raise ValueError(unknown("thing to compare", word, (*COUNTED, *OF_PARTITION, *OF_ALL)))
    if not argument:
        raise ValueError(f"{word} of which partition? Write {word}(orders-0)")
    partition = partition_name(argument)
    return PartitionCondition(
        word=word, symbol=symbol, number=number, partition=partition, shown=text
    )


def condition_in(text: str) -> Condition:
    """The condition that the text means, like `condition`; ClusterError for any other text."""
    try:
        return condition(text_in("condition", text))
    except ValueError as error:
        raise ClusterError(f"{text}: {error}") from None


def limit_ms_of(within: str | float) -> int:
    """The ms of `10s`, or of a number of seconds; ClusterError for anything else."""
    if not isinstance(within, str):
        return round(seconds_in("within", within) * 1000)
    try:
        return milliseconds(within)
    except ValueError as error:
        raise ClusterError(f"within: {error}") from None


def not_held(condition: Condition, facts: ConditionFacts, limit_ms: int) -> str:
    """The message that a condition did not hold in time, with the present state.  `limit_ms`: 0 if
    there was no wait, because the clock is paused."""
    when = f"after {limit_ms / 1000:g} s" if limit_ms else "and the clock is paused"
    return f"{condition} does not hold {when}: {condition.standing(facts)}"


def no_workload(word: str, client: str) -> int:
    """The counter of a cluster without a scenario's workload."""
    raise ClusterError(f"{word}: only records of a scenario's workload are counted")


SETTLED: Final = condition("settled")


def compare(value: float, symbol: str, number: float) -> bool:
    """Whether `value symbol number` is true."""
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
