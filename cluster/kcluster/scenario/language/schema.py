"""JSON Schema of scenario files and topologies, for editors.

Owns: the schema, from the kinds of fields (config/files/fields.py) and the topology's keys.
Never: validates with it: reading does, with better messages.
"""

from __future__ import annotations

from typing import Final

from kcluster.config.files.fields import Schema, struct_schema
from kcluster.config.kafka.broker import PROFILES
from kcluster.config.topology.keys import (
    BROKER,
    LINK,
    NETWORK,
    TOPIC,
    TOPOLOGY,
    TopologyKey,
    keys_of,
)
from kcluster.protocol.features import FEATURES
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
_TEXT: Final[Schema] = {"type": ["string", "number", "boolean"]}
_CONFIGS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_CONFIG_NAME: Final = "^[a-z]+([._][a-z]+)+$"
"""Of a topic, in either spelling."""
_ID: Final[Schema] = {"type": "integer", "minimum": 0}
_PORT: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 65_535}
_LATENCY: Final[Schema] = {"type": "number", "minimum": 0}


def topology_schema() -> Schema:
    """A topology file."""
    return {"$schema": DIALECT, "title": "kcluster topology", **_topology()}


def scenario_schema() -> Schema:
    """A scenario file."""
    return {
        "$schema": DIALECT,
        "title": "kcluster scenario",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **struct_schema(ScenarioKeys)["properties"],
            "topology": {"anyOf": [{"type": "string"}, _topology()]},
            "workload": _workload(),
            "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
            "checks": struct_schema(Checks),
        },
        "$defs": {"step": _step()},
    }


def step_schema() -> Schema:
    """A single action, as in a step."""
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
    """An action with its trigger, or the action's verb alone."""
    shared = struct_schema(Trigger)["properties"] | struct_schema(StepOptions)["properties"]
    actions = {verb: struct_schema(cls, cls.SHORT) for verb, cls in sorted(ACTIONS.items())}
    mapping: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {**shared, **actions},
        "oneOf": [{"required": [verb]} for verb in actions],
    }
    return {"anyOf": [mapping, {"enum": list(actions)}]}


def _topology() -> Schema:
    broker = _closed(
        BROKER,
        id=_ID,
        port=_PORT,
        rack=_TEXT,
        advertised=_TEXT,
        config=_CONFIGS,
        kafka_version=_TEXT,
    )
    topic = _closed(
        TOPIC,
        partitions={"type": "integer", "minimum": 1},
        replication_factor={"type": "integer", "minimum": 1},
        assignment={"type": "array", "items": {"type": "array", "items": _ID}},
        config=_CONFIGS,
    )
    topic["type"] = ["object", "null"]
    topic["patternProperties"] = {_CONFIG_NAME: _TEXT}
    link = _closed(
        LINK,
        between={"type": "array", "items": _ID, "minItems": 2, "maxItems": 2},
        latency_ms=_LATENCY,
    )
    network = _closed(NETWORK, default_latency_ms=_LATENCY, links={"type": "array", "items": link})
    topology = _closed(
        TOPOLOGY,
        name=_TEXT,
        host={"type": "string"},
        profile={"enum": list(PROFILES)},
        config=_CONFIGS,
        features=_features(),
        brokers={"anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "items": broker}]},
        base_port=_PORT,
        topics={"type": "object", "additionalProperties": topic},
        network=network,
        kafka_version=_TEXT,
        write_back=_TEXT,
    )
    return {**topology, "required": ["brokers"]}


def _features() -> Schema:
    """Levels by name, in either spelling."""
    properties: Schema = {}
    for name, feature in FEATURES.items():
        level = {"type": "integer", "minimum": feature.lowest, "maximum": feature.highest}
        properties |= {name: level, name.replace(".", "_"): level}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _closed(table: tuple[TopologyKey, ...], **properties: Schema) -> Schema:
    """A mapping with the keys of a table, and no others."""
    assert set(properties) == set(keys_of(table)), "a key was added to config/topology/keys.py"
    described = {line.key: {**properties[line.key], "description": line.words} for line in table}
    return {"type": "object", "additionalProperties": False, "properties": described}
