"""`kcluster explain RUN`: what happened in a run, and why, from its directory.

Owns: the verb: its options, colours, errors about directories that cannot be read.  Never: finds
causes (runs/explain.py).  Kafka: no counterpart.
"""

from __future__ import annotations

import sys

import click

from kcluster.cli.click_tools import Section, fail, section
from kcluster.cli.errors import CommandError


@section(Section.SCENARIOS)
@click.command("explain")
@click.argument("run", metavar="RUN")
@click.option("--partition", metavar="NAME", default="", help="Only this partition, like orders-0.")
@click.option("--html", "as_page", is_flag=True, help="Write timeline.html, and print its path.")
@click.option("--no-colour", "--no-color", is_flag=True, help="Print without colours.")
def command(run: str, partition: str, as_page: bool, no_colour: bool) -> None:
    """Explain a run: each change, its cause, and the replicas' logs.

    RUN is a directory written by `kcluster scenario run --out`, or one that contains `latest`.
    """
    from kcluster.config.files.problems import unknown
    from kcluster.plain_output import plain_console
    from kcluster.runs.directory import RunError, find_run, read_run, write_page
    from kcluster.runs.explain import explain, partitions_of

    try:
        record, problems = read_run(run)
    except RunError as error:
        fail(CommandError(str(error), 2))
    for problem in problems:
        print(f"kcluster: {problem}; the rest is used", file=sys.stderr)
    if as_page:
        try:
            print(write_page(find_run(run).resolve(), record))
        except OSError as error:
            fail(CommandError(f"{error.filename}: {error.strerror}", 2))
        return
    names = partitions_of(record)
    if partition and partition not in names:
        text = f"{partition}: {unknown('partition in this run', partition, names)}"
        fail(CommandError(text, 2))
    console = plain_console(highlight=False, soft_wrap=True, no_color=no_colour)
    for line in explain(record, partition):
        console.print(line)
