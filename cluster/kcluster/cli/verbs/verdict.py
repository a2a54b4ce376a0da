"""`kcluster verdict`: whether the running cluster has kept its promises so far.

Owns: the verb: its request, its exit code.  Never: judges (checks/verdict.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import Section, control_options, print_json, refuse_both, section
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class VerdictRequest(ControlRequest, verb="verdict"):
    """`since`: as typed; None for everything so far."""

    since: str | None = None
    verbose: bool = False


@section(Section.CLUSTER)
@click.command("verdict")
@click.option(
    "--since",
    metavar="WHEN",
    help="Judge only what was sent and what happened since: a time back (30s), an event's number,"
    " or a moment of the cluster's clock in ms (@12345).",
)
@click.option("-v", "--verbose", is_flag=True, help="Show every outage with its reasons.")
@click.option("-q", "--quiet", is_flag=True, help="Show only the last line, the answer.")
@control_options
def command(since: str | None, verbose: bool, quiet: bool, name: str | None, as_json: bool) -> None:
    """Judge what clients of the running cluster were promised: valid, invalid or unknown.

    Clients are known by what the brokers saw of them. The exit code is 0 for valid, else 1.
    """
    refuse_both(verbose, quiet)
    answer = ask(VerdictRequest(since, verbose), name)
    if as_json:
        print_json(answer["verdict"])
    else:
        print("\n".join(answer["lines"][-1:] if quiet else answer["lines"]))
    sys.exit(0 if answer["verdict"]["outcome"] == "valid" else 1)


@handles(VerdictRequest)
def handle(session: ControlSession, request: VerdictRequest) -> dict[str, Any]:
    """The verdict as lines and as values."""
    import msgspec

    verdict = session.cluster.verdict(request.since)
    lines = verdict.lines(verbose=request.verbose)
    return {"lines": lines, "verdict": msgspec.json.decode(verdict.to_json())}
