"""`kcluster schema KIND`: the JSON Schema of files of a kind, for editors and readers.

Owns: the verb.  Never: the schemas (scenario/language/schema.py, runs/schema.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import json

import click

from kcluster.cli.click_tools import Section, section
from kcluster.json_types import JsonObject


@section(Section.TOOLS)
@click.command("schema")
@click.argument("kind", type=click.Choice(["topology", "scenario", "lesson", "exercise", "run"]))
def command(kind: str) -> None:
    """Print the JSON Schema of a kind of file, or of the files of a run directory.

    The same schemas are in docs/schema/.
    """
    print(json.dumps(_schema(kind), indent=1))


def _schema(kind: str) -> JsonObject:
    if kind == "run":
        from kcluster.runs.schema import run_schema

        return run_schema()
    from kcluster.scenario.language.schema import keys_schema, scenario_schema, topology_schema

    if kind == "lesson":
        from kcluster.learn.lesson import LessonKeys

        return keys_schema(kind, LessonKeys)
    if kind == "exercise":
        from kcluster.learn.exercises import ExerciseKeys

        return keys_schema(kind, ExerciseKeys)
    return topology_schema() if kind == "topology" else scenario_schema()
