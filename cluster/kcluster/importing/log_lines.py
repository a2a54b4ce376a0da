"""Lines of a 4.x controller.log, state-change.log or server.log, read as values.

Owns: the wording of Kafka 4.3.1's log lines.  Never: opens a file, decides on the steps
(log_steps.py). Kafka: BrokerHeartbeatManager, ClusterControlManager, ReplicationControlManager,
state.change.logger, Partition.

A starting controller logs its whole metadata log as `Replayed ...`, with the time of its start. So
events are read from the lines of the active controller's decisions; replayed lines give only facts
without a time: racks and replicas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct, field

from kcluster.config.files.problems import Problem

UNKNOWN_AGE_MS: Final = -1
_QUARTER_MS: Final = 900_000
"""A quarter of an hour in ms: offsets of time zones are multiples of it."""


class LogPlace(Struct, frozen=True, order=True):
    """The place of a line.  Places are ordered by time, then by the order of reading."""

    at_ms: int
    """The time on the log's clock; the log does not name its time zone."""
    source: str
    line: int
    message: str
    """The line without time, level and logger."""


class SessionExpired(Struct, frozen=True):
    """The controller fences a broker whose heartbeats have stopped."""

    broker: int


class ShutdownStarted(Struct, frozen=True):
    """A broker begins a controlled shutdown."""

    broker: int


class LoggedRegistration(Struct, frozen=True):
    """A broker's process has started."""

    broker: int
    is_first: bool
    """Whether the broker was new to the controller."""


class LoggedUnfencing(Struct, frozen=True):
    """A broker may lead and be in sync again."""

    broker: int


class BrokerSeen(Struct, frozen=True):
    """Facts without a time about a broker, from its registration."""

    broker: int
    rack: str | None


class PartitionSeen(Struct, frozen=True):
    """The replicas of a partition when it was created."""

    topic: str
    number: int
    replicas: tuple[int, ...]


class LeaderStarted(Struct, frozen=True):
    """A broker begins to lead a partition."""

    topic: str
    number: int
    leader: int
    previous: int | None
    """The previous leader; -1 if there was none; None if the broker has just started and does not
    know it."""


class IsrShrank(Struct, frozen=True):
    """A leader removes followers that have fallen behind."""

    topic: str
    number: int
    leader: int
    out: tuple[int, ...]
    age_ms: int
    """The age of the lag: the time between this line and the moment at which the first of these
    followers was last caught up; -1 if the line does not show it."""


class IsrBecame(Struct, frozen=True):
    """The controller has confirmed an ISR."""

    topic: str
    number: int
    leader: int
    isr: tuple[int, ...]


class TopicMade(Struct, frozen=True):
    """A topic was created by an administrator or a broker."""

    name: str
    partitions: int
    """The number of partitions; -1 if the line does not show it."""
    replication_factor: int
    """The replication factor; -1 if the line does not show it."""
    config: dict[str, str] = {}


class TopicGone(Struct, frozen=True):
    """A topic was deleted."""

    name: str


class AssignmentReplayed(Struct, frozen=True):
    """A partition's replicas change, or have changed."""

    topic: str
    number: int
    replicas: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]


class ReassignmentAccepted(Struct, frozen=True):
    """An administrator's reassignment; its partitions follow as AssignmentReplayed."""


class ControllerActive(Struct, frozen=True):
    """A controller becomes the active one."""

    controller: int


LogFact = (
    SessionExpired
    | ShutdownStarted
    | LoggedRegistration
    | LoggedUnfencing
    | BrokerSeen
    | PartitionSeen
    | LeaderStarted
    | IsrShrank
    | IsrBecame
    | TopicMade
    | TopicGone
    | AssignmentReplayed
    | ReassignmentAccepted
    | ControllerActive
)


class LogReading(Struct):
    """All files together, in order of time once all are read."""

    facts: list[tuple[LogPlace, LogFact]] = field(default_factory=list)
    unknown: list[LogPlace] = field(default_factory=list)
    """The places of the lines that were not understood, except lines of stack traces."""
    lines: int = 0
    """The number of lines that have a time."""
    empty: list[str] = field(default_factory=list)
    """Files without any line: each node creates all of its logs, and some stay empty."""
    problems: list[Problem] = field(default_factory=list)


