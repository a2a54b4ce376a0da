"""`kcluster down`: stop the running cluster, and wait until its process has ended.

Owns: the verb, waiting for the end.  Never: stops a broker itself.
Kafka: kafka-server-stop.sh.
"""

from __future__ import annotations

import os

import click

from kcluster.cli.click_tools import Section, control_options, print_answer, section
from kcluster.cli.remote import Remote
from kcluster.cli.verbs.save import saved_lines


@section(Section.CLUSTER)
@click.command("down")
@click.option("--out", metavar="DIR", help="Write the run to a directory below DIR before.")
@control_options
def command(out: str | None, name: str | None, as_json: bool) -> None:
    """Stop the running cluster, and wait until it has stopped.

    A cluster of `up --out` has its run directory already: --out must name the same DIR, or be left
    out.
    """
    remote, place = Remote(name), None if out is None else os.path.realpath(out)
    answer = remote.ask("DELETE", "", {"out": place}, options={"*": ""}, until_exit=True)
    print_answer(answer, [*saved_lines(answer), f"cluster {remote.name} has stopped"], as_json)
