"""`up --record FILE` and `save --scenario FILE`: the operations on a cluster, as a scenario file.

Owns: writing that file.  Never: decides on the steps (scenario/recorded.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from pathlib import Path

from kcluster.handle.cluster import Cluster
from kcluster.runs.whole_files import SHARED, replacing
from kcluster.scenario.recorded import scenario_of
from kcluster.scenario.started import recorded_clients


def write_scenario(cluster: Cluster, file: Path) -> None:
    """Write a scenario file of the operations so far.  If that is not possible, raise OSError, and
    leave the previous file."""
    recorder = cluster.recorder
    began_ms = recorder.began_ms
    name = file.name.partition(".")[0] or cluster.name
    clients = recorded_clients(cluster, began_ms)
    text = cluster.call(
        lambda: scenario_of(recorder.notes, cluster.topology, name, began_ms, clients)
    )
    with replacing(file, SHARED) as out:
        out.write(text.encode())
