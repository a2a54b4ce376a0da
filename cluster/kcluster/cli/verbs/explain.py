"""`kcluster explain RUN`: the events of a run and their causes, from its directory.

Owns: the verb's options.  Never: explains (work/explain.py).  Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, section


@section(Section.SCENARIOS)
@click.command("explain")
@click.argument("run", metavar="RUN")
@click.option("--partition", metavar="NAME", default="", help="Only this partition, like orders-0.")
@click.option("--html", "as_page", is_flag=True, help="Write timeline.html, and print its path.")
@click.option("--no-colour", "--no-color", is_flag=True, help="Print without colours.")
def command(run: str, partition: str, as_page: bool, no_colour: bool) -> None:
    """Explain a run: each change, its cause, and the replicas' logs.

    RUN is a directory written by `kcluster scenario run --out`, or one that contains `latest`. In
    the logs, a cell has the colour of the leader epoch that wrote it; without colours, the epoch's
    last digit.
    """
    from kcluster.cli.work.explain import explain_run

    explain_run(run, partition, as_page, no_colour)
