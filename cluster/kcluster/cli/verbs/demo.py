"""`kcluster demo`: real clients, a leader killed under load, the timeline, and the count.

Owns: the verb's options and exit code.  Never: plays the demo (work/demo.py, demo/).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys

import click

from kcluster.cli.click_tools import Section, fail, section
from kcluster.cli.errors import CommandError
from kcluster.config.files.problems import TopologyError
from kcluster.operations.errors import ClusterError


@section(Section.CLUSTER)
@click.command("demo")
@click.argument("file", metavar="[FILE.txt]", required=False)
@click.option(
    "--topology",
    metavar="FILE",
    help="The cluster.  [default: topology.yaml if it exists, else 3 brokers]",
)
@click.option(
    "--profile",
    type=click.Choice(["fast", "kafka"]),
    default="fast",
    show_default=True,
    help="fast: time constants 100 times shorter than Kafka's. kafka: the real ones, about 20 s.",
)
@click.option("--spark", is_flag=True, help="Spark ingests the topic meanwhile, and audits it.")
@click.option("-q", "--quiet", is_flag=True, help="Show only whether records were lost.")
@click.option("--json", "as_json", is_flag=True, help="Print timeline and count as a JSON object.")
def command(
    file: str | None, topology: str | None, profile: str, spark: bool, quiet: bool, as_json: bool
) -> None:
    """Kill a leader under load, and count: no acked record is lost.

    The records are the lines of FILE.txt, by default 20,000 orders.
    """
    from kcluster.cli.work.demo import run

    try:
        nothing_was_lost = run(file, topology, profile, spark, quiet, as_json)
    except TopologyError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except ClusterError as error:
        fail(CommandError(str(error)), as_json)
    except CommandError as error:
        fail(error, as_json)
    sys.exit(0 if nothing_was_lost else 1)
