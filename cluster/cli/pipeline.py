"""`kcluster pipeline`: jobs on Spark over what runs left behind.

Owns: the table of its verbs.  Never: a verb's work, nor imports pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

VERBS: Final = {
    "ingest": "Topics of a running cluster to a table, each record exactly once.",
    "audit": "The fate of every record of many runs: lost, duplicated, reordered, late, and why.",
    "sweep": "What durability settings cost: a grid of them, many seeds each.",
    "replay": "A run of a sweep as a scenario file: its cell and its seed.",
    "timeline": "Many runs in numbers: unavailable windows, failover times, errors, ISR churn.",
}
"""Verb -> its line in the overview; `cluster.cli.pipeline_<verb>` has its `command`."""


class PipelineGroup(click.Group):
    """Imports a verb's module when it is called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        found: click.Command = import_module(f"cluster.cli.pipeline_{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group("pipeline", cls=PipelineGroup)
def command() -> None:
    """Jobs on Spark (pip install 'kcluster[spark]', Java 17 or newer) over run directories."""
