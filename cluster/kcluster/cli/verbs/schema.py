"""`kcluster schema KIND`: the JSON Schema of files of a kind, for editors and readers.

Owns: the verb.  Never: makes a schema (work/schema.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import json

import click

from kcluster.cli.click_tools import Section, section
from kcluster.conform.findings import conform_schema
from kcluster.runs.schema import run_schema


@section(Section.TOOLS)
@click.command("schema")
@click.argument(
    "kind", type=click.Choice(["topology", "scenario", "lesson", "exercise", "run", "conform"])
)
def command(kind: str) -> None:
    """Print the JSON Schema of a kind of file, of a run directory, or of a report.

    The same schemas are in docs/schema/.
    """
    if kind == "run":
        schema = run_schema()
    elif kind == "conform":
        schema = conform_schema()
    else:
        from kcluster.cli.work.schema import schema_of

        schema = schema_of(kind)
    print(json.dumps(schema, indent=1))
