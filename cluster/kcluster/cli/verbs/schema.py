"""`kcluster schema topology|scenario|run`: the JSON Schema of the files, for editors and readers.

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
@click.argument("kind", type=click.Choice(["topology", "scenario", "run"]))
def command(kind: str) -> None:
    """Print the JSON Schema of topology, scenario or run files.

    The same schemas are in docs/schema/.
    """
    print(json.dumps(_schema(kind), indent=1))


def _schema(kind: str) -> JsonObject:
    if kind == "run":
        from kcluster.runs.schema import run_schema

        return run_schema()
    from kcluster.scenario.language.schema import scenario_schema, topology_schema

    return topology_schema() if kind == "topology" else scenario_schema()
