"""Turns log files into a scenario file.

Owns: the order of the steps, the choice of the topology.  Never: opens a file. Kafka: no
counterpart.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, structs

from kcluster.config.files.problems import Problem
from kcluster.config.files.scalars import scalar
from kcluster.config.kafka.broker import BrokerConfig
from kcluster.config.topology.model import Topology
from kcluster.importing.described import DescribedCluster, LeftOut
from kcluster.importing.log_cluster import cluster_of_log
from kcluster.importing.log_lines import LogReading, in_order, read_log
from kcluster.importing.log_steps import BrokerTimes, KnownTopology, LogSteps, steps_of
from kcluster.importing.scenario_text import scenario_text
from kcluster.importing.topology_draft import draft_topology
from kcluster.importing.topology_text import topology_lines, topology_text


class NamedTopology(Struct, frozen=True):
    """A topology file, and the path by which the scenario will name it."""

    path: str
    topology: Topology


class LogScenario(Struct, frozen=True):
    """A scenario from logs."""

    text: str
    """The scenario file; empty if there are problems, or no steps."""
    found: LogSteps
    lines: int
    """The number of lines with a time."""
    unknown: int
    """The number of lines that were not understood."""
    problems: tuple[Problem, ...] = ()


def scenario_of_logs(
    logs: list[tuple[str, str]], given: NamedTopology | DescribedCluster | None
) -> LogScenario:
    """The scenario of log files, (name, text) each, on the given topology; without one, on a
    topology found in the logs."""
    reading = LogReading()
    for source, text in logs:
        read_log(source, text, reading)
    origin = ", ".join(source for source, _ in logs)
    if not reading.lines and not reading.problems:
        empty = "empty; a log of Kafka 4.x was expected"
        reading.problems += [Problem(source, 1, 1, "", empty) for source in reading.empty]
    if reading.problems:
        nothing = LogSteps((), ())
        return LogScenario("", nothing, reading.lines, 0, tuple(reading.problems))
    facts = in_order(reading)
    shown: tuple[LeftOut, ...] = ()
    if isinstance(given, NamedTopology):
        topology, head = given.topology, [f"topology: {scalar(given.path)}"]
    else:
        draft = draft_topology(cluster_of_log(facts, origin) if given is None else given)
        topology = Topology.parse(topology_text(draft)) if draft.brokers else Topology.of(1)
        head = ["topology:", *(f"  {line}" for line in topology_lines(draft))]
        shown = draft.left_out
    found = steps_of(facts, _known(topology), lambda broker: _times(topology, broker))
    found = structs.replace(found, left_out=(*shown, *found.left_out, *_unknown(reading)))
    text = ""
    if found.steps:
        text = scenario_text(found, head, list(topology.topics.values()), origin)
    return LogScenario(text, found, reading.lines, len(reading.unknown))


def _known(topology: Topology) -> KnownTopology:
    preferred: dict[tuple[str, int], int] = {}
    for name, topic in topology.topics.items():
        for number in range(topic.partitions):
            preferred[name, number] = topic.assignment[number][0] if topic.assignment else -1
    return KnownTopology(
        tuple(broker.id for broker in topology.brokers), preferred, tuple(topology.topics)
    )


def _times(topology: Topology, broker: int) -> BrokerTimes:
    ids = [spec.id for spec in topology.brokers]
    config = topology.broker_config(broker) if broker in ids else BrokerConfig()
    return BrokerTimes(
        config.broker_session_timeout_ms,
        config.broker_heartbeat_interval_ms,
        config.replica_lag_time_max_ms,
    )


def _unknown(reading: LogReading) -> list[LeftOut]:
    """The number of lines that were not understood, for each file, with the first such line."""
    counts = Counter(place.source for place in reading.unknown)
    first = {place.source: place for place in reversed(reading.unknown)}
    return [
        LeftOut(
            source,
            f"{count} {'line' if count == 1 else 'lines'} not understood, the first is line"
            f" {first[source].line}: {first[source].message[:100]}",
        )
        for source, count in counts.items()
    ]
