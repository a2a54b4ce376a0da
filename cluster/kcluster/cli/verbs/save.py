"""`kcluster save DIR`: the run of the running cluster so far, as a run directory.

Owns: the verb's options.  Never: stops the cluster, knows the directory's files
(runs/directory.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import os

import click

from kcluster.cli.click_tools import Section, control_options, print_answer, section
from kcluster.cli.errors import CommandError
from kcluster.cli.remote import Remote
from kcluster.json_types import JsonObject


@section(Section.CLUSTER)
@click.command("save")
@click.argument("directory", metavar="[DIR]", required=False)
@click.option(
    "--scenario", metavar="FILE", help="Write what was done to the cluster as a scenario file."
)
@control_options
def command(directory: str | None, scenario: str | None, name: str | None, as_json: bool) -> None:
    """Write what has happened in the running cluster to a run directory below DIR.

    It has the events, the verdict and timeline.html; `kcluster explain DIR` explains it. The
    cluster runs on. With --scenario, `kcluster scenario run FILE` repeats kills, cuts and other
    actions at their times; what clients sent is not part of the file.
    """
    if directory is None and scenario is None:
        raise CommandError("name a directory, or --scenario FILE, or both", 2)
    given = {"directory": directory, "scenario": scenario}
    paths = {key: os.path.abspath(path) for key, path in given.items() if path is not None}
    answer = Remote(name).post("save", paths, options={"*": ""}, timeout_s=None)
    print_answer(answer, saved_lines(answer), as_json)


def saved_lines(answer: JsonObject) -> list[str]:
    """The verdict's first line, and the line with the run's path."""
    lines = []
    if answer.get("run"):
        lines += [
            f"verdict: {answer['outcome']}: {answer['reason']}",
            f"run directory: {answer['run']}  (kcluster explain {answer['run']})",
        ]
    if "scenario" in answer:
        file = answer["scenario"]
        lines.append(f"scenario: {file}  (kcluster scenario run {file})")
    return lines
