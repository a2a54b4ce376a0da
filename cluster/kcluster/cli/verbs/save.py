"""`kcluster save DIR`: the run of the running cluster so far, as a run directory.

Owns: the verb: its options, its request.  Never: stops the cluster, knows the directory's files
(runs/directory.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession, OwnRun


class SaveRequest(ControlRequest, verb="save"):
    """Absolute paths.  `directory`: the run gets its own directory below; `scenario`: a file for
    what was done to the cluster.  Either may be None."""

    directory: str | None = None
    scenario: str | None = None


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
    import os

    if directory is None and scenario is None:
        raise ControlError("name a directory, or --scenario FILE, or both", 2)
    paths = (None if path is None else os.path.abspath(path) for path in (directory, scenario))
    answer = ask(SaveRequest(*paths), name)
    if as_json:
        print_json(answer)
    else:
        print("\n".join(saved_lines(answer)))


def saved_lines(answer: dict[str, Any]) -> list[str]:
    """The verdict's first line, and where the run is."""
    lines = []
    if "run" in answer:
        lines += [
            f"verdict: {answer['outcome']}: {answer['reason']}",
            f"run directory: {answer['run']}  (kcluster explain {answer['run']})",
        ]
    if "scenario" in answer:
        file = answer["scenario"]
        lines.append(f"scenario: {file}  (kcluster scenario run {file})")
    return lines


@handles(SaveRequest)
def handle(session: ControlSession, request: SaveRequest) -> dict[str, Any]:
    """Write what was asked for."""
    from kcluster.cli.recorded_scenario import write_scenario
    from kcluster.cli.writing import writing

    answer = {} if request.directory is None else save(session, request.directory)
    if request.scenario is None:
        return answer
    with writing(request.scenario):
        write_scenario(session.cluster, request.scenario)
    return {**answer, "scenario": request.scenario}


def save(session: ControlSession, directory: str, own: OwnRun | None = None) -> dict[str, Any]:
    """Write the run so far below `directory`, or complete its `own` run directory; the answer names
    the run directory and the verdict."""
    from kcluster.cli.writing import writing
    from kcluster.runs.directory import RunError, read_verdict

    try:
        with writing(directory):
            path = session.cluster.save(directory) if own is None else own.finish().resolve()
        verdict = read_verdict(path)
    except RunError as error:
        raise ControlError(str(error), 2) from error
    return {"run": str(path), "outcome": verdict["outcome"], "reason": verdict["reason"]}
