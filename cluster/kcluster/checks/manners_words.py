"""The words of clients' manners.

Owns: the sentence of each habit, with its figure, its threshold and what to do.  Never: finds one
(manners.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import to_builtins

from kcluster.checks.manners import LOOP_MS, Habit, Manner
from kcluster.events.words.base import counted
from kcluster.json_types import JsonObject

_ADVICE: Final = {
    Habit.PRODUCER_PER_REQUEST: "keep one producer for the life of the program",
    Habit.COMMIT_PER_RECORD: "commit after each poll, or let the consumer commit",
    Habit.METADATA_STORM: "wait between requests: retry.backoff.ms, metadata.max.age.ms",
    Habit.COORDINATOR_STORM: "wait between lookups of the coordinator: retry.backoff.ms",
    Habit.RECONNECT_STORM: "wait between connections: reconnect.backoff.ms doubles up to"
    " reconnect.backoff.max.ms; and keep clients, instead of making them anew",
    Habit.SINGLE_RECORD_REQUESTS: "let records gather: linger.ms, batch.size; send without waiting"
    " for each ack",
    Habit.REBALANCE_LOOP: "poll within max.poll.interval.ms, close consumers, or use static members"
    " (group.instance.id) or group.protocol=consumer",
    Habit.STALE_LEADER: "ask for metadata after NOT_LEADER_OR_FOLLOWER, as Kafka's clients do",
    Habit.STUCK_FETCH: "look for a record that the program cannot process, or for a seek in a loop",
    Habit.WEAK_ACKS: "use acks=all: with fewer acks min.insync.replicas protects nothing",
}


def manner_text(manner: Manner) -> str:
    """What a client did, in one sentence."""
    figure, count = manner.figure, manner.count
    place = f"{manner.topic}-{manner.partition}"
    match manner.habit:
        case Habit.PRODUCER_PER_REQUEST:
            return f"{counted(count, 'producer id')}, {figure:.1f} for each Produce request"
        case Habit.COMMIT_PER_RECORD:
            return f"{counted(count, 'commit')}, {figure:.1f} for each record"
        case Habit.METADATA_STORM:
            return f"{figure:,.0f} Metadata requests a second, {count:,} in all"
        case Habit.COORDINATOR_STORM:
            return f"{figure:,.0f} FindCoordinator requests a second, {count:,} in all"
        case Habit.RECONNECT_STORM:
            return f"{figure:,.0f} new connections a second, {count:,} in all"
        case Habit.SINGLE_RECORD_REQUESTS:
            return f"{figure:,.0f} Produce requests a second with one record each"
        case Habit.REBALANCE_LOOP:
            return f"{counted(count, 'generation')} within {LOOP_MS // 1000} s"
        case Habit.STALE_LEADER:
            return f"{counted(count, 'request')} to a broker that does not lead {place}"
        case Habit.STUCK_FETCH:
            return f"{counted(count, 'fetch')} of {place} returned the same records"
        case Habit.WEAK_ACKS:
            requests = counted(count, "request")
            return f"acks={figure:g} to {manner.topic}, with min.insync.replicas > 1: {requests}"


def threshold_text(manner: Manner) -> str:
    """The threshold of a habit, with its unit."""
    most = f"{manner.threshold:g}"
    match manner.habit:
        case Habit.PRODUCER_PER_REQUEST:
            return f"{most} per request"
        case Habit.COMMIT_PER_RECORD:
            return f"{most} per record"
        case Habit.REBALANCE_LOOP:
            return f"{most} generations"
        case Habit.STALE_LEADER | Habit.STUCK_FETCH:
            return f"{most} in a row"
        case Habit.WEAK_ACKS:
            return "acks=all"
    return f"{most} a second"


def manner_lines(manners: Iterable[Manner]) -> Iterator[str]:
    """Two lines for each finding."""
    for manner in manners:
        owner = "group" if manner.habit is Habit.REBALANCE_LOOP else "client"
        text = f"{manner_text(manner)} (from {threshold_text(manner)} on)"
        if manner.habit is Habit.WEAK_ACKS:
            text = manner_text(manner)
        yield f"{manner.habit}: {owner} {manner.client}: {text}"
        yield f"    {_ADVICE[manner.habit]}"


class BadMannersError(AssertionError):
    """The error for clients that must have good manners and do not; str() has two lines for each
    finding."""


def require_good_manners(manners: Sequence[Manner]) -> None:
    """Raise BadMannersError if there are any."""
    __tracebackhide__ = True
    if manners:
        raise BadMannersError("\n".join(manner_lines(manners)))


def manner_values(manner: Manner) -> JsonObject:
    """A finding as values for JSON."""
    return {
        **to_builtins(manner),
        "threshold": manner.threshold,
        "text": manner_text(manner),
        "advice": _ADVICE[manner.habit],
    }
