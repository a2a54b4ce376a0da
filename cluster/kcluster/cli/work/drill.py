"""The work of `kcluster scenario new --topology`: a drill, checked as a scenario.

Owns: the form of a problem with its options.  Never: makes its text (scenario/drill.py), writes a
file.  Kafka: no counterpart.
"""

from __future__ import annotations

import os
import shlex
import sys

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.operations.targets import targets
from kcluster.scenario.drill import drill
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario


def drill_text(file: str, topology: str, lost: str) -> str:
    """The text of a drill; its problems go to stderr, with exit code 2."""
    try:
        targets(lost)
    except ValueError as error:
        fail(CommandError(f"--lose {shlex.quote(lost)}: {error}", 2))
    try:
        loaded = Topology.load(topology)
    except TopologyError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    path = os.path.relpath(topology, os.path.dirname(file) or ".")
    text = drill(loaded, path, lost, shlex.quote(file))
    try:
        Scenario.parse(text, file)
    except ScenarioError as error:
        fail(CommandError(f"--lose {shlex.quote(lost)}: {error.problems[0].text}", 2))
    return text
