"""A scenario around a topology that has none: clients for each topic.

Owns: the workload that a search gives to a topology.  Never: reads a file, draws faults.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kcluster.config.files.problems import Problem
from kcluster.config.files.tree import Map, MapEntry, from_python
from kcluster.config.topology.model import Topology
from kcluster.json_types import JsonObject
from kcluster.scenario.language.scenario import Scenario, read_scenario

DURATION: Final = "20s"
_PATIENT: Final = {"request.timeout.ms": 3_000, "delivery.timeout.ms": 60_000}
_QUICK: Final = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 2_000}


def around_topology(node: Map, source: str, problems: Sequence[Problem]) -> Scenario:
    """The scenario of a topology's tree.  ScenarioError for a topology with problems; `problems`:
    those of its text."""
    if "topics" not in node.entries:
        node = Map({**node.entries, "topics": MapEntry(from_python({"orders": {"partitions": 2}}))})
    root = Map({"topology": MapEntry(node)})
    bare = read_scenario(root, source, {}, [*problems])
    workload = _workload(bare.topology)
    return read_scenario(root, source, {"workload": workload, "duration": DURATION}, [])


def _workload(topology: Topology) -> JsonObject:
    """A producer with one batch in flight, which loses and doubles nothing, and a group of two
    readers for each topic."""
    producers = [
        {"topic": topic, "name": f"to-{topic}", "rate": "20/s", "in_flight": 1, "config": _PATIENT}
        for topic in topology.topics
    ]
    consumers = [
        {"topics": topic, "name": f"of-{topic}", "group": topic, "members": 2, "config": _QUICK}
        for topic in topology.topics
    ]
    return {"producers": producers, "consumers": consumers}
