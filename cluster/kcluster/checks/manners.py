"""The manners of clients: habits that break no promise, and cost the cluster or the client dearly.

Owns: the habits, their thresholds, finding them in recorded exchanges.  Never: looks into a broker,
words a finding (manners_words.py).  Kafka: no counterpart; the habits are those of incidents that
were told in public, and of docs/explanation/findings-virtual-clients.md.

The thresholds are far from what Kafka's own clients do, also while a leader dies: a client that
shares its client.id with others is judged as one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kcluster.evidence.recorder import Recorder
from kcluster.evidence.rows import ExchangeRow, GroupRow

ALL_ACKS: Final = -1


class Habit(StrEnum):
    """A habit, by its name in reports."""

    PRODUCER_PER_REQUEST = "producer-per-request"
    COMMIT_PER_RECORD = "commit-per-record"
    METADATA_STORM = "metadata-storm"
    COORDINATOR_STORM = "coordinator-storm"
    RECONNECT_STORM = "reconnect-storm"
    SINGLE_RECORD_REQUESTS = "single-record-requests"
    REBALANCE_LOOP = "rebalance-loop"
    STALE_LEADER = "stale-leader"
    STUCK_FETCH = "stuck-fetch"
    WEAK_ACKS = "weak-acks"


THRESHOLDS: Final[Mapping[Habit, float]] = {
    Habit.PRODUCER_PER_REQUEST: 0.5,
    Habit.COMMIT_PER_RECORD: 0.5,
    Habit.METADATA_STORM: 30.0,
    Habit.COORDINATOR_STORM: 30.0,
    Habit.RECONNECT_STORM: 30.0,
    Habit.SINGLE_RECORD_REQUESTS: 100.0,
    Habit.REBALANCE_LOOP: 12,
    Habit.STALE_LEADER: 8,
    Habit.STUCK_FETCH: 8,
    Habit.WEAK_ACKS: 0,
}
"""The figure from which on a habit is reported; the unit of each is in manners_words.py."""

STORM_MS: Final = 2_000
"""The time over which requests of a storm are counted."""
LOOP_MS: Final = 60_000
"""The time over which generations of a group are counted."""
LEAST_PRODUCERS: Final = 5
LEAST_COMMITS: Final = 50
LEAST_RATE: Final = 2.0
"""Commits per second below which a commit per record costs nothing."""
LEAST_REQUESTS: Final = 300
"""Requests with a single record below which their rate says nothing."""
_STORMS: Final = {
    "Metadata": Habit.METADATA_STORM,
    "FindCoordinator": Habit.COORDINATOR_STORM,
    "ApiVersions": Habit.RECONNECT_STORM,
}
"""The habit of each API whose requests come in storms.  A client sends one ApiVersions for each
connection."""
_STALE: Final = ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH")


class Manner(Struct, frozen=True):
    """A habit that was found.  `client`: a client, or a group for a loop of rebalances; `topic`,
    `partition`: "" and -1 if it concerns no single one; `figure`: as THRESHOLDS has it; `count`:
    the requests concerned; `first_ms`, `last_ms`: of the first and the last one."""

    habit: Habit
    client: str
    figure: float
    count: int
    first_ms: int
    last_ms: int
    topic: str = ""
    partition: int = -1

    @property
    def threshold(self) -> float:
        return THRESHOLDS[self.habit]


def recorded_manners(recorder: Recorder, since_ms: int | None = None) -> list[Manner]:
    """The habits of all clients of a recorded cluster, since a moment.  To be called in the
    driver's thread."""
    recorder.check_last_step()
    recorder.read_min_isr()
    exchanges, groups = recorder.exchanges().rows, recorder.states.groups.rows
    if since_ms is not None:
        exchanges = [row for row in exchanges if row.asked_ms >= since_ms]
        groups = [row for row in groups if row.at_ms >= since_ms]
    min_insync = {observed.topic: observed.min_isr for observed in recorder.partitions.values()}
    return find_manners(exchanges, groups, min_insync)


