"""The scenario that `kcluster scenario new --topology FILE --lose BROKERS` writes: what would be
lost?

Owns: the file's text: the load on a topology's topics, the time at which brokers are lost, and for
how long.  Never: reads or writes a file.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.config.files.durations import in_seconds
from kcluster.config.files.scalars import scalar
from kcluster.config.topology.model import Topology

TOPICS: Final = 10
"""The most topics that get a load; the largest topics are chosen."""


def drill(topology: Topology, path: str, lost: str, file: str) -> str:
    """The text of a scenario on the topology in the file `path`, in which these brokers lose power
    under load, and come back.  `file`: the scenario's own path, for its head."""
    config = topology.broker_config(topology.brokers[0].id)
    # Long enough for the loss to be noticed, and for all ISRs to be complete at the end.
    session_ms, lag_ms = config.broker_session_timeout_ms, config.replica_lag_time_max_ms
    lost_at_ms = session_ms
    down_ms = 2 * session_ms + lag_ms
    duration_ms = lost_at_ms + down_ms + 3 * session_ms + lag_ms
    lines = [
        f"# What is lost with {lost}?",
        f"# Run it:    kcluster scenario run {file}",
        "# All keys:  kcluster scenario help",
        f"topology: {scalar(path)}",
        *_workload(topology),
        f"duration: {in_seconds(duration_ms)}",
        "steps:",
        f"  - {{at: {in_seconds(lost_at_ms)}, lose: {scalar(lost)},"
        f" for: {in_seconds(down_ms)}}}  # power; they come back",
        "checks:",
        "  verdict: valid  # no acked record is lost",
        "  no_offline: true  # each partition always has a leader",
    ]
    return "\n".join(lines) + "\n"


def _workload(topology: Topology) -> Iterator[str]:
    topics = sorted(topology.topics.values(), key=lambda topic: (-topic.partitions, topic.name))
    if not topics:
        return
    chosen = sorted(topic.name for topic in topics[:TOPICS])
    others = len(topics) - len(chosen)
    note = f"  # the {TOPICS} largest topics; {others} more have none" if others else ""
    yield f"workload:{note}"
    yield "  producers:"
    for name in chosen:
        yield f"    - {{topic: {scalar(name)}, name: {scalar(f'{name}-writer')}, rate: 10/s}}"
    yield "  consumers:"
    for name in chosen:
        reader = scalar(f"{name}-reader")
        yield f"    - {{topics: {scalar(name)}, name: {reader}, group: {reader}}}"
