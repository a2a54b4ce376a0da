"""The work of `kcluster import --log`: the scenario of a cluster's logs.

Owns: the output about it.  Never: makes it (importing/log_scenario.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from kcluster.cli.work.importing import (
    FAILED,
    INVALID,
    Sources,
    check_output,
    cluster_of,
    fail,
    refuse,
    report,
    text_of,
    write,
)
from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.importing.log_scenario import NamedTopology, scenario_of_logs
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario


def import_logs(
    logs: Sequence[str], topology: str | None, sources: Sources, output: str | None, force: bool
) -> None:
    """Write the scenario of these logs."""
    check_output(output, force)
    cluster = cluster_of(sources)
    given = cluster if topology is None else _named_topology(topology, output)
    made = scenario_of_logs([(path, text_of(path)) for path in logs], given)
    if made.problems:
        refuse(made.problems)
    report(made.found.left_out)
    if not made.text:
        fail(f"{made.lines} lines read, none of a failure: no scenario to make", FAILED)
    _check_scenario(made.text, output or "scenario.yaml")
    counts = f"{len(made.found.steps)} steps from {made.lines} lines, {made.unknown} not understood"
    write(made.text, output, f"{counts}; play it: kcluster scenario run {output}")


def _named_topology(path: str, output: str | None) -> NamedTopology:
    """The topology file's name, as seen from the scenario's directory."""
    try:
        topology = Topology.load(path)
    except TopologyError as error:
        print(error, file=sys.stderr)
        sys.exit(INVALID)
    return NamedTopology(os.path.relpath(path, os.path.dirname(output or "") or "."), topology)


def _check_scenario(text: str, source: str) -> None:
    """Refuse a scenario now that `kcluster scenario run` would refuse later."""
    try:
        Scenario.parse(text, source)
    except ScenarioError as error:
        print(error, file=sys.stderr)
        fail("the imported scenario cannot be played here, for the reasons above", FAILED)
