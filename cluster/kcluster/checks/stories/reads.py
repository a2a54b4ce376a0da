"""A consumer's reads and errors, and the changes of its partition meanwhile.

Owns: the links about reads, and the story of a consumer that skipped or went back.  Never: guesses:
each link is a note, an answer, or an entry of a client's ledger.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.checks.anomalies.base import Anomaly, Explanation
from kcluster.checks.chain.facts import ErrorOfClient, RecordRead
from kcluster.checks.chain.links import Link, with_causes
from kcluster.clients.ledger import Partition, ReadRecord
from kcluster.events.partitions import LeaderChange, LogTruncated, PartitionEvent
from kcluster.evidence.lookups import Facts, between
from kcluster.protocol.apis import ApiKey

MAX_ERRORS: Final = 4
FETCHED_WITHIN_MS: Final = 5_000
"""The longest time between a broker's answer and the application's read of a record."""


def reads_story(facts: Facts, anomaly: Anomaly) -> Explanation:
    """The reads before and after the place, the consumer's errors between them, and the changes of
    the partition meanwhile."""
    reads = reads_of(facts, anomaly)
    before = next((read for read in reads if read.offset == anomaly.other), None)
    after = next((read for read in reads if read.at_ms == anomaly.at_ms), None)
    if before is None or after is None:
        return Explanation(())
    return Explanation(
        [
            *read_link(facts, before),
            *read_link(facts, after),
            *errors_between(facts, anomaly.client, before.at_ms, after.at_ms),
            *changes_between(facts, anomaly.partition, before.at_ms, after.at_ms),
        ]
    )


def reads_of(facts: Facts, anomaly: Anomaly) -> list[ReadRecord]:
    """Reads of the anomaly's partition by its consumer, or by all consumers if it names none."""
    return [
        read
        for read in facts.ledger.reads
        if read.partition == anomaly.partition and anomaly.client in ("", read.consumer)
    ]


def read_link(facts: Facts, read: ReadRecord, is_restart: bool = False) -> Iterator[Link]:
    """A read, with the broker that served it."""
    broker = -1
    for answer in facts.recorder.partition_answers(
        ApiKey.FETCH, lambda entry: read.at_ms - FETCHED_WITHIN_MS <= entry[0] <= read.at_ms
    ):
        if answer.partition == read.partition and answer.first <= read.offset <= answer.last:
            broker = answer.broker
    yield Link(read.at_ms, RecordRead(read.consumer, read.offset, broker, is_restart))


def errors_between(facts: Facts, client: str, from_ms: int, to_ms: int) -> Iterator[Link]:
    """The first errors of a client between two times, by its own ledger."""
    errors = [
        error
        for error in facts.ledger.errors
        if error.client == client and from_ms <= error.at_ms <= to_ms
    ]
    for error in errors[:MAX_ERRORS]:
        yield Link(error.at_ms, ErrorOfClient(error.error, client, error.api))


def changes_between(facts: Facts, partition: Partition, from_ms: int, to_ms: int) -> Iterator[Link]:
    """Changes of leader and truncations between two times, with their causes."""
    changes = facts.of_partition(partition, PartitionEvent)
    notes = [note for note, event in changes if isinstance(event, LeaderChange | LogTruncated)]
    for note in between(notes, from_ms, to_ms):
        yield from with_causes(facts, note)
