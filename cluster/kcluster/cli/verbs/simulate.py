"""`kcluster simulate app.py`: whole programs, unmodified, in virtual time.

Owns: the verb's options.  Never: runs a program (work/simulate.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Any

import click

from kcluster.cli.click_tools import Section, section
from kcluster.cli.simulate.hash_seed import fix_hash_seed


@section(Section.SCENARIOS)
@click.command("simulate")
@click.argument("words", nargs=-1, metavar="[FILE.py] [-- ARGUMENTS...]")
@click.option("-m", "modules", multiple=True, metavar="MODULE", help="Run a module, as python -m.")
@click.option(
    "--app",
    "apps",
    multiple=True,
    metavar="NAME=FILE",
    help="A program with a name; several run in one world. Its arguments: NAME='FILE ARGUMENTS'.",
)
@click.option(
    "--topology",
    metavar="FILE",
    help="The cluster.  [default: the scenario's, else topology.yaml if it exists, else 3 brokers]",
)
@click.option("--brokers", type=click.IntRange(1, 100), metavar="N", help="The number of brokers.")
@click.option("--profile", type=click.Choice(["kafka", "fast", "slow"]), help="Time constants.")
@click.option(
    "--host", metavar="NAME", help="The brokers' host name, if programs have one in their settings."
)
@click.option(
    "--scenario", metavar="FILE|NAME", help="Its steps and clients run beside the programs."
)
@click.option("--seed", type=click.IntRange(0), help="Of the run.  [default: the scenario's, or 1]")
@click.option(
    "--seeds",
    type=click.IntRange(1),
    metavar="N",
    help="Run N seeds, on all cores, and show the first that fails.",
)
@click.option(
    "--for", "duration", metavar="TIME", help="End after this virtual time, if programs still run."
)
@click.option(
    "--limit",
    metavar="TIME",
    default="1h",
    show_default=True,
    help="Fail if programs have not ended after this virtual time.",
)
@click.option(
    "--schedule",
    type=click.Choice(["fifo", "random"]),
    default="fifo",
    show_default=True,
    help="random: the seed draws which thread runs next.",
)
@click.option(
    "--compute",
    metavar="FACTOR|random",
    default="1",
    show_default=True,
    help="How slow the machine is; 0: computing takes no time.",
)
@click.option("--env", "environment", multiple=True, metavar="KEY=VALUE", help="Of the programs.")
@click.option("-q", "--quiet", is_flag=True, help="Print no events of the cluster.")
@click.option("--out", metavar="DIR", help="Write a run directory below DIR.")
@click.option("--trace", metavar="FILE", help="Write a line for each frame on the wire.")
@click.option(
    "--check-determinism",
    is_flag=True,
    help="Run twice, and show the first line of the trace that differs.",
)
def command(**options: Any) -> None:
    """Run whole programs, unmodified, in virtual time against simulated brokers.

    FILE.py is a Python program that uses kafka-python or aiokafka. It finds the brokers at
    localhost:9092, at brokers.kcluster:9092, and in the environment variable KCLUSTER_BOOTSTRAP.
    The exit code is a failed program's, 1 if the verdict is not as expected, and 2 if a file is
    wrong.
    """
    fix_hash_seed()  # before everything that would be imported twice
    from kcluster.cli.work.simulate import simulate_programs

    simulate_programs(options)
