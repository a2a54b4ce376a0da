"""The fate of a producer's request, and the events between two of its attempts.

Owns: the links about requests, answers and errors of producers.  Never: guesses: each link is a
note, an answer or an error in a client's ledger.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.clients.ledger import ClientTransaction, Partition, SentRecord
from kcluster.events.partitions import LeaderChange
from kcluster.evidence.history import Link
from kcluster.evidence.lookups import Facts, between, condensed
from kcluster.invariants.observed import Append
from kcluster.protocol.errors import error_of

NO_ERROR: Final = "no error was reported"
MAX_ERRORS: Final = 4
"""The number of errors of a client that a chain shows; more errors would explain nothing."""


def request_of(append: Append) -> str:
    """The request that brought a batch, ` (request 7 of p0)`; empty if no request did."""
    if append.request is None:
        return ""
    return f" (request {append.request.correlation_id} of {append.request.client_id})"


def code_of(body: object, partition: Partition) -> int:
    """The error code of a Produce response for a partition, 0 for none."""
    if body is None:
        return 0
    for topic in getattr(body, "responses", ()):
        for answer in topic.partition_responses:
            if answer.index == partition[1]:
                code: int = answer.error_code
                return code
    return 0


def error_met(*of: SentRecord | ClientTransaction | None) -> str:
    """The last error, by Kafka's name, of the first of these sends and transactions that met
    one."""
    return next((each.error for each in of if each is not None and each.error), NO_ERROR)


def error_answered(facts: Facts, append: Append, partition: Partition) -> Iterator[Link]:
    """The error that the producer of an append received, if it received one."""
    answer = facts.answer(append.request)
    if answer is not None:
        code = code_of(answer[2].body, partition)
        if code:
            name = error_of(code).name
            yield Link(answer[0], f"its producer got {name}", error=name)


def errors_of(
    facts: Facts, client: str, from_ms: int, to_ms: int, partition: Partition | None = None
) -> Iterator[Link]:
    """A client's errors in that time, by its own ledger; equal errors once, with a count."""
    errors: dict[tuple[str, str], list[int]] = {}
    for error in facts.ledger.errors:
        if (
            error.client == client
            and from_ms <= error.at_ms <= to_ms
            and (partition is None or error.partition in (None, partition))
        ):
            errors.setdefault((error.api, error.error), []).append(error.at_ms)
    for (api, name), times in list(errors.items())[:MAX_ERRORS]:
        span = f" ({len(times)} times in {times[-1] - times[0]:,} ms)"
        again = span if len(times) > 1 else ""
        yield Link(times[0], f"{client} got {name} for its {api}{again}", error=name)


def meanwhile(facts: Facts, partition: Partition, from_ms: int, to_ms: int) -> Iterator[Link]:
    """Changes of leader in that time with their causes, and operations on the cluster."""
    changes = [note for note, _ in facts.of_partition(partition, LeaderChange)]
    for note in between(changes, from_ms, to_ms):
        yield from facts.with_causes(note)
    yield from condensed(between(facts.notes, from_ms, to_ms, facts.is_operation))
