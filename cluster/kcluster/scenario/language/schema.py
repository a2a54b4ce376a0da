"""JSON Schema of scenario files and topologies, for editors.

Owns: the schema, from the kinds of fields (config/files/fields.py) and the topology's keys.
Never: validates with it: reading does, with better messages.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.config.files.fields import Schema, struct_schema
from kcluster.config.topology.keys import TopologyKeys
from kcluster.scenario.actions import ACTIONS
from kcluster.scenario.language.model import (
    Checks,
    ConsumerSpec,
    ProcessorSpec,
    ProducerSpec,
    StepOptions,
    Trigger,
)
from kcluster.scenario.language.scenario import ScenarioKeys

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def keys_schema(word: str, struct: type[Struct]) -> Schema:
    """The schema of a kind of file that is a mapping of a Struct's keys; `word`: the name of the
    kind."""
    return {"$schema": DIALECT, "title": f"kcluster {word}", **struct_schema(struct)}


def topology_schema() -> Schema:
    """The schema of a topology file."""
    return keys_schema("topology", TopologyKeys)


def scenario_schema() -> Schema:
    """The schema of a scenario file."""
    return {
        "$schema": DIALECT,
        "title": "kcluster scenario",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **struct_schema(ScenarioKeys)["properties"],
            "topology": {"anyOf": [{"type": "string"}, struct_schema(TopologyKeys)]},
            "workload": _workload(),
            "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
            "checks": struct_schema(Checks),
        },
        "$defs": {"step": _step()},
    }


def step_schema() -> Schema:
    """The schema of a single action, as in a step."""
    return _step()


def _workload() -> Schema:
    parts = {}
    kinds = (
        ("producers", ProducerSpec), ("consumers", ConsumerSpec), ("processors", ProcessorSpec),
    )  # fmt: skip
    for key, struct in kinds:
        one = struct_schema(struct)
        parts[key] = {"anyOf": [one, {"type": "array", "items": one}]}
    return {"type": "object", "additionalProperties": False, "properties": parts}


def _step() -> Schema:
    """The schema of an action with its trigger, or of the action's verb alone."""
    shared = struct_schema(Trigger)["properties"] | struct_schema(StepOptions)["properties"]
    actions = {verb: struct_schema(cls, cls.SHORT) for verb, cls in sorted(ACTIONS.items())}
    mapping: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {**shared, **actions},
        "oneOf": [{"required": [verb]} for verb in actions],
    }
    return {"anyOf": [mapping, {"enum": list(actions)}]}
