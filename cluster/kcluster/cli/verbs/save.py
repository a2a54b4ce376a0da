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
    from kcluster.cli.control.session import ControlSession


class SaveRequest(ControlRequest, verb="save"):
    """`directory`: an absolute path; the run gets its own directory below."""

    directory: str


@section(Section.CLUSTER)
@click.command("save")
@click.argument("directory", metavar="DIR")
@control_options
def command(directory: str, name: str | None, as_json: bool) -> None:
    """Write what has happened in the running cluster to a run directory below DIR.

    It has the events, the verdict and timeline.html; `kcluster explain DIR` explains it. The
    cluster runs on.
    """
    import os

    answer = ask(SaveRequest(os.path.abspath(directory)), name)
    if as_json:
        print_json(answer)
    else:
        print("\n".join(saved_lines(answer)))


def saved_lines(answer: dict[str, Any]) -> list[str]:
    """The verdict's first line, and where the run is."""
    return [
        f"verdict: {answer['outcome']}: {answer['reason']}",
        f"run directory: {answer['run']}  (kcluster explain {answer['run']})",
    ]


@handles(SaveRequest)
def handle(session: ControlSession, request: SaveRequest) -> dict[str, Any]:
    """Write it."""
    return save(session, request.directory)


def save(session: ControlSession, directory: str) -> dict[str, Any]:
    """Write the run so far below `directory`; the answer names its directory and the verdict."""
    from kcluster.runs.directory import RunError, read_verdict

    session.wait_until_recorded()
    try:
        path = session.cluster.save(directory)
        verdict = read_verdict(path)
    except OSError as error:
        raise ControlError(f"{error.filename}: {error.strerror}", 2) from error
    except RunError as error:
        raise ControlError(str(error), 2) from error
    return {"run": str(path), "outcome": verdict["outcome"], "reason": verdict["reason"]}