_LINE: Final = re.compile(
    r"\[?(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]? (?P<level>[A-Z]+) +(?P<message>.*)$"
)
_LOGGER: Final = re.compile(r" \([A-Za-z_$][A-Za-z0-9_.$]*\)$")
_NAME: Final = r"(?P<topic>[A-Za-z0-9._-]+)-(?P<number>\d+)"
_CREATED: Final = re.compile(
    r"CreatableTopic\(name='(?P<name>[^']+)', numPartitions=(?P<partitions>-?\d+),"
    r" replicationFactor=(?P<factor>-?\d+), assignments=\[(?P<assignments>.*?)\],"
    r" configs=\[(?P<configs>.*?)\]\): (?P<result>[A-Z_]+)"
)
_CREATED_CONFIG: Final = re.compile(r"CreatableTopicConfig\(name='([^']*)', value='([^']*)'\)")
_CREATED_REPLICAS: Final = re.compile(r"brokerIds=\[([\d, ]+)\]")
_DELETED: Final = re.compile(r"name: (?P<name>[^,}]+), result: SUCCESS")
_CAUGHT_UP: Final = re.compile(r"\(brokerId: (\d+), endOffset: -?\d+, lastCaughtUpTimeMs: (\d+)\)")


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.replace(" ", "").split(",") if word)


def _broker(found: re.Match[str]) -> int:
    return int(found["broker"])


Maker = Callable[[re.Match[str], int], Iterable[LogFact]]
"""Makes the facts of a line, from its match and its time in ms."""


def _leader(found: re.Match[str], _at_ms: int) -> Iterable[LogFact]:
    previous = found["previous"]
    yield LeaderStarted(
        found["topic"],
        int(found["number"]),
        _broker(found),
        None if previous == "None" else int(previous.removeprefix("Some(").removesuffix(")")),
    )


def _shrank(found: re.Match[str], at_ms: int) -> Iterable[LogFact]:
    rows = _CAUGHT_UP.findall(found["out"])
    ages = [(at_ms - int(caught_up)) % _QUARTER_MS for _, caught_up in rows]
    yield IsrShrank(
        found["topic"],
        int(found["number"]),
        _broker(found),
        tuple(int(broker) for broker, _ in rows),
        max(ages, default=UNKNOWN_AGE_MS),
    )


def _created(found: re.Match[str], _at_ms: int) -> Iterable[LogFact]:
    for topic in _CREATED.finditer(found["results"]):
        if topic["result"] != "SUCCESS":
            continue
        rows = [_ids(row) for row in _CREATED_REPLICAS.findall(topic["assignments"])]
        yield TopicMade(
            topic["name"],
            len(rows) or int(topic["partitions"]),
            len(rows[0]) if rows else int(topic["factor"]),
            dict(_CREATED_CONFIG.findall(topic["configs"])),
        )


def _assignment(found: re.Match[str], _at_ms: int) -> Iterable[LogFact]:
    yield AssignmentReplayed(
        found["topic"],
        int(found["number"]),
        _ids(found["replicas"]),
        _ids(found["removing"]),
        _ids(found["adding"]),
    )


_MAKERS: Final[tuple[tuple[re.Pattern[str], Maker], ...]] = (
    (
        re.compile(
            r"Fencing broker (?P<broker>\d+) at epoch -?\d+ because its session has timed out"
        ),
        lambda found, _: [SessionExpired(_broker(found))],
    ),
    (
        re.compile(
            r"Unfenced broker (?P<broker>\d+) has requested and been granted"
            r" (a controlled|an immediate) shutdown"
        ),
        lambda found, _: [ShutdownStarted(_broker(found))],
    ),
    (
        re.compile(r"No previous registration found for broker (?P<broker>\d+)\. New incarnation"),
        lambda found, _: [LoggedRegistration(_broker(found), True)],
    ),
    (
        re.compile(r"Registering a new incarnation of broker (?P<broker>\d+)\. Previous"),
        lambda found, _: [LoggedRegistration(_broker(found), False)],
    ),
    (
        re.compile(r"The request from broker (?P<broker>\d+) to unfence has been granted"),
        lambda found, _: [LoggedUnfencing(_broker(found))],
    ),
    (
        re.compile(
            r"Replayed (initial RegisterBrokerRecord for|RegisterBrokerRecord establishing a new"
            r" incarnation of|RegisterBrokerRecord modifying the registration for)"
            r" broker (?P<broker>\d+): .*? rack=(null|'(?P<rack>[^']*)')"
        ),
        lambda found, _: [BrokerSeen(_broker(found), found["rack"])],
    ),
    (
        re.compile(
            rf"Replayed PartitionRecord for new partition {_NAME} with topic ID \S+ and"
            r" PartitionRegistration\(replicas=\[(?P<replicas>[\d, ]*)\]"
        ),
        lambda found, _: [
            PartitionSeen(found["topic"], int(found["number"]), _ids(found["replicas"]))
        ],
    ),
    (
        re.compile(
            rf"\[Broker id=(?P<broker>\d+)\] Leader {_NAME} with topic id \S+ starts at leader"
            r" epoch \d+ .*Previous leader (?P<previous>None|Some\(-?\d+\)) "
        ),
        _leader,
    ),
    (
        re.compile(
            rf"\[Partition {_NAME} broker=(?P<broker>\d+)\] Shrinking ISR from [\d,]+ to [\d,]*\."
            r" .*Out of sync replicas: (?P<out>.*)"
        ),
        _shrank,
    ),
    (
        re.compile(
            rf"\[Partition {_NAME} broker=(?P<broker>\d+)\] ISR updated to (?P<isr>[\d,]*) "
        ),
        lambda found, _: [
            IsrBecame(found["topic"], int(found["number"]), _broker(found), _ids(found["isr"]))
        ],
    ),
    (re.compile(r"CreateTopics result\(s\): (?P<results>.*)"), _created),
    (
        re.compile(r"DeleteTopics result\(s\): (?P<results>.*)"),
        lambda found, _: [TopicGone(row["name"]) for row in _DELETED.finditer(found["results"])],
    ),
    (
        re.compile(
            r"Replayed partition assignment change PartitionChangeRecord\(partitionId="
            r"(?P<number>\d+), .*?replicas=\[(?P<replicas>[\d, ]*)\],"
            r" removingReplicas=\[(?P<removing>[\d, ]*)\], addingReplicas=\[(?P<adding>[\d, ]*)\]"
            r".* for topic (?P<topic>[A-Za-z0-9._-]+)\. "
        ),
        _assignment,
    ),
    (
        re.compile(r"Successfully altered [1-9]\d* out of \d+ partition reassignment"),
        lambda _found, _: [ReassignmentAccepted()],
    ),
    (
        re.compile(r"\[QuorumController id=(?P<broker>\d+)\] Becoming the active controller"),
        lambda found, _: [ControllerActive(_broker(found))],
    ),
)

