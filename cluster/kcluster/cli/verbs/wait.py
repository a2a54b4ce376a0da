"""`kcluster wait CONDITION`: wait until something holds, or has happened.

Owns: the verb: its options, its request, its exit code.  Never: reads or tests a condition
(operations/conditions.py).  Kafka: the loop around kafka-topics.sh --describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import Section, control_options, print_json, section
from kcluster.cli.control.client import Conversation
from kcluster.cli.control.protocol import ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class WaitRequest(ControlRequest, verb="wait"):
    """`condition`, `within`, `since`: as typed."""

    condition: str
    within: str = "10s"
    since: str | None = None


@section(Section.CLUSTER)
@click.command("wait")
@click.argument("condition")
@click.option(
    "--within", metavar="TIME", default="10s", show_default=True, help="The longest time to wait."
)
@click.option(
    "--since",
    metavar="TIME",
    help="Events of the last TIME count too.  [default: events from now on]",
)
@control_options
def command(
    condition: str, within: str, since: str | None, name: str | None, as_json: bool
) -> None:
    """Wait until a condition holds: kcluster wait 'isr(orders-0) = 3'.

    CONDITION is written as in scenario files: 'leader(orders-0) = 2', 'high_watermark(orders-0) >=
    100', 'event leader_elected', 'event leader_elected of orders-0', settled.  The exit code is 1
    if it does not hold in time; the message says how it stands.
    """
    with Conversation(name) as conversation:
        answer = conversation.ask(WaitRequest(condition, within, since), timeout_s=None)
    if as_json:
        print_json(answer)
    else:
        print(f"{answer['cluster']}: {answer['condition']} holds after {answer['waited_ms']} ms")


@handles(WaitRequest)
def handle(session: ControlSession, request: WaitRequest) -> dict[str, Any]:
    """Wait until the condition holds; ControlError with how it stands if it does not in time."""
    import time

    from kcluster.config.files.durations import milliseconds
    from kcluster.operations.conditions import condition

    text = " ".join(request.condition.split())
    try:
        condition(text)
    except ValueError as error:
        raise ControlError(f"{text}: {error}", 2) from None
    limits_ms = {}
    for option, typed in (("--within", request.within), ("--since", request.since or "0ms")):
        try:
            limits_ms[option] = milliseconds(typed)
        except ValueError as error:
            raise ControlError(f"{option} {typed}: {error}", 2) from None
    cluster = session.cluster
    began_s = time.monotonic()
    since = None if request.since is None else cluster.sequence_at(limits_ms["--since"])
    cluster.wait_for(text, within=limits_ms["--within"] / 1000, since=since)
    waited_ms = round((time.monotonic() - began_s) * 1000)
    return {"cluster": session.name, "condition": text, "holds": True, "waited_ms": waited_ms}
