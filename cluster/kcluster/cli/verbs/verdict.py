"""`kcluster verdict`: whether the running cluster has kept its promises so far.

Owns: the verb: its request, its exit code.  Never: judges (checks/verdict.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class VerdictRequest(ControlRequest, verb="verdict"):
    """Everything so far."""


@section(Section.CLUSTER)
@click.command("verdict")
@control_options
def command(name: str | None, as_json: bool) -> None:
    """Judge what clients of the running cluster were promised: valid, invalid or unknown.

    Clients are known by what the brokers saw of them. The exit code is 0 for valid, else 1.
    """
    answer = ask(VerdictRequest(), name)
    if as_json:
        print_json(answer["verdict"])
    else:
        print("\n".join(answer["lines"]))
    sys.exit(0 if answer["verdict"]["outcome"] == "valid" else 1)


@handles(VerdictRequest)
def handle(session: ControlSession, request: VerdictRequest) -> dict[str, Any]:
    """The verdict as lines and as values."""
    import msgspec

    verdict = session.cluster.verdict()
    return {"lines": verdict.lines(), "verdict": msgspec.json.decode(verdict.to_json())}
