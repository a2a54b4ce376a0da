"""The work of `kcluster import` without --log: the topology of a cluster.

Owns: the output about it.  Never: makes it (importing/topology_draft.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import shlex
import sys

from kcluster.cli.work.importing import (
    FAILED,
    Sources,
    check_output,
    cluster_of,
    fail,
    report,
    write,
)
from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.importing.topology_draft import draft_topology
from kcluster.importing.topology_text import topology_text


def import_topology(sources: Sources, output: str | None, force: bool) -> None:
    """Write the topology of a cluster."""
    check_output(output, force)
    cluster = cluster_of(sources)
    assert cluster is not None, "the verb has looked"
    draft = draft_topology(cluster)
    if not draft.brokers:
        fail(f"{draft.origin}: no brokers and no topics to import", FAILED)
    text = topology_text(draft)
    _check_topology(text, output or "topology.yaml")
    report(draft.left_out)
    partitions = sum(len(topic.assignment) for topic in draft.topics)
    counts = f"{len(draft.brokers)} brokers, {len(draft.topics)} topics, {partitions} partitions"
    write(text, output, f"{counts}; start it: kcluster up {output}")
    racks = [broker.rack for broker in draft.brokers if broker.rack]
    if racks and output is not None:
        lost = shlex.quote(f"rack {racks[0]}")
        words = f"kcluster scenario new --topology {shlex.quote(output)} --lose {lost}"
        print(f"lose a rack of it: {words}", file=sys.stderr)


def _check_topology(text: str, source: str) -> None:
    """Refuse a topology now that `kcluster up` would refuse later."""
    try:
        Topology.parse(text, source)
    except TopologyError as error:
        print(error, file=sys.stderr)
        fail("the imported topology cannot be run here, for the reasons above", FAILED)