def find_manners(
    exchanges: Sequence[ExchangeRow],
    groups: Iterable[GroupRow] = (),
    min_insync: Mapping[str, int] = {},
) -> list[Manner]:
    """The habits of all clients, by client.  `groups`: the states of groups; `min_insync`:
    min.insync.replicas by topic, as far as it is known."""
    by_client: dict[str, list[ExchangeRow]] = {}
    for row in exchanges:
        by_client.setdefault(row.client, []).append(row)
    found: list[Manner] = []
    for client, rows in sorted(by_client.items()):
        found += _storms(client, rows)
        found += _producers(client, rows)
        found += _commits(client, rows)
        found += _single_records(client, rows)
        found += _stale_leaders(client, rows)
        found += _stuck_fetches(client, rows)
        found += _weak_acks(client, rows, min_insync)
    return [*found, *_loops(groups)]


def _storms(client: str, rows: Sequence[ExchangeRow]) -> Iterator[Manner]:
    """The densest time of each API whose requests come in storms."""
    for api, habit in _STORMS.items():
        times = sorted(row.asked_ms for row in rows if row.api == api)
        first, last = _densest(times, STORM_MS)
        count = last - first
        if count * 1000 / STORM_MS >= THRESHOLDS[habit]:
            figure = count * 1000 / STORM_MS
            yield Manner(habit, client, figure, len(times), times[first], times[last - 1])


def _densest(times: Sequence[int], window_ms: int) -> tuple[int, int]:
    """The slice of the most times that lie within a window."""
    best, begin = (0, 0), 0
    for end, time_ms in enumerate(times, 1):
        while time_ms - times[begin] >= window_ms:
            begin += 1
        if end - begin > best[1] - best[0]:
            best = (begin, end)
    return best


def _producers(client: str, rows: Sequence[ExchangeRow]) -> Iterator[Manner]:
    """A producer id for every few requests that send records."""
    inits = [row for row in rows if row.api == "InitProducerId" and not row.error]
    produced = sum(row.api == "Produce" and not row.error for row in rows)
    habit = Habit.PRODUCER_PER_REQUEST
    if len(inits) < LEAST_PRODUCERS or len(inits) < THRESHOLDS[habit] * produced:
        return
    figure = len(inits) / max(1, produced)
    yield Manner(habit, client, figure, len(inits), inits[0].asked_ms, inits[-1].asked_ms)


def _commits(client: str, rows: Sequence[ExchangeRow]) -> Iterator[Manner]:
    """A commit for every few records."""
    commits = [row for row in rows if row.api == "OffsetCommit" and not row.error]
    if len(commits) < LEAST_COMMITS:
        return
    read = sum(row.last - row.first + 1 for row in rows if row.api == "Fetch" and row.first >= 0)
    took_ms = max(1, commits[-1].asked_ms - commits[0].asked_ms)
    figure = len(commits) / max(1, read)
    habit = Habit.COMMIT_PER_RECORD
    if figure >= THRESHOLDS[habit] and len(commits) * 1000 / took_ms >= LEAST_RATE:
        times = commits[0].asked_ms, commits[-1].asked_ms
        yield Manner(habit, client, figure, len(commits), *times)


def _single_records(client: str, rows: Sequence[ExchangeRow]) -> Iterator[Manner]:
    """Requests with a single record at a high rate."""
    sent = [row for row in rows if row.api == "Produce" and row.first >= 0]
    single = [row for row in sent if row.first == row.last and row.partitions == 1]
    if len(single) < LEAST_REQUESTS or len(single) < 0.9 * len(sent):
        return
    first, last = _densest([row.asked_ms for row in single], STORM_MS)
    figure = (last - first) * 1000 / STORM_MS
    habit = Habit.SINGLE_RECORD_REQUESTS
    if figure >= THRESHOLDS[habit]:
        times = single[first].asked_ms, single[last - 1].asked_ms
        yield Manner(habit, client, figure, len(single), *times)


