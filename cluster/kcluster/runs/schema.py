"""JSON Schema of a run directory: of run.json, and of a line of each file of JSON lines.

Owns: `run_schema`.  Never: the types (record.py, cluster/kcluster/events).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kcluster.runs.directory import INFO
from kcluster.runs.record import FORMAT, TABLES, RunInfo


def run_schema() -> dict[str, Any]:
    """`files` has the schema of run.json and of a row of each table, by the file's name."""
    types: dict[str, type[msgspec.Struct]] = {INFO: RunInfo, **dict(TABLES.values())}
    (schemas, definitions) = msgspec.json.schema_components(
        types.values(), ref_template="#/$defs/{name}"
    )
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run directory of kcluster",
        "description": f"Format {FORMAT}. {INFO} is one JSON value; the other files have one"
        " JSON value on each line.",
        "files": dict(zip(types, schemas, strict=True)),
        "$defs": dict(sorted(definitions.items())),
    }
    # As JSON has it: defaults that are tuples become arrays.
    return dict(msgspec.json.decode(msgspec.json.encode(schema)))
