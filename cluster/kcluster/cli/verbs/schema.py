"""`kcluster schema topology|scenario`: the JSON Schema of the files, for editors.

Owns: the verb.  Never: the schema (scenario/language/schema.py).  Kafka: no counterpart.
"""

from __future__ import annotations

import json

import click

from kcluster.cli.click_tools import Section, section


@section(Section.TOOLS)
@click.command("schema")
@click.argument("kind", type=click.Choice(["topology", "scenario"]))
def command(kind: str) -> None:
    """Print the JSON Schema of topology or scenario files, for editors.

    The same two schemas are in docs/schema/.
    """
    from kcluster.scenario.language.schema import scenario_schema, topology_schema

    print(json.dumps(topology_schema() if kind == "topology" else scenario_schema(), indent=1))
