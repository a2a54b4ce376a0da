"""`kcluster pipeline`: jobs on Spark over what runs left behind.

Owns: the table of its verbs.  Never: a verb's work, nor imports pyspark.
"""

from __future__ import annotations

from typing import Final

import click

from kcluster.cli.click_tools import VerbGroup

VERBS: Final = {
    "ingest": "Topics of a running cluster to a table, each record exactly once.",
    "audit": "The fate of every record of many runs: lost, duplicated, reordered, late, and why.",
    "sweep": "What durability settings cost: a grid of them, many seeds each.",
    "replay": "A run of a sweep as a scenario file: its cell and its seed.",
    "timeline": "Many runs in numbers: unavailable windows, failover times, errors, ISR churn.",
}
"""Verb -> its line in the overview; `kcluster.cli.pipeline.<verb>` has its `command`."""


class PipelineGroup(VerbGroup):
    """The same, for these verbs."""

    verbs = VERBS
    home = "kcluster.cli.pipeline."


@click.group("pipeline", cls=PipelineGroup)
def command() -> None:
    """Jobs on Spark: pip install 'kcluster[spark]', and Java 17 or newer."""
