"""The work of `kcluster explain`.

Owns: colours, errors about directories that cannot be read.  Never: finds causes (runs/explain.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.config.files.problems import unknown
from kcluster.plain_output import plain_console
from kcluster.runs.bars import block, digit
from kcluster.runs.directory import RunError, find_run, read_run, write_page
from kcluster.runs.explain import explain, partitions_of


def explain_run(run: str, partition: str, as_page: bool, no_colour: bool) -> None:
    """Explain a run, or write its page."""
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
    # None: as NO_COLOR says (https://no-color.org).
    console = plain_console(highlight=False, soft_wrap=True, no_color=no_colour or None)
    has_colours = console.color_system is not None and not console.no_color
    for line in explain(record, partition, block if has_colours else digit):
        console.print(line)
