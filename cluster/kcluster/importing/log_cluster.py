"""A cluster described from its logs, for lack of a better description.

Owns: the choice of the topics with which the scenario starts.  Never: reads a line (log_lines.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcluster.importing.described import (
    TOPIC_SOURCE,
    DescribedBroker,
    DescribedCluster,
    DescribedConfig,
    DescribedPartition,
    DescribedTopic,
    LeftOut,
)
from kcluster.importing.log_lines import (
    BrokerSeen,
    IsrShrank,
    LogFact,
    LoggedRegistration,
    LoggedUnfencing,
    LogPlace,
    PartitionSeen,
    ReassignmentAccepted,
    SessionExpired,
    ShutdownStarted,
    TopicMade,
)


def cluster_of_log(facts: Sequence[tuple[LogPlace, LogFact]], origin: str) -> DescribedCluster:
    """The brokers that the log names, and the topics that existed before its first failure."""
    first_ms = min((place.at_ms for place, fact in facts if _is_failure(fact)), default=None)
    brokers: dict[int, str | None] = {}
    made: dict[str, TopicMade] = {}
    later: set[str] = set()
    rows: dict[str, dict[int, DescribedPartition]] = {}
    for place, fact in facts:
        match fact:
            case BrokerSeen(broker=broker, rack=rack):
                brokers[broker] = rack
            case SessionExpired() | ShutdownStarted() | LoggedRegistration() | LoggedUnfencing():
                brokers.setdefault(fact.broker, None)
            case TopicMade(name=name):
                made[name] = fact
                if first_ms is not None and place.at_ms > first_ms:
                    later.add(name)
            case PartitionSeen(topic=topic, number=number, replicas=replicas) if replicas:
                row = DescribedPartition(number, replicas[0], replicas, replicas)
                rows.setdefault(topic, {}).setdefault(number, row)
    topics = [
        DescribedTopic(
            name, tuple(found[number] for number in sorted(found)), _configs(made.get(name))
        )
        for name, found in rows.items()
        if name not in later and sorted(found) == list(range(len(found)))
    ]
    left_out = [LeftOut("configs of brokers", "the log does not show them; --topology would")]
    if not topics:
        left_out.append(LeftOut("topics", "the log does not show them; --topology would"))
    return DescribedCluster(
        origin=origin,
        brokers=tuple(DescribedBroker(broker, rack) for broker, rack in brokers.items()),
        topics=tuple(topics),
        topic_configs={topic.name: topic.configs for topic in topics},
        left_out=tuple(left_out),
    )


def _is_failure(fact: LogFact) -> bool:
    return isinstance(
        fact, SessionExpired | ShutdownStarted | IsrShrank | ReassignmentAccepted
    ) or (isinstance(fact, LoggedRegistration) and not fact.is_first)


def _configs(topic: TopicMade | None) -> tuple[DescribedConfig, ...]:
    if topic is None:
        return ()
    return tuple(DescribedConfig(name, value, TOPIC_SOURCE) for name, value in topic.config.items())
