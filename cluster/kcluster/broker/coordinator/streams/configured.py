"""A topology matched with the topics of the cluster: its tasks, and the internal topics that it
needs.

Owns: the numbers of partitions of repartition and changelog topics, copartitioning, the missing
topics, and the status that explains why there are no tasks yet.  Never: creates a topic
(internal_topics.py), assigns a task (assignor.py).  Kafka: InternalTopicManager, RepartitionTopics,
CopartitionedTopicsEnforcer, ChangelogTopics, ConfiguredTopology.

A repartition topic has as many partitions as the subtopology that writes to it has tasks, unless
the application sets the number.  A changelog has one per task.  A subtopology has as many tasks as
its largest source topic has partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final, TypeVar

from msgspec import Struct

from kcluster.broker.coordinator.streams.topology import InternalTopic, StreamsTopology, Subtopology
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.java import hash_order, java_hash_code

T = TypeVar("T")

_NAMES_SHOWN: Final = 3

PartitionCounts = Mapping[str, int]
"""Topic -> number of partitions, for every existing topic of the cluster."""


class StreamsStatus(IntEnum):
    """A status that a member gets besides its tasks. Kafka:
    StreamsGroupHeartbeatResponse.Status."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class StatusDetail(Struct, frozen=True):
    """A status and, for the application's operator, its explanation."""

    status: StreamsStatus
    detail: str


class InvalidTopology(Struct, frozen=True):
    """A topology that no cluster could run: the heartbeat is refused."""

    error: ErrorCode
    message: str | None


class ConfiguredSubtopology(Struct, frozen=True):
    """A subtopology whose topics have their numbers of partitions."""

    subtopology: Subtopology
    task_count: int
    partitions: dict[str, int]
    """The number of partitions of each internal topic that the subtopology reads or restores
    from."""

    @property
    def is_stateful(self) -> bool:
        return bool(self.subtopology.state_changelog_topics)

    @property
    def internal_topics(self) -> Iterator[InternalTopic]:
        """The repartition topics that the subtopology reads, and its changelogs."""
        yield from self.subtopology.repartition_source_topics
        yield from self.subtopology.state_changelog_topics


class ConfiguredTopology(Struct, frozen=True):
    """A topology with the numbers of partitions that follow from the cluster's topics."""

    epoch: int
    subtopologies: dict[str, ConfiguredSubtopology] | None
    """The subtopologies by id, in order of ids; None if their numbers of partitions could not be
    decided."""
    missing_topics: dict[str, InternalTopic]
    """The internal topics to create, by name, with their numbers of partitions."""
    problem: StatusDetail | None
    """The reason why there are no tasks yet; None if the topology is ready."""

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class _Stop(Exception):
    """The exception that ends `configure`, which catches it."""

    def __init__(self, reason: StatusDetail | InvalidTopology) -> None:
        super().__init__(reason)
        self.reason = reason


def configure(
    topology: StreamsTopology, existing: PartitionCounts
) -> ConfiguredTopology | InvalidTopology:
    """Match a topology with the topics of a cluster."""
    subtopologies = _in_order(topology)
    try:
        groups = [list(_copartition_groups(each)) for each in subtopologies]
        _check_sources(subtopologies, existing)
        decided = _repartition_counts(subtopologies, existing)
        _enforce_copartitioning(subtopologies, groups, decided, existing)
        _add_changelogs(subtopologies, decided, existing)
        configured = {
            each.subtopology_id: _configured(each, decided, existing)
            for each in sorted(subtopologies, key=lambda each: each.subtopology_id)
        }
        missing = _missing_topics(configured, subtopologies, existing)
    except _Stop as stop:
        if isinstance(stop.reason, InvalidTopology):
            return stop.reason
        return ConfiguredTopology(topology.epoch, None, {}, stop.reason)
    problem = None
    if missing:
        names = _some(hash_order(missing, java_hash_code))
        detail = f"missing internal topics: {names}"
        problem = StatusDetail(StreamsStatus.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, configured, missing, problem)


def _in_order(topology: StreamsTopology) -> list[Subtopology]:
    """Subtopologies in Kafka's order of iteration, since an earlier subtopology may decide a number
    of partitions."""
    by_id = {each.subtopology_id: each for each in topology.subtopologies}
    return [by_id[id_] for id_ in hash_order(by_id, java_hash_code)]


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _server_error() -> _Stop:
    """The error without a message with which Kafka's coordinator answers requests that it does not
    expect."""
    return _Stop(InvalidTopology(ErrorCode.UNKNOWN_SERVER_ERROR, None))


def _invalid(message: str) -> _Stop:
    return _Stop(InvalidTopology(ErrorCode.STREAMS_INVALID_TOPOLOGY, message))


def _unready(status: StreamsStatus, detail: str) -> _Stop:
    return _Stop(StatusDetail(status, detail))


# ------------------------------------------------------------------------ source topics


def _check_sources(subtopologies: Iterable[Subtopology], existing: PartitionCounts) -> None:
    missing = {
        topic for each in subtopologies for topic in each.source_topics if topic not in existing
    }
    if missing:
        detail = f"missing source topics: {_some(sorted(missing))}"
        raise _unready(StreamsStatus.MISSING_SOURCE_TOPICS, detail)


# -------------------------------------------------------------------- repartition topics


