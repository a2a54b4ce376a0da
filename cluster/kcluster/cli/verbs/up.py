"""`kcluster up`: a cluster in the foreground.

Owns: the options, as click knows them.  Never: runs the cluster (cli/foreground.py).  Plain command
lines do not come here: main.py has a faster way.
Kafka: kafka-server-start.sh.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from kcluster.cli.click_tools import Section, section


@section(Section.CLUSTER)
@click.command("up")
@click.argument("file", required=False)
@click.option(
    "--brokers",
    type=click.IntRange(1, 100),
    metavar="N",
    help="The number of brokers. Without FILE, topology.yaml is then ignored.",
)
@click.option(
    "--base-port",
    type=click.IntRange(0, 65535),
    metavar="P",
    help="Brokers listen on P, P+1, …; 0 means free ports.  [default without FILE: 9092]",
)
@click.option(
    "--profile",
    type=click.Choice(["kafka", "fast", "slow"]),
    help="kafka: Kafka's time constants. fast: a hundredth of them, for tests; only leaders move"
    " back after 300 s, as in Kafka. slow: three times as long, for a class.  [default: the"
    " topology's, else kafka]",
)
@click.option(
    "--name", help="The name for other verbs.  [default: $KCLUSTER_NAME, else the topology's]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option("-q", "--quiet", is_flag=True, help="Print no events: other verbs show them.")
@click.option("--out", metavar="DIR", help="Write the run to a directory below DIR, as save does.")
@click.option(
    "--record", metavar="FILE", help="Write what is done to the cluster as a scenario file."
)
@click.option("--no-record", is_flag=True, help="Record nothing: no verdict, no save.")
@click.option("--page", is_flag=True, help="Serve a live page, and print its address.")
@click.option("--trace-requests", is_flag=True, help="Print a line for each request.")
def command(**options: Any) -> None:
    """Start a cluster in the foreground.

    FILE is a topology; without it topology.yaml is used if it exists, else 3 brokers are started.
    """
    from kcluster.cli.foreground import UpOptions, run_reporting
    from kcluster.cli.main import STARTED_S

    sys.exit(run_reporting(UpOptions(**options), STARTED_S))
