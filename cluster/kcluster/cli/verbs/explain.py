"""`kcluster explain RUN`: a run directory as a story.

Owns: options, colours, how a directory that cannot be read is told.  Never: the story itself
(runs/explain.py).
"""

from __future__ import annotations

import sys

import click

from kcluster.cli.click_tools import fail
from kcluster.cli.control.client import ControlError


@click.command("explain", help="Tell a run as a story: each change, its cause, the replicas' logs.")
@click.argument("run", metavar="RUN")
@click.option("--partition", metavar="NAME", default="", help="Of this one alone, like orders-0.")
@click.option("--html", "as_page", is_flag=True, help="Draw its timeline.html; say where it is.")
@click.option("--no-colour", "--no-color", is_flag=True, help="Without colours.")
def command(run: str, partition: str, as_page: bool, no_colour: bool) -> None:
    """RUN: a directory that `kcluster scenario run --out` left, or one that has `latest`."""
    from rich.console import Console

    from kcluster.config.files.problems import unknown
    from kcluster.runs.directory import RunError, find_run, read_run, write_page
    from kcluster.runs.explain import explain, partitions_of

    try:
        record, problems = read_run(run)
    except RunError as error:
        fail(ControlError(str(error), 2), as_json=False)
    for problem in problems:
        print(f"kcluster: {problem}; the rest is used", file=sys.stderr)
    if as_page:
        try:
            print(write_page(find_run(run).resolve(), record))
        except OSError as error:
            fail(ControlError(f"{error.filename}: {error.strerror}", 2), as_json=False)
        return
    names = partitions_of(record)
    if partition and partition not in names:
        text = f"{partition}: {unknown('partition in this run', partition, names)}"
        fail(ControlError(text, 2), as_json=False)
    console = Console(highlight=False, soft_wrap=True, no_color=no_colour)
    for line in explain(record, partition):
        console.print(line)
