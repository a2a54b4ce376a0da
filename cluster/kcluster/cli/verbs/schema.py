"""`kcluster schema KIND`: the JSON Schema of files of a kind, for editors and readers.

Owns: the verb.  Never: makes a schema (work/schema.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, section


@section(Section.TOOLS)
@click.command("schema")
@click.argument("kind", type=click.Choice(["topology", "scenario", "lesson", "exercise", "run"]))
def command(kind: str) -> None:
    """Print the JSON Schema of a kind of file, or of the files of a run directory.

    The same schemas are in docs/schema/.
    """
    from kcluster.cli.work.schema import print_schema

    print_schema(kind)
