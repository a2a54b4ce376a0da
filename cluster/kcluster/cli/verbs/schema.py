"""`kcluster schema topology|scenario`: JSON Schema of the files, for editors.

Owns: the option.  Never: the schema (scenario/language/schema.py).
"""

from __future__ import annotations

import json

import click


@click.command("schema", help="Print the JSON Schema of topology or scenario files, for editors.")
@click.argument("kind", type=click.Choice(["topology", "scenario"]))
def command(kind: str) -> None:
    """In docs/schema/ there is a copy of both."""
    from kcluster.scenario.language.schema import scenario_schema, topology_schema

    print(json.dumps(topology_schema() if kind == "topology" else scenario_schema(), indent=1))
