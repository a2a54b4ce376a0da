"""A whole scenario as a checked value, from a file or a text.

Owns: Scenario, the keys of a scenario, reading a scenario's file.  Every problem is
reported with its place and the nearest name.  Never: runs anything; steps and workload are
loader.py's.
Kafka: no counterpart; Trogdor's task specs come nearest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Struct, structs

from kcluster.config.files.fields import (
    Flag,
    ListOf,
    OneOf,
    StoryText,
    StructOf,
    Whole,
    duration,
    fields_of,
    read_struct,
    text,
)
from kcluster.config.files.problems import Problem, TopologyError
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.source import FileKind
from kcluster.config.files.tree import Map, Node, Scalar, from_python
from kcluster.config.topology.model import Topology, check_topology
from kcluster.scenario.language.certified import Certified
from kcluster.scenario.language.loader import Claims, ScenarioError, read_steps, read_workload
from kcluster.scenario.language.model import Checks, Step, WorkloadSpec
from kcluster.scenario.language.naming import check_names

DEFAULT_DURATION_MS: Final = 10_000
DEFAULT_SEED: Final = 1


class ScenarioKeys(Struct, frozen=True):
    """Keys of a scenario besides topology, workload, steps and checks."""

    name: Annotated[str, text(), "The scenario's name; without it, the file's."] = ""
    story: Annotated[str, StoryText(), "What happens, in a few sentences."] = ""
    seed: Annotated[
        int | None, Whole(0, 2**63 - 1), "Draws what the file leaves open; without it, 1."
    ] = None
    duration_ms: Annotated[
        int | None,
        duration(1),
        "How long it runs; without it, 5s longer than the times of the steps, and at least 10s.",
    ] = None
    heal: Annotated[
        bool, Flag(), "Repair everything that is broken at the end, before the verdict."
    ] = True
    clocks: Annotated[
        tuple[str, ...],
        ListOf(OneOf("clock", ("virtual", "live")), "clocks"),
        "The clocks on which it is meaningful; without it, both.",
    ] = ()
    may_edit: Annotated[
        tuple[str, ...],
        ListOf(text(), "paths"),
        "In an exercise: what a student may change, such as topology.topics.orders.config, with"
        " all that is below it.",
    ] = ()
    certified: Annotated[
        Certified | None,
        StructOf(Certified, "key of certified"),
        "What Apache Kafka was seen to do with the file, which `make certify` writes.",
    ] = None


KEYS: Final = {field.key: field for field in fields_of(ScenarioKeys)}
_ALL_KEYS: Final = (*KEYS, "topology", "workload", "steps", "checks")


class Scenario(Struct, frozen=True):
    """A scenario, from `load` or `parse`, which raise ScenarioError."""

    name: str
    story: str
    topology: Topology
    workload: WorkloadSpec = WorkloadSpec()
    steps: tuple[Step, ...] = ()
    checks: Checks = Checks()
    duration_ms: int = DEFAULT_DURATION_MS
    heal: bool = True
    """Undo every fault before the verdict: heal links, start brokers, remove rules."""
    seed: int | None = None
    clocks: tuple[str, ...] = ("virtual", "live")
    """The clocks on which the scenario may run."""
    may_edit: tuple[str, ...] = ()
    """The paths that a student may change in an exercise; a run does not use them."""
    certified: Certified | None = None
    """What Apache Kafka was seen to do with the file; a run does not use it."""
    source: str = ""
    text: str = ""
    """The file's text, for run directories."""

    def first_seed(self, given: int | None = None) -> int:
        """The seed of the first run: the given one, else the file's, else 1."""
        if given is not None:
            return given
        return DEFAULT_SEED if self.seed is None else self.seed

    @classmethod
    def load(cls, path: str | os.PathLike[str], **overrides: object) -> Scenario:
        """Read a YAML file."""
        return _scenario(*SCENARIO_FILE.load(path), os.fspath(path), overrides)

    @classmethod
    def parse(cls, yaml_text: str | bytes, source: str = "scenario.yaml") -> Scenario:
        """Read YAML text; `source` stands for the file in messages."""
        return _scenario(*SCENARIO_FILE.parse(yaml_text, source), source, {})


