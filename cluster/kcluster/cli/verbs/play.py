"""`kcluster play SCENARIO`: a scenario in virtual time, shown on the page.

Owns: the verb's options.  Never: plays, serves the page (work/play.py).  Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, section


@section(Section.SCENARIOS)
@click.command("play")
@click.argument("scenario", metavar="SCENARIO")
@click.option("--seed", type=click.IntRange(0), help="Of the run.  [default: the scenario's, or 1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Serve the page on this port.  [default: a free one]",
)
@click.option("-q", "--quiet", is_flag=True, help="Print the ready line alone.")
@click.option("--json", "as_json", is_flag=True, help="Print the ready line as JSON.")
def command(scenario: str, seed: int | None, port: int, quiet: bool, as_json: bool) -> None:
    """Run a scenario in virtual time and show the whole run on the page.

    SCENARIO is a file, or the name of one that ships with kcluster (kcluster scenario list). The
    page shows any moment of the run, and forks it there: what would have followed from another
    action. The address holds a token; Ctrl-C ends it.
    """
    from kcluster.cli.work.play import play_scenario

    play_scenario(scenario, seed, port, quiet, as_json)
