"""The history of a broken invariant: the events of its partition and of the brokers that host it.

Owns: the chain of each violation.  Never: guesses: each link is a note.  Kafka: no counterpart;
what a person reads in the logs of all brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import asdict

from kcluster.checks.chain.links import Link, condensed, in_order, link, with_causes
from kcluster.contract import Event, Note
from kcluster.events.brokers import BrokerEvent
from kcluster.events.partitions import (
    BecameLeader,
    IsrChange,
    LeaderChange,
    LogTruncated,
    PartitionEvent,
    ReassignmentEvent,
)
from kcluster.evidence.lookups import Facts, between
from kcluster.invariants.violations import Violation

MAX_LINKS: Final = 16
"""The number of links of a chain: the last ones are kept."""
MAX_EXPLAINED: Final = 100
"""The number of violations with a chain: one broken rule may be reported after each step, and the
first reports explain it."""
_OF_PARTITION: Final[tuple[type[Event], ...]] = (
    LeaderChange,
    IsrChange,
    ReassignmentEvent,
    BecameLeader,
    LogTruncated,
)


class ExplainedViolation(Violation, frozen=True):
    """A violation and the events that led to it, oldest first."""

    chain: tuple[Link, ...] = ()


def explained_violations(
    facts: Facts, violations: Iterable[Violation]
) -> tuple[ExplainedViolation, ...]:
    """Each violation with its chain; only the first MAX_EXPLAINED have one."""
    return tuple(
        ExplainedViolation(
            **asdict(found), chain=tuple(_chain(facts, found)) if at < MAX_EXPLAINED else ()
        )
        for at, found in enumerate(violations)
    )


def _chain(facts: Facts, found: Violation) -> list[Link]:
    """The last events before a violation, each once: the partition's events with their causes,
    events of the brokers that hold a replica, and operations on these brokers or on links."""
    links = in_order((*_of_partition(facts, found), *_of_brokers(facts, found)))
    return [entry for entry in links if entry.at_ms <= found.at_ms][-MAX_LINKS:]


def _of_partition(facts: Facts, found: Violation) -> Iterator[Link]:
    if not found.topic:
        return
    partition = (found.topic, found.partition)
    notes = [
        note
        for note, event in facts.of_partition(partition, PartitionEvent)
        if note.at_ms <= found.at_ms and isinstance(event, _OF_PARTITION)
    ]
    for note in notes[-MAX_LINKS:]:
        yield from with_causes(facts, note)


def _of_brokers(facts: Facts, found: Violation) -> Iterator[Link]:
    brokers = {} if found.broker < 0 else {found.broker: None}
    partitions = facts.recorder.of_partition((found.topic, found.partition))
    for observed in partitions[-1:]:
        registration = facts.registration(observed, found.at_ms)
        if registration is not None:
            brokers |= dict.fromkeys(registration.replicas)
    for broker in brokers:
        yield from (link(note) for note, _ in facts.of_broker(broker, BrokerEvent))

    def is_of_links(note: Note) -> bool:
        return facts.is_operation(note) and not isinstance(note.event, BrokerEvent)

    yield from condensed(between(facts.notes, 0, found.at_ms, is_of_links)[-MAX_LINKS:])