def _repartition_counts(
    subtopologies: list[Subtopology], existing: PartitionCounts
) -> dict[str, int]:
    """The number of partitions of each repartition topic.  The number for one topic may decide the
    number of tasks of the subtopology that reads it, and so the number for a topic that this
    subtopology writes."""
    decided = {
        topic.name: topic.partitions
        for each in subtopologies
        for topic in each.repartition_source_topics
        if topic.partitions
    }
    is_undecided = True
    while is_undecided:
        is_undecided = has_progress = False
        for each in subtopologies:
            for sink in each.repartition_sink_topics:
                if sink in decided:
                    continue
                count = _widest_source(each, decided, existing)
                if count is None:
                    is_undecided = True
                else:
                    decided[sink] = count
                    has_progress = True
        if is_undecided and not has_progress:
            raise _invalid(
                "repartition topics whose number of partitions depends on itself: the topology may "
                "have a loop"
            )
    for each in subtopologies:
        for topic in each.repartition_source_topics:
            if topic.name not in decided:
                raise _invalid(
                    f"repartition topic {topic.name} has no number of partitions: no subtopology "
                    "writes to it"
                )
    return decided


def _widest_source(
    each: Subtopology, decided: PartitionCounts, existing: PartitionCounts
) -> int | None:
    counts = [
        decided[topic.name] for topic in each.repartition_source_topics if topic.name in decided
    ]
    counts.extend(existing[topic] for topic in each.source_topics)
    return max(counts, default=None)


# ----------------------------------------------------------------------- copartitioning


def _copartition_groups(each: Subtopology) -> Iterator[list[str]]:
    """The topics of each copartition group, by name."""
    for group in each.copartition_groups:
        sources = _at(each.source_topics, group.source_topics)
        repartition = _at(each.repartition_source_topics, group.repartition_source_topics)
        yield [*sources, *(topic.name for topic in repartition)]


def _at(items: tuple[T, ...], positions: tuple[int, ...]) -> list[T]:
    if not all(0 <= position < len(items) for position in positions):
        raise _server_error()
    return [items[position] for position in positions]


def _enforce_copartitioning(
    subtopologies: list[Subtopology],
    groups: list[list[list[str]]],
    decided: dict[str, int],
    existing: PartitionCounts,
) -> None:
    """Give the repartition topics of each copartition group one common number of partitions, or
    return the reason why that is impossible."""
    fixed: set[str] = set()
    flexible: set[str] = set()
    for each in subtopologies:
        for topic in each.repartition_source_topics:
            (fixed if topic.partitions else flexible).add(topic.name)
    for of_subtopology in groups:
        for group in of_subtopology:
            if group:
                _enforce(group, fixed, flexible, decided, existing)


def _enforce(
    group: list[str],
    fixed: set[str],
    flexible: set[str],
    decided: dict[str, int],
    existing: PartitionCounts,
) -> None:
    topics = hash_order(group, java_hash_code)
    counts = {topic: _count(topic, decided, existing) for topic in topics}
    repartition = {
        topic: count for topic, count in counts.items() if topic in fixed or topic in flexible
    }
    external = {topic: count for topic, count in counts.items() if topic not in repartition}
    if external:
        wanted = _same(list(external.values()), external)
    elif fixed:
        wanted = _same([_count(topic, decided, existing) for topic in sorted(fixed)], repartition)
    else:
        wanted = max(repartition.values())
    for topic, count in repartition.items():
        decided[topic] = wanted
        if topic in fixed and count != wanted:
            raise _unready(
                StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
                f"repartition topic {topic} has {count} partitions, its source topics {wanted}",
            )


def _same(counts: list[int], shown: dict[str, int]) -> int:
    if len(set(counts)) > 1:
        listed = ", ".join(f"{topic}={count}" for topic, count in sorted(shown.items()))
        raise _unready(
            StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
            f"copartitioned topics differ in partitions: {listed}",
        )
    return counts[0]


def _count(topic: str, decided: PartitionCounts, existing: PartitionCounts) -> int:
    """The number of partitions of a topic: its own if it exists, else the decided number."""
    count = existing.get(topic) or decided.get(topic)
    if count is None:
        raise _server_error()
    return count


# ---------------------------------------------------------------------- tasks and topics


def _add_changelogs(
    subtopologies: list[Subtopology], decided: dict[str, int], existing: PartitionCounts
) -> None:
    changelogs: dict[str, int] = {}
    for each in subtopologies:
        counts = [_count(topic, decided, existing) for topic in each.read_topics]
        if not counts:
            raise _invalid(f"subtopology {each.subtopology_id} reads no topic")
        changelogs.update((topic.name, max(counts)) for topic in each.state_changelog_topics)
    decided.update(changelogs)


def _configured(
    each: Subtopology, decided: PartitionCounts, existing: PartitionCounts
) -> ConfiguredSubtopology:
    partitions: dict[str, int] = {}
    for topics in (each.repartition_source_topics, each.state_changelog_topics):
        counts = {topic.name: topic.partitions or decided[topic.name] for topic in topics}
        if len(counts) != len(topics) or any(count < 1 for count in counts.values()):
            raise _server_error()
        partitions.update(counts)
    task_count = max(_count(topic, decided, existing) for topic in each.read_topics)
    return ConfiguredSubtopology(each, task_count, partitions)


def _missing_topics(
    configured: dict[str, ConfiguredSubtopology],
    subtopologies: list[Subtopology],
    existing: PartitionCounts,
) -> dict[str, InternalTopic]:
    needed: dict[str, InternalTopic] = {}
    for each in configured.values():
        for topic in each.internal_topics:
            needed[topic.name] = InternalTopic(
                topic.name,
                each.partitions[topic.name],
                topic.replication_factor,
                tuple(dict(topic.configs).items()),
            )
    required = [name for each in subtopologies for name in each.required_topics]
    for name in hash_order(required, java_hash_code):
        if name not in existing:
            continue
        expected = needed.pop(name, None)
        if expected is not None and expected.partitions != existing[name]:
            raise _unready(
                StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
                f"topic {name} has {existing[name]} partitions, the topology needs "
                f"{expected.partitions}",
            )
    return needed
