"""The words for problems of processing: the one place where these facts become sentences.

Owns: one sentence per problem.  Never: decides anything (processing.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

from kcluster.checks.processing import (
    AnyProblem,
    LastRequest,
    Missed,
    OutOfOrder,
    Processed,
    Repeated,
)
from kcluster.events.clients import GroupMemberExpired
from kcluster.events.words import departure_text, member_name
from kcluster.evidence.group_history import Commit, Departed, Generation

MAX_SHOWN: Final = 20
"""The number of problems that a terminal shows; a run directory has all."""


def kind_text(problem: AnyProblem) -> str:
    """The words for a kind of problem: `missed`, `processed twice`, `out of order`."""
    match problem:
        case Missed():
            return "missed"
        case Repeated(times=times):
            return "processed twice" if times == 2 else f"processed {times} times"
        case OutOfOrder():
            return "out of order"


def shown(lines: list[str]) -> list[str]:
    """The first lines, and a line with the number of the remaining ones."""
    more = len(lines) - MAX_SHOWN
    return [*lines[:MAX_SHOWN], *([f"... and {more:,} more problems"] if more > 0 else [])]


def problem_text(problem: AnyProblem, began_ms: int) -> str:
    """The sentence about a problem and its cause; times count from `began_ms`."""
    match problem:
        case Missed():
            cause = _missed(problem, began_ms)
        case Repeated():
            cause = _repeated(problem, began_ms)
        case OutOfOrder():
            cause = _out_of_order(problem, began_ms)
    topic, number = problem.partition
    return f"{kind_text(problem)}: {topic}-{number}, {_offsets(problem)}: {cause}"


def _missed(problem: Missed, began_ms: int) -> str:
    commit = problem.commit
    if commit is not None:
        left = "; its member is still in the group"
        if commit.generation < 0:
            left = ""
        elif problem.departed is not None:
            after_ms = problem.departed.at_ms - commit.at_ms
            before = f"{after_ms} ms before" if after_ms else "just before"
            left = f", {before} {_departed(problem.departed)}"
        return (
            f"{_by(commit)} committed offset {commit.offset} at"
            f" {_at(commit.at_ms, began_ms)}{left}; nobody processed {_it(problem)}"
        )
    read, refused = problem.read, problem.refused
    if read is None:
        first = problem.first_read
        last = _last_request(problem.last_request, began_ms)
        if first is None:
            return f"nobody read the partition{last}"
        if first.offset > problem.last:
            at = _at(first.at_ms, began_ms)
            return (
                f"nobody read {_it(problem)}: {first.consumer} began at offset {first.offset}, {at}"
            )
        return f"nobody has read {_it(problem)} yet{last}"
    text = f"{read.consumer} received {_it(problem)} at {_at(read.at_ms, began_ms)}"
    text = f"{text} and nobody processed {_it(problem)}"
    if refused is None:
        return f"{text}; no commit covers {_it(problem)}"
    return f"{text}; {_refused(refused, began_ms)}"


def _last_request(last: LastRequest | None, began_ms: int) -> str:
    """The clause about a client's last request: `; client billing sent no Fetch since +2372 ms; its
    last request, Heartbeat, was over at +5195 ms`."""
    if last is None:
        return ""
    at = _at(last.at_ms, began_ms)
    if last.fetched_ms == last.at_ms:
        return f"; the last request of a reader was a Fetch of client {last.client}, at {at}"
    since = f" since {_at(last.fetched_ms, began_ms)}" if last.fetched_ms >= 0 else ""
    request = f"its last request, {last.api}, was over at {at}"
    return f"; client {last.client} sent no Fetch{since}; {request}"


def _repeated(problem: Repeated, began_ms: int) -> str:
    before, again = problem.before, problem.again
    times = f"{_processed(before, began_ms)}, again at {_when(again, began_ms)}"
    between = ""
    if problem.departed is not None:
        between += f"; {_departed(problem.departed)} at {_at(problem.departed.at_ms, began_ms)}"
    if problem.generation is not None:
        between += f"; {_generation(problem.generation, began_ms)}"
    commit = problem.commit
    if commit is not None and problem.was_committed:
        committed = f"offset {commit.offset} had been committed at {_at(commit.at_ms, began_ms)}"
        return f"{times}; {committed}, so the position was set back or the record handed out again"
    if problem.refused is not None:
        return f"{times}; {_refused(problem.refused, began_ms)}{between}"
    wanted = problem.first + 1
    if commit is None:
        return f"{times}; no commit of offset {wanted} or later arrived{between}"
    late = f"was committed only at {_at(commit.at_ms, began_ms)}"
    return f"{times}; offset {wanted} or later {late}{between}"


def _out_of_order(problem: OutOfOrder, began_ms: int) -> str:
    after, own = problem.after, problem.own
    text = f"{_processed(own, began_ms)}, after offset {after.offset} at {_when(after, began_ms)}"
    if problem.generation is None:
        return f"{text}; no rebalance was in between"
    return f"{text}; {_generation(problem.generation, began_ms)} in between"


def _offsets(problem: AnyProblem) -> str:
    if problem.count == 1:
        return f"offset {problem.first}"
    return f"offsets {problem.first} to {problem.last} ({problem.count} records)"


def _it(problem: AnyProblem) -> str:
    return "it" if problem.count == 1 else "them"


def _processed(processed: Processed, began_ms: int) -> str:
    return f"processed at {_when(processed, began_ms)}"


def _when(processed: Processed, began_ms: int) -> str:
    by = f" by {processed.worker}" if processed.worker else ""
    return f"{_at(processed.at_ms, began_ms)}{by}"


def _by(commit: Commit) -> str:
    if commit.generation < 0:
        return f"{commit.client} (group {commit.group}, without a generation)"
    return f"generation {commit.generation} of group {commit.group} ({member_name(commit.member)})"


def _refused(commit: Commit, began_ms: int) -> str:
    at = _at(commit.at_ms, began_ms)
    return f"the commit of offset {commit.offset} at {at} was refused with {commit.error}"


def _departed(departed: Departed) -> str:
    event = departed.event
    name = f"member {member_name(event.member)}"
    if isinstance(event, GroupMemberExpired):
        return f"{name} expired (no heartbeat for {event.session_timeout_ms} ms)"
    return f"{name} {departure_text(event)}"


def _generation(generation: Generation, began_ms: int) -> str:
    return f"generation {generation.event.generation} began at {_at(generation.at_ms, began_ms)}"


def _at(at_ms: int, began_ms: int) -> str:
    return f"{at_ms - began_ms:+} ms"
