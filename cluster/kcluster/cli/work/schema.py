"""The work of `kcluster schema`.

Owns: which schema it is.  Never: the schemas (scenario/language/schema.py, runs/schema.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import json

from kcluster.json_types import JsonObject
from kcluster.learn.exercises import ExerciseKeys
from kcluster.learn.lesson import LessonKeys
from kcluster.runs.schema import run_schema
from kcluster.scenario.language.schema import keys_schema, scenario_schema, topology_schema


def print_schema(kind: str) -> None:
    """Print the schema of a kind of file."""
    print(json.dumps(_schema(kind), indent=1))


def _schema(kind: str) -> JsonObject:
    if kind == "run":
        return run_schema()

    if kind == "lesson":
        return keys_schema(kind, LessonKeys)
    if kind == "exercise":
        return keys_schema(kind, ExerciseKeys)
    return topology_schema() if kind == "topology" else scenario_schema()
