"""`kcluster pipeline`: Spark jobs over the directories of runs.

Owns: the group; its verbs are the modules of `cli/pipeline/`.  Never: imports pyspark,
which a job does when it starts.  Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import LazyGroup, Section, section


class PipelineGroup(LazyGroup):
    """The verbs of the pipeline."""

    package = "kcluster.cli.pipeline"


@section(Section.SCENARIOS)
@click.group("pipeline", cls=PipelineGroup)
def command() -> None:
    """Run Spark jobs: ingest, audit, judge, timeline, sweep.

    They need the extra `spark` (kcluster names the command if it is missing), and Java 17 or newer.
    """
