"""The fate of a producer's request, and the events between two of its attempts.

Owns: the links about requests, answers and errors of producers.  Never: guesses: each link is a
note, an answer or an error in a client's ledger.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.checks.chain.facts import ErrorAnswered, ErrorOfClient, RequestName
from kcluster.checks.chain.links import Link, condensed, with_causes
from kcluster.clients.ledger import ClientTransaction, Partition, SentRecord
from kcluster.events.partitions import LeaderChange
from kcluster.evidence.causes import SendCause, Unexplained
from kcluster.evidence.lookups import Facts, between
from kcluster.invariants.observed import Append
from kcluster.protocol import messages as m
from kcluster.protocol.errors import error_of

MAX_ERRORS: Final = 4
"""The number of errors of a client that a chain shows; more errors would explain nothing."""


def request_of(append: Append) -> RequestName | None:
    """The request that brought an append, if one did."""
    request = append.request
    return None if request is None else RequestName(request.correlation_id, request.client_id)


def code_of(facts: Facts, body: m.ProduceResponse | None, partition: Partition) -> int:
    """The error code of a Produce response for a partition, 0 for none."""
    partitions = facts.recorder.partitions
    ids = {topic_id for (topic_id, _), each in partitions.items() if each.topic == partition[0]}
    for topic in () if body is None else body.responses:
        if topic.name == partition[0] or topic.topic_id in ids:
            for answer in topic.partition_responses:
                if answer.index == partition[1]:
                    return answer.error_code
    return 0


def error_met(*of: SentRecord | ClientTransaction | None) -> SendCause:
    """The last error, by Kafka's name, of the first of these sends and transactions that met
    one."""
    errors = (each.error for each in of if each is not None and each.error)
    return next(errors, Unexplained.NO_ERROR)


def error_answered(facts: Facts, append: Append, partition: Partition) -> Iterator[Link]:
    """The error that the producer of an append received, if it received one."""
    answer = facts.answer(append.request)
    if answer is not None:
        code = code_of(facts, answer[2].body, partition)
        if code:
            yield Link(answer[0], ErrorAnswered(error_of(code).name))


def errors_of(
    facts: Facts, client: str, from_ms: int, to_ms: int, partition: Partition | None = None
) -> Iterator[Link]:
    """A client's errors between two times, by its own ledger; equal errors once, with a count."""
    errors: dict[tuple[str, str], list[int]] = {}
    for error in facts.ledger.errors:
        if (
            error.client == client
            and from_ms <= error.at_ms <= to_ms
            and (partition is None or error.partition in (None, partition))
        ):
            errors.setdefault((error.api, error.error), []).append(error.at_ms)
    for (api, name), times in list(errors.items())[:MAX_ERRORS]:
        span_ms = times[-1] - times[0]
        yield Link(times[0], ErrorOfClient(name, client, api, len(times), span_ms))


def meanwhile(facts: Facts, partition: Partition, from_ms: int, to_ms: int) -> Iterator[Link]:
    """Changes of leader between two times, with their causes, and operations on the cluster."""
    changes = [note for note, _ in facts.of_partition(partition, LeaderChange)]
    for note in between(changes, from_ms, to_ms):
        yield from with_causes(facts, note)
    yield from condensed(between(facts.notes, from_ms, to_ms, facts.is_operation))
