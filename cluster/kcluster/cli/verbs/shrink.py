"""`kcluster shrink`: the smallest scenario that still breaks the promise that this one breaks.

Owns: the verb's options.  Never: shrinks (work/shrink.py).  Exit codes: 0 no promise is broken, 1
one is, 2 a file is wrong.  Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, section


@section(Section.SCENARIOS)
@click.command("shrink")
@click.argument("file", metavar="SCENARIO")
@click.option(
    "--seed", type=click.IntRange(0), help="The seed of the run.  [default: the file's, or 1]"
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write the smaller scenario here.  [default: search-NAME]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the finding as JSON.")
def command(file: str, seed: int | None, out: str | None, as_json: bool) -> None:
    """Leave out of a scenario whatever its failure does not need, and say what happened.

    SCENARIO is a file, or the name of one that ships with kcluster. It is played in virtual time.
    If its run breaks a promise, steps, clients and time are left out while the run still does, and
    the rest is written as a scenario file. Anomalies that the file expects count, too.
    """
    from kcluster.cli.work.shrink import shrink

    shrink(file, seed, out, as_json)