SCENARIO_FILE: Final = FileKind("scenario", ScenarioError)


def _scenario(
    text: str, node: Node, problems: list[Problem], source: str, overrides: Mapping[str, object]
) -> Scenario:
    """The scenario of a file; `overrides` replace top-level keys."""
    return structs.replace(read_scenario(node, source, overrides, problems), text=text)


def read_scenario(
    root: Node, source: str, overrides: Mapping[str, object], problems: list[Problem]
) -> Scenario:
    """The scenario of a tree; `problems`: the problems found so far."""
    reading = TreeReader(source)
    reading.problems += problems
    if not isinstance(root, Map):
        text_ = f"{kind(root)}; a scenario is a mapping with keys like story, topology, steps"
        reading.wrong(root, "", text_)
        raise ScenarioError(reading.problems)
    if "brokers" in root.entries and "topology" not in root.entries:
        text_ = f"a topology, not a scenario; start a cluster with it: kcluster up {source}"
        raise ScenarioError([Problem(source, 0, 0, "", text_)])
    top = reading.entries(root, "", _ALL_KEYS, "key of a scenario")
    top |= {key: from_python(value) for key, value in overrides.items() if value is not None}
    values = {
        key: field.kind.read(reading, top[key], key) for key, field in KEYS.items() if key in top
    }
    topology = _topology(reading, top.get("topology"), root, source)
    claims = Claims()
    workload = read_workload(reading, top.get("workload"), claims)
    steps = read_steps(reading, top.get("steps"), claims)
    checks = Checks()
    if "checks" in top:
        checks = read_struct(reading, top["checks"], "checks", Checks, "check") or checks
    if topology is not None:
        check_names(reading, top, topology, workload, steps, checks, claims)
    if reading.problems or topology is None:
        raise ScenarioError(reading.problems)
    name = values.get("name") or os.path.basename(source).rpartition(".")[0] or "scenario"
    default = Scenario(name, values.get("story") or "", topology)
    return structs.replace(
        default,
        workload=workload,
        steps=steps,
        checks=checks,
        source=source,
        duration_ms=values.get("duration") or _duration(workload, steps),
        heal=values.get("heal", True) is not False,
        seed=values.get("seed"),
        clocks=values.get("clocks") or default.clocks,
        may_edit=values.get("may_edit") or (),
        certified=values.get("certified"),
    )


def _duration(workload: WorkloadSpec, steps: tuple[Step, ...]) -> int:
    """The default duration: the sum of the steps' times, plus some time after them."""
    at_ms = 0
    for step in steps:
        trigger, undo = step.trigger, step.options.for_
        at_ms = max(at_ms, trigger.at.high_ms if trigger.at else 0)
        at_ms += trigger.after.high_ms if trigger.after else 0
        at_ms += undo.high_ms if undo else 0
    return max(DEFAULT_DURATION_MS, at_ms + DEFAULT_DURATION_MS // 2)


# ----------------------------------------------------------------------------------- topology


def _topology(reading: TreeReader, node: Node | None, root: Map, source: str) -> Topology | None:
    if node is None:
        return Topology.of(3) if "topology" not in root.entries else None
    if isinstance(node, Scalar) and node.text is not None:
        path = os.path.join(os.path.dirname(source), node.text)
        try:
            return Topology.load(path)
        except TopologyError as error:
            reading.problems += error.problems
            return None
    topology, problems = check_topology(node, source)
    reading.problems += [structs.replace(p, path=join_path("topology", p.path)) for p in problems]
    return topology


def join_path(head: str, tail: str) -> str:
    """The path of a key within a part: `topology` and `brokers[0]` -> `topology.brokers[0]`."""
    return f"{head}.{tail}" if tail else head