_CONSEQUENCES: Final = re.compile(
    r"Replayed |Replaying |(Registering|Activated|Deactivated|Unregistering) periodic task"
    r"|Periodic task \w+ generated|In the last \d+ ms period|Creating new QuorumController"
    r"|Performing controller activation|handleBroker\w+: changing|enterControlledShutdown\["
    r"|The request from broker \d+ to shut down has been granted"
    r"|Ignoring no-op registration change|UNCLEAN partition change for|partition change for "
    r"|Setting new leader for topicId|Removed ELRs from|Removing heartbeat tracker entry"
    r"|AlterPartition request from node \d+ for \S+ completed the ongoing partition reassignment"
    r"|registerBroker: event failed with DuplicateBrokerRegistrationException"
    r"|\w+: event failed with Not(Controller|Leader)Exception|In the new epoch \d+, the leader is"
    r"|Transitioning \d+ partition|Creating new partition |Follower \S+ with topic id"
    r"|Follower \S+ starts at leader epoch|Leader \S+ with topic id"
    r"|(Stopped|Started) fetchers as part of |Expected partition \S+ with topic id"
    r"|Skipped the become-"
    r"|Deleting \d+ partition|The topic partition \S+ was marked as RECOVER"
)
"""Lines that follow from other facts, or are routine: understood, and no step."""
_SPEAKER: Final = re.compile(
    r"\[(QuorumController id|Broker id|Partition \S+ broker|ControllerServer id)=\d+\] "
)


def read_log(source: str, text: str, into: LogReading) -> None:
    """Add the lines of one file, or a problem if no line has a time."""
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines, 1) if line.strip()), 0)
    if not first:
        into.empty.append(source)
        return
    before = into.lines
    for number, line in enumerate(lines, 1):
        found = _LINE.match(line.rstrip("\r"))
        if found is None:
            continue  # part of a stack trace, or of a message with several lines
        into.lines += 1
        at_ms = _time_ms(found["time"])
        if at_ms is None:
            words = f"{found['time']} is not a time"
            into.problems.append(Problem(source, number, found.start("time") + 1, "", words))
            continue
        message = _LOGGER.sub("", found["message"])
        facts = _facts(message, at_ms)
        place = LogPlace(at_ms, source, number, message)
        if facts is None:
            into.unknown.append(place)
        else:
            into.facts += [(place, fact) for fact in facts]
    if into.lines == before:
        words = "no line with a time like [2026-11-22 04:50:10,090]; not a log of Kafka 4.x"
        into.problems.append(Problem(source, first, 1, "", words))


def in_order(reading: LogReading) -> list[tuple[LogPlace, LogFact]]:
    """The facts of all files in order of time; facts of one time stay in the order of the files."""
    return sorted(reading.facts, key=lambda one: one[0].at_ms)


def _facts(message: str, at_ms: int) -> list[LogFact] | None:
    """The facts of a message, empty if it is routine, None if it is not understood."""
    for pattern, make in _MAKERS:
        found = pattern.search(message)
        if found is not None:
            return list(make(found, at_ms))
    return [] if _CONSEQUENCES.match(_SPEAKER.sub("", message, count=1)) else None


def _time_ms(text: str) -> int | None:
    try:
        moment = datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    except ValueError:
        return None
    return round(moment.timestamp() * 1000)
