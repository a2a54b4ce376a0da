"""`kcluster down`: stop the running cluster, and wait until its process has ended.

Owns: the verb, waiting for the end.  Never: stops a broker itself.
Kafka: kafka-server-stop.sh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.control.client import Conversation
from kcluster.cli.control.protocol import ControlError, ControlRequest, handles
from kcluster.cli.verbs.save import save, saved_lines

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class DownRequest(ControlRequest, verb="down"):
    """Stop.  `out`: an absolute path; the run is written below it before."""

    out: str | None = None


@section(Section.CLUSTER)
@click.command("down")
@click.option("--out", metavar="DIR", help="Write the run to a directory below DIR before.")
@control_options
def command(out: str | None, name: str | None, as_json: bool) -> None:
    """Stop the running cluster, and wait until it has stopped."""
    import os

    with Conversation(name) as conversation:
        result = conversation.ask(DownRequest(None if out is None else os.path.abspath(out)))
        if not conversation.wait_for_end():
            raise ControlError(f"cluster {result['name']} has not stopped yet")
    if as_json:
        print_json(result)
    else:
        if "run" in result:
            print("\n".join(saved_lines(result)))
        print(f"cluster {result['name']} has stopped")


@handles(DownRequest, stays_open=True)
def handle(session: ControlSession, request: DownRequest) -> dict[str, Any]:
    """Ask the cluster to stop; the open conversation shows the client when it has."""
    saved = {} if request.out is None else save(session, request.out)
    session.stop()
    return {"name": session.name, "stopping": True, **saved}
