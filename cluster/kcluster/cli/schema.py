"""`kcluster schema topology|scenario|run`: JSON Schema of the files, for editors and readers.

Owns: the option.  Never: the schemas (scenario/language/schema.py, runs/schema.py).
"""

from __future__ import annotations

import json
from typing import Any

import click


@click.command("schema", help="Print the JSON Schema of topology, scenario or run files.")
@click.argument("kind", type=click.Choice(["topology", "scenario", "run"]))
def command(kind: str) -> None:
    """In docs/schema/ there is a copy of each."""
    print(json.dumps(_schema(kind), indent=1))


def _schema(kind: str) -> dict[str, Any]:
    if kind == "run":
        from kcluster.runs.schema import run_schema

        return run_schema()
    from kcluster.scenario.language.schema import scenario_schema, topology_schema

    return topology_schema() if kind == "topology" else scenario_schema()
