"""`kcluster resume TARGETS`: resume paused brokers, as after a long garbage collection.

Owns: the verb: its request, when it is refused.  Never: carries it out (handle/verbs.py).
Kafka: kill -CONT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import (
    Section,
    control_options,
    make_change,
    section,
    targets_argument,
    wait_option,
)
from kcluster.cli.control.arguments import brokers_text, choose, find_nodes, left_alone_lines
from kcluster.cli.control.protocol import ChangeResult, ControlRequest, handles
from kcluster.operations.states import StateVerb

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession


class ResumeRequest(ControlRequest, verb="resume"):
    """`broker`: targets as typed."""

    broker: str | int
    wait: bool = True


@section(Section.FAULTS)
@click.command("resume")
@targets_argument
@wait_option
@control_options
def command(targets: str, wait: bool, name: str | None, as_json: bool) -> None:
    """Resume paused brokers.

    Returns when they serve clients and are back in their ISRs.
    """
    make_change(ResumeRequest(targets, wait), name, as_json)


@handles(ResumeRequest)
def handle(session: ControlSession, request: ResumeRequest) -> ChangeResult:
    """Resume those of the brokers that are paused."""
    cluster = session.cluster
    sorted_out = choose(cluster, StateVerb.RESUME, find_nodes(cluster, request.broker))
    chosen = sorted_out.nodes

    def operation(say: Say) -> None:
        cluster.resume(chosen, wait=False)
        say(f"{session.name}: {brokers_text(chosen)} resumed")
        if request.wait:
            cluster.wait_until_in_sync(chosen)

    return session.change(
        operation, chosen, left_alone=left_alone_lines(StateVerb.RESUME, sorted_out)
    )
