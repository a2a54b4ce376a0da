"""`kcluster pipeline sweep GRID.yaml`: the price of durability settings, from thousands of runs.

Owns: the verb's options.  Never: runs (work/sweep.py).
Exit codes: 0 done, 1 some runs ended with an error, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import click


@click.command("sweep")
@click.argument("file", metavar="GRID.yaml")
@click.option("--seeds", metavar="N", help="A number, or a list: 1..50,77.  [default: the grid's]")
@click.option(
    "--out", metavar="DIR", default="sweep", show_default=True, help="The output directory."
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option(
    "--ship-env",
    is_flag=True,
    help="Send the dependencies of kcluster to the workers of a cluster, too.",
)
@click.option(
    "--compare", nargs=2, metavar="A B", help="Compare two cells: numbers, or acks=all,brokers=3."
)
@click.option(
    "--mtbf-days",
    metavar="DAYS",
    type=click.FloatRange(min=0, min_open=True),
    default=365.25,
    show_default=True,
    help="A real broker's mean time between failures, for figures per year.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's own warnings.")
@click.option("-q", "--quiet", is_flag=True, help="Show only each cell's line, and errors.")
def command(
    file: str,
    seeds: str | None,
    out: str,
    master: str,
    ship_env: bool,
    compare: tuple[str, str] | None,
    mtbf_days: float,
    verbose: bool,
    quiet: bool,
) -> None:
    """Show what durability settings cost: run a grid of them, with many seeds each.

    GRID.yaml is a file, or the name of a sweep that ships with kcluster: see kcluster scenario
    list.

    \b
    seeds: 100
    grid:
      min_insync_replicas: [1, 2]
      mtbf: 20s
      repair: 20s
      write_back: 5s

    Each combination is a cell; each (cell, seed) is one run in virtual time. The columns: brokers,
    racks, rack_aware, partitions, replication_factor, min_insync_replicas, acks, idempotent,
    unclean_election, flush_messages, flush_interval, write_back, replica_lag; failures (per run),
    mtbf or faults (a profile), failure (kill, clean, power, wipe, pause), failure_domain (broker,
    rack, all), repair, first_failure; latency, rate, size, consumers, duration.

    DIR gets each run as it ends, and the report. If the command is interrupted, the same command
    resumes it: runs that DIR has are not repeated, unless they ended with an error.
    """  # noqa: D301  # \b is click's mark for a paragraph that is not wrapped
    from kcluster.cli.work.sweep import sweep_grid

    sweep_grid(file, seeds, out, master, ship_env, compare, mtbf_days, verbose, quiet)
