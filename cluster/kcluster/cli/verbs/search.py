"""`kcluster search`: search for a schedule of faults that breaks a promise.

Owns: the verb's options.  Never: searches (work/search.py).  Exit codes: 0 nothing was found, 1
something was, 2 a file is wrong.  Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, section


@section(Section.SCENARIOS)
@click.command("search")
@click.argument("file", required=False, metavar="[SCENARIO|TOPOLOGY]")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), help="How long to search.  [default: 60]"
)
@click.option("--runs", type=click.IntRange(1), help="The most runs; then without a time limit.")
@click.option(
    "--jobs", type=click.IntRange(1, 256), help="The number of processes.  [default: the cores]"
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
    seconds: float | None,
    runs: int | None,
    jobs: int | None,
    seed: int,
    stop_on: tuple[str, ...],
    out: str | None,
    plain: bool,
    as_json: bool,
) -> None:
    """Search for faults that break a promise, shrink them, and say what happened.

    SCENARIO is a file, or the name of one that ships with kcluster: its random faults, drawn times
    and drawn nodes are varied. A scenario that leaves nothing open gets overlapping faults beside
    its steps, a TOPOLOGY also producers and consumers. Without either:
    safe_settings_overlapping.

    Each finding is shrunk at once, and written as a scenario file that repeats it:
    kcluster scenario run FILE.
    """
    from kcluster.cli.work.search import SearchOptions, search

    seconds = 60.0 if seconds is None and runs is None else seconds
    search(file, SearchOptions(seconds, runs, jobs, seed, stop_on, out, plain, as_json))
