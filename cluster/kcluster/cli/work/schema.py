"""The work of `kcluster schema`, for files that users write.

Owns: the choice of the schema.  Never: makes a schema (scenario/language/schema.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.json_types import JsonObject
from kcluster.learn.exercises import ExerciseKeys
from kcluster.learn.lesson import LessonKeys
from kcluster.scenario.language.schema import keys_schema, scenario_schema, topology_schema


def schema_of(kind: str) -> JsonObject:
    """The schema of files of a kind."""
    if kind == "lesson":
        return keys_schema(kind, LessonKeys)
    if kind == "exercise":
        return keys_schema(kind, ExerciseKeys)
    return topology_schema() if kind == "topology" else scenario_schema()
