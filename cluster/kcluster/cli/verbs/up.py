"""`kcluster up`: a cluster in the foreground.

Owns: the options, as click knows them.  Never: the work (foreground.py); plain command lines do not
even come by here (main.py has a quicker way).
"""

from __future__ import annotations

import sys
from typing import Any

import click


@click.command("up", help="Start the cluster of FILE (topology.yaml) in the foreground.")
@click.argument("file", required=False)
@click.option(
    "--brokers",
    type=click.IntRange(1, 100),
    metavar="N",
    help="So many brokers; without FILE, topology.yaml is then not read.",
)
@click.option(
    "--base-port",
    type=click.IntRange(0, 65535),
    metavar="P",
    help="Brokers listen on P, P+1, …; 0 for free ports. Without FILE: 9092.",
)
@click.option(
    "--profile",
    type=click.Choice(["kafka", "fast"]),
    help="kafka: Kafka's time constants. fast: 100 times shorter.",
)
@click.option("--name", help="What other verbs call this cluster; by default the topology's name.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--trace-requests", is_flag=True, help="A line for each request and its answer.")
def command(**options: Any) -> None:
    from kcluster.cli.foreground import UpOptions, run_reporting
    from kcluster.cli.main import STARTED_S

    sys.exit(run_reporting(UpOptions(**options), STARTED_S))
