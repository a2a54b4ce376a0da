"""What comes with the code: the public names, the version, the container's topology.

Owns: checks of the files at the top level.  Never: builds a container.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import kcluster
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import BrokerSpec

ROOT = Path(__file__).parents[1]


def test_package__importing_it_imports_nothing_else_and_patches_nothing() -> None:
    script = (
        "import socket, sys, threading; before = socket.socket, threading.Thread.start; "
        "import kcluster; "
        "assert before == (socket.socket, threading.Thread.start); "
        "heavy = {'gevent', 'msgspec', 'yaml', 'networkx', 'click', 'rich'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, timeout=20)


def test_package__public_names_are_there_and_others_are_not() -> None:
    assert kcluster.Topology is Topology
    for name in kcluster.__all__:
        assert getattr(kcluster, name) is not None
        assert name in dir(kcluster)
    with pytest.raises(AttributeError, match="has no attribute 'nosuch'"):
        _ = kcluster.nosuch


def test_package__every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[\[<>=~! ]", entry, maxsplit=1)[0].lower() for entry in wanted}
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {line.split("==")[0].lower() for line in pins if "==" in line}
    assert names - {"kcluster-sim"} <= pinned


def test_package__the_containers_topology_is_the_teaching_one_made_reachable() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    expressions = re.findall(r"-e '([^']+)'", dockerfile)
    assert len(expressions) == 2
    command = ["sed", *(part for each in expressions for part in ("-e", each)), "topology.yaml"]
    made = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, timeout=20).stdout
    topology = Topology.parse(made)
    assert topology.host == "0.0.0.0"
    assert topology.brokers[1] == BrokerSpec(2, 9093, "b", "localhost:9093")
    assert topology.topics == Topology.load(ROOT / "topology.yaml").topics


def test_package__the_container_gets_what_its_build_copies_and_nothing_else() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
    copied = {name for names in copies for name in names.split()}
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert copied == {line[1:] for line in ignored if line.startswith("!")}
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_package__the_wheel_can_be_built_from_what_the_container_copies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    for folder in {path.split("/")[0] for path in included}:
        assert f"\nCOPY {folder} ./{folder}\n" in dockerfile
    assert [path for path in included if not (ROOT / path).exists()] == []
