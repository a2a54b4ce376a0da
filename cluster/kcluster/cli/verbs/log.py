"""`kcluster log orders-0`: the log of each replica, drawn by leader epoch.

Owns: the verb's options.  Never: draws (runs/log_drawing.py), looks into a broker
(operations/logs.py).
Kafka: kafka-dump-log.sh, on each broker.
"""

from __future__ import annotations

import sys

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.completion import complete_partitions
from kcluster.cli.remote import Remote, quoted
from kcluster.cli.watching import watch
from kcluster.json_types import JsonObject
from kcluster.plain_output import plain_console
from kcluster.runs.bars import digit
from kcluster.runs.log_drawing import drawing_of


@section(Section.CLUSTER)
@click.command("log")
@click.argument("partition", metavar="PARTITION", shell_complete=complete_partitions)
@click.option("--watch", "watched", is_flag=True, help="Draw it again whenever it changes.")
@control_options
def command(partition: str, watched: bool, name: str | None, as_json: bool) -> None:
    """Draw the log of each replica of PARTITION, such as orders-0.

    A cell has the colour of the leader epoch that wrote it (in a pipe: the epoch's last digit); |
    is the high watermark.
    """
    logs: JsonObject = {}

    def read() -> object:
        logs.update(Remote(name).get(f"replicas/{quoted(partition)}"))
        return dict(logs)

    def show() -> None:
        if as_json:
            print_json(logs)
        else:
            print_logs(logs)

    if watched:
        watch(read, show)
    else:
        read()
        show()


def print_logs(logs: JsonObject) -> None:
    """Print the drawing: with colours on a terminal, with digits in a pipe."""
    if not sys.stdout.isatty():
        print("\n".join(drawing_of(logs, digit)))
        return
    console = plain_console(highlight=False, soft_wrap=True)
    for line in drawing_of(logs):
        console.print(line)
