"""JSON Schema of a run directory: of run.json, and of the lines of each JSON lines file.

Owns: `run_schema`.  Never: the types (record.py, cluster/kcluster/events).
Kafka: no counterpart.
"""

from __future__ import annotations

import msgspec

from kcluster.json_types import JsonObject
from kcluster.runs.directory import INFO
from kcluster.runs.record import FORMAT, TABLES, RunInfo


def run_schema() -> JsonObject:
    """The JSON Schema of run.json and of the rows of each table: `files` has one per file name."""
    types: dict[str, type[msgspec.Struct]] = {INFO: RunInfo}
    types |= {table.file: table.row for table in TABLES.values()}
    (schemas, definitions) = msgspec.json.schema_components(
        types.values(), ref_template="#/$defs/{name}"
    )
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run directory of kcluster",
        "description": f"Format {FORMAT}. {INFO} is one JSON value; the other files have one"
        " JSON value per line.",
        "files": dict(zip(types, schemas, strict=True)),
        "$defs": dict(sorted(definitions.items())),
    }
    # Through JSON, so that defaults that are tuples become arrays.
    return dict(msgspec.json.decode(msgspec.json.encode(schema)))
