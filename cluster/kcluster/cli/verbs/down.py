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
    """Stop.  `out`: an absolute path without links; the run is written below it before."""

    out: str | None = None


@section(Section.CLUSTER)
@click.command("down")
@click.option("--out", metavar="DIR", help="Write the run to a directory below DIR before.")
@control_options
def command(out: str | None, name: str | None, as_json: bool) -> None:
    """Stop the running cluster, and wait until it has stopped.

    A cluster of `up --out` has its run directory already: --out must name the same DIR, or be left
    out.
    """
    import os

    with Conversation(name) as conversation:
        result = conversation.ask(DownRequest(None if out is None else os.path.realpath(out)))
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
    """Ask the cluster to stop; the open conversation shows the client when it has.  The run is
    written once: into the directory of `up --out`, if there is one."""
    own = session.own_run
    if own is not None and request.out not in (None, str(own.path.parent.resolve())):
        raise ControlError(
            f"up --out writes this run to {own.path.resolve()}; leave out --out here, or copy the"
            " run first: kcluster save DIR",
            2,
        )
    saved = {} if own is None and request.out is None else save(session, request.out or "", own)
    session.stop()
    return {"name": session.name, "stopping": True, **saved}
