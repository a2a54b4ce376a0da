"""JSON Schema of scenario files and topologies, for editors.

Owns: the schema, from the kinds of fields (fields.py) and the topology's keys.  Never: validates
with it: reading does, with better messages.
"""

from __future__ import annotations

from typing import Any, Final

from kcluster.config.kafka.broker import PROFILES
from kcluster.config.topology.model import TOPOLOGY_KEYS
from kcluster.config.topology.network_checks import LINK_KEYS, NETWORK_KEYS
from kcluster.scenario.actions import ACTIONS
from kcluster.scenario.language.fields import Schema, fields_of, struct_schema
from kcluster.scenario.language.model import (
    Checks,
    ConsumerSpec,
    ProducerSpec,
    StepOptions,
    Trigger,
)
from kcluster.scenario.language.scenario import KEYS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Final[Schema] = {"type": ["string", "number", "boolean"]}
_CONFIGS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
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
            **{key: kind.schema() for key, kind in KEYS.items()},
            "topology": {"anyOf": [{"type": "string"}, _topology()]},
            "workload": _workload(),
            "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
            "checks": struct_schema(Checks),
        },
        "$defs": {"step": _step()},
    }


def _workload() -> Schema:
    parts = {}
    for key, struct in (("producers", ProducerSpec), ("consumers", ConsumerSpec)):
        one = struct_schema(struct)
        parts[key] = {"anyOf": [one, {"type": "array", "items": one}]}
    return {"type": "object", "additionalProperties": False, "properties": parts}


def _step() -> Schema:
    """An action with its trigger, or the action's verb alone."""
    shared = {
        field.key: field.kind.schema() for field in (*fields_of(Trigger), *fields_of(StepOptions))
    }
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
        id=_ID, port=_PORT, rack=_TEXT, advertised=_TEXT, config=_CONFIGS, kafka_version=_TEXT
    )
    topic = _closed(
        partitions={"type": "integer", "minimum": 1},
        replication_factor={"type": "integer", "minimum": 1},
        assignment={"type": "array", "items": {"type": "array", "items": _ID}},
        config=_CONFIGS,
    )
    topic["type"] = ["object", "null"]
    link = _closed(
        between={"type": "array", "items": _ID, "minItems": 2, "maxItems": 2}, latency_ms=_LATENCY
    )
    network = _closed(default_latency_ms=_LATENCY, links={"type": "array", "items": link})
    properties: dict[str, Any] = {
        "name": _TEXT,
        "host": {"type": "string"},
        "profile": {"enum": list(PROFILES)},
        "config": _CONFIGS,
        "brokers": {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "items": broker}]
        },
        "base_port": _PORT,
        "topics": {"type": "object", "additionalProperties": topic},
        "network": network,
        "kafka_version": _TEXT,
    }
    assert set(properties) == set(TOPOLOGY_KEYS), "a key was added to topology/model.py"
    assert set(network["properties"]) == set(NETWORK_KEYS)
    assert set(link["properties"]) == set(LINK_KEYS)
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["brokers"],
        "properties": properties,
    }


def _closed(**properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}