def _stale_leaders(client: str, rows: Sequence[ExchangeRow]) -> Iterator[Manner]:
    """Requests for a partition that a broker refuses again and again, since it does not lead the
    partition, while the client asks no broker for the leader."""
    refused: dict[tuple[int, str, str, int], list[int]] = {}
    worst: dict[tuple[int, str, str, int], list[int]] = {}
    for row in rows:
        if row.api == "Metadata":
            refused.clear()
        key = (row.broker, row.api, row.topic or "", -1 if row.partition is None else row.partition)
        if row.error in _STALE:
            times = refused.setdefault(key, [])
            times.append(row.asked_ms)
            if len(times) >= len(worst.get(key, ())):
                worst[key] = list(times)
        else:
            refused.pop(key, None)
    for (_, _, topic, partition), times in sorted(worst.items()):
        if len(times) >= THRESHOLDS[Habit.STALE_LEADER]:
            yield Manner(
                Habit.STALE_LEADER, client, len(times), len(times), times[0], times[-1],
                topic, partition,
            )  # fmt: skip


def _stuck_fetches(client: str, rows: Sequence[ExchangeRow]) -> Iterator[Manner]:
    """Fetches that return the same records of a partition again and again."""
    same: dict[tuple[str, int], tuple[int, list[int]]] = {}
    worst: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        if row.api != "Fetch" or row.first < 0 or row.partition is None:
            continue
        key = (row.topic or "", row.partition)
        first, times = same.get(key, (-1, []))
        times = [*times, row.asked_ms] if first == row.first else [row.asked_ms]
        same[key] = (row.first, times)
        if len(times) > len(worst.get(key, ())):
            worst[key] = times
    for (topic, partition), times in sorted(worst.items()):
        if len(times) >= THRESHOLDS[Habit.STUCK_FETCH]:
            yield Manner(
                Habit.STUCK_FETCH, client, len(times), len(times), times[0], times[-1],
                topic, partition,
            )  # fmt: skip


def _weak_acks(
    client: str, rows: Sequence[ExchangeRow], min_insync: Mapping[str, int]
) -> Iterator[Manner]:
    """Records that are acked by one broker or none, in a topic that promises more."""
    by_topic: dict[str, list[ExchangeRow]] = {}
    for row in rows:
        if row.api == "Produce" and row.acks != ALL_ACKS and min_insync.get(row.topic or "", 1) > 1:
            by_topic.setdefault(row.topic or "", []).append(row)
    for topic, weak in sorted(by_topic.items()):
        (acks, _), *_ = Counter(row.acks for row in weak).most_common()
        times = weak[0].asked_ms, weak[-1].asked_ms
        yield Manner(Habit.WEAK_ACKS, client, acks, len(weak), *times, topic)


def _loops(groups: Iterable[GroupRow]) -> Iterator[Manner]:
    """Groups that rebalance without end."""
    recent: dict[str, deque[tuple[int, int]]] = {}
    worst: dict[str, tuple[int, int, int]] = {}
    for row in sorted(groups, key=lambda row: row.at_ms):
        epochs = recent.setdefault(row.group, deque())
        if not epochs or epochs[-1][1] != row.epoch:
            epochs.append((row.at_ms, row.epoch))
        while row.at_ms - epochs[0][0] > LOOP_MS:
            epochs.popleft()
        if len(epochs) > worst.get(row.group, (0, 0, 0))[0]:
            worst[row.group] = (len(epochs), epochs[0][0], epochs[-1][0])
    for group, (count, first_ms, last_ms) in sorted(worst.items()):
        if count >= THRESHOLDS[Habit.REBALANCE_LOOP]:
            yield Manner(Habit.REBALANCE_LOOP, group, count, count, first_ms, last_ms)
