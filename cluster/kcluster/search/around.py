"""The scenarios around a topology that has no clients: each has other ones, which a seed draws.

Owns: the workloads that a search gives to a topology.  Never: reads a file, draws faults.
Kafka: no counterpart.

No workload loses or doubles a record by its own settings: producers wait for all in-sync replicas
with one request under way, or write in transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

from kcluster.config.files.problems import Problem
from kcluster.config.files.tree import Map, MapEntry, Scalar, from_python
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import TopicSpec
from kcluster.json_types import JsonObject
from kcluster.scenario.language.scenario import Scenario, read_scenario

DURATION: Final = "12s"
WORKLOADS: Final = 8
"""The number of workloads, the plain one included."""
COMPACTED_KEYS: Final = 20
PROCESSOR_SHARE: Final = 0.5
_PATIENT: Final = {"request.timeout.ms": 3_000, "delivery.timeout.ms": 60_000}
_QUICK: Final = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 2_000}
_ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
_COMPRESSIONS: Final = ("none", "none", "gzip", "lz4", "snappy", "zstd")


def around_topology(
    node: Map, source: str, problems: Sequence[Problem], seed: int
) -> list[Scenario]:
    """The scenarios of a topology's tree.  ScenarioError for a topology with problems; `problems`:
    those of its text."""
    if _has_no_topics(node):
        node = Map({**node.entries, "topics": MapEntry(from_python({"orders": {"partitions": 2}}))})
    root = Map({"topology": MapEntry(node)})
    bare = read_scenario(root, source, {}, [*problems])
    drawn = (_drawn(bare.topology, Random(f"{seed}/workload/{n}")) for n in range(1, WORKLOADS))
    return [
        read_scenario(root, source, {"workload": workload, "duration": DURATION}, [])
        for workload in (_plain(bare.topology), *drawn)
    ]


def _has_no_topics(node: Map) -> bool:
    topics = node.entries.get("topics")
    match topics and topics.value:
        case None | Scalar(text=None):
            return True
        case Map() as named:
            return not named.entries
    return False


def _plain(topology: Topology) -> JsonObject:
    """A producer with one batch in flight and a group of two readers for each topic."""
    producers = [
        {
            "topic": name,
            "name": f"to-{name}",
            "rate": "20/s",
            "keys": COMPACTED_KEYS if _is_compacted(topic) else 0,
            "in_flight": 1,
            "config": _PATIENT,
        }
        for name, topic in topology.topics.items()
    ]
    consumers = [
        {"topics": topic, "name": f"of-{topic}", "group": topic, "members": 2, "config": _QUICK}
        for topic in topology.topics
    ]
    return {"producers": producers, "consumers": consumers}


def _drawn(topology: Topology, rng: Random) -> JsonObject:
    """Producers and readers of other kinds for each topic, and processors between two topics."""
    workload: JsonObject = {"producers": [], "consumers": []}
    for name, topic in topology.topics.items():
        workload["producers"] += [*_producers(name, _is_compacted(topic), rng)]
        workload["consumers"] += [*_readers(name, rng)]
    sinks = [name for name, topic in topology.topics.items() if not _is_compacted(topic)]
    if len(topology.topics) > 1 and sinks and rng.random() < PROCESSOR_SHARE:
        sink = rng.choice(sinks)
        source = rng.choice([name for name in topology.topics if name != sink])
        workload["processors"] = [
            {
                "topic": source,
                "to": sink,
                "name": "copier",
                "group": "copiers",
                "members": rng.choice((1, 2)),
                "abort": rng.choice(("0%", "20%")),
                "consumer_config": _QUICK,
            }
        ]
    return workload


def _is_compacted(topic: TopicSpec) -> bool:
    return "compact" in str(topic.config.get("cleanup.policy"))


def _producers(topic: str, is_compacted: bool, rng: Random) -> Iterator[JsonObject]:
    for number in range(1, rng.choice((1, 1, 2)) + 1):
        drawn: JsonObject = {
            "topic": topic,
            "name": f"to-{topic}-{number}",
            "rate": f"{rng.choice((5, 10, 20))}/s",
            "config": {**_PATIENT, "compression.type": rng.choice(_COMPRESSIONS)},
        }
        if rng.random() < 0.4:
            drawn["transactions"] = {
                "every": rng.choice((1, 4, 20)),
                "abort": rng.choice(("0%", "30%")),
                "version": rng.choice(("1", "2")),
            }
        else:
            drawn["in_flight"] = 1
        if is_compacted or rng.random() < 0.5:
            drawn["keys"] = rng.choice((3, 50))
            drawn["tombstones"] = rng.choice(("0%", "20%"))
        if rng.random() < 0.5:
            drawn["linger"] = f"{rng.choice((5, 50, 200))}ms"
        yield drawn


def _readers(topic: str, rng: Random) -> Iterator[JsonObject]:
    for number in range(1, rng.choice((1, 2)) + 1):
        yield rng.choice(_KINDS)(topic, f"of-{topic}-{number}", rng)


def _members(topic: str, name: str, rng: Random) -> JsonObject:
    """A group of one of the protocols; some groups come late, or leave."""
    drawn: JsonObject = {
        "topics": topic,
        "name": name,
        "group": name,
        "members": rng.choice((1, 2, 3)),
        "isolation": rng.choice(("read_committed", "read_uncommitted")),
        "commit": rng.choice(("auto", "after_poll")),
    }
    if rng.random() < 0.5:
        drawn["group_protocol"] = "consumer"
    else:
        drawn["config"] = {**_QUICK, "partition.assignment.strategy": rng.choice(_ASSIGNORS)}
    if rng.random() < 0.3:
        drawn["start"] = f"{rng.choice((2, 5))}s"
    if rng.random() < 0.2:
        drawn["stop"] = f"{rng.choice((6, 9))}s"
    return drawn


def _sharers(topic: str, name: str, rng: Random) -> JsonObject:
    """A share group."""
    return {
        "topics": topic,
        "name": name,
        "group": name,
        "share": True,
        "members": rng.choice((1, 2, 3)),
        "release": rng.choice(("0%", "20%")),
    }


_Kind = Callable[[str, str, Random], JsonObject]
_KINDS: Final[Sequence[_Kind]] = (_members, _members, _sharers)
