"""`kcluster search`: search for a schedule of faults that breaks a promise.

Owns: the verb's options.  Never: searches (work/search.py).  Exit codes: 0 nothing was found, 1
something was, 2 a file is wrong.  Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, section
from kcluster.cli.simulate.hash_seed import fix_hash_seed


@section(Section.SCENARIOS)
@click.command("search")
@click.argument("file", required=False, metavar="[SCENARIO|TOPOLOGY|PROGRAM.py]")
@click.option(
    "--app",
    "apps",
    multiple=True,
    metavar="NAME=FILE",
    help="Search for faults that make programs fail, as of kcluster simulate; may be repeated.",
)
@click.option(
    "--kill",
    multiple=True,
    metavar="NAME",
    help="Programs that may be killed; may be repeated.  [default: all]",
)
@click.option(
    "--topology", metavar="FILE", help="With programs: the cluster.  [default: 3 brokers]"
)
@click.option(
    "--scenario", metavar="FILE", help="With programs: the cluster and clients; without steps."
)
@click.option(
    "--for", "duration", metavar="TIME", help="With programs: end them after this virtual time."
)
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), help="How long to search.  [default: 60]"
)
@click.option("--runs", type=click.IntRange(1), help="The most runs; then without a time limit.")
@click.option(
    "--jobs", type=click.IntRange(1, 256), help="The number of processes.  [default: the cores]"
)
@click.option(
    "--master", metavar="URL", help="Run on Spark instead of processes, as on spark://host:7077."
)
@click.option(
    "--ship-env",
    is_flag=True,
    help="With --master: send the dependencies of kcluster to the workers of a cluster, too.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The seed.")
@click.option(
    "--stop-on",
    multiple=True,
    metavar="NAME|any",
    help="Stop when this is found, such as lost-write; may be repeated.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Keep the search here; a search that is there goes on.  [default: search-NAME]",
)
@click.option("--plain", is_flag=True, help="Draw each schedule by chance, and vary none.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per finding.")
def command(
    file: str | None,
    apps: tuple[str, ...],
    kill: tuple[str, ...],
    topology: str | None,
    scenario: str | None,
    duration: str | None,
    seconds: float | None,
    runs: int | None,
    jobs: int | None,
    master: str | None,
    ship_env: bool,
    seed: int,
    stop_on: tuple[str, ...],
    out: str | None,
    plain: bool,
    as_json: bool,
) -> None:
    """Search for faults that break a promise, shrink them, and say what happened.

    SCENARIO is a file, or the name of one that ships with kcluster: its random faults, drawn times
    and drawn nodes are varied. A scenario that leaves nothing open gets overlapping faults beside
    its steps, a TOPOLOGY also producers and consumers, of other kinds in each of eight workloads
    that take turns. Without a file, the storms and searches that ship take turns: kcluster
    scenario list.

    Each finding is shrunk at once, and written as a scenario file that repeats it:
    kcluster scenario run FILE.

    A PROGRAM.py, or several by --app, are run as by kcluster simulate: they, or brokers, die near
    their commits, acks and rebalances, and their threads stall. A program that fails, a deadlock
    and a broken promise are findings.
    """
    seconds = 60.0 if seconds is None and runs is None else seconds
    with_programs = bool(apps) or (file is not None and file.endswith(".py"))
    _check_master(master, ship_env, jobs, with_programs)
    if with_programs:
        fix_hash_seed()  # before everything that would be imported twice
        from kcluster.cli.work.search_programs import search_users_programs

        words = () if file is None else (file,)
        search_users_programs(
            {
                "words": words,
                "apps": apps,
                "topology": topology,
                "scenario": scenario,
                "duration": duration,
                "seed": seed,
                "quiet": True,
            },
            {"seconds": seconds, "runs": runs, "jobs": jobs, "out": out, "kill": kill},
        )
        return
    from kcluster.cli.work.search import Machines, SearchOptions, search

    options = SearchOptions(seconds, runs, seed, stop_on, out, plain, as_json)
    search(file, options, Machines(jobs, master, ship_env))


def _check_master(
    master: str | None, ship_env: bool, jobs: int | None, with_programs: bool
) -> None:
    """Refuse options that do not go together; click ends the process with exit code 2."""
    if master is None and ship_env:
        raise click.UsageError("--ship-env is for the workers of a --master")
    if master is not None and jobs is not None:
        raise click.UsageError("choose one of --jobs and --master")
    if master is not None and with_programs:
        raise click.UsageError("programs run on this machine: leave out --master")
