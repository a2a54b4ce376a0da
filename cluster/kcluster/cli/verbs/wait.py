"""`kcluster wait CONDITION`: wait until something holds, or has happened.

Owns: the verb: its options, its exit code.  Never: reads or tests a condition
(operations/conditions.py).  Kafka: the loop around kafka-topics.sh --describe.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, control_options, print_answer, section
from kcluster.cli.remote import Remote


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
    if it does not hold in time; the message shows the present state.
    """
    remote, wanted = Remote(name), {"until": condition, "within": within, "since": since}
    options = {"until": "", "within": "--within", "since": "--since"}
    answer = remote.post("wait", wanted, options=options, timeout_s=None)
    print_answer(
        answer, [f"{remote.name}: {answer['until']} holds after {answer['waited_ms']} ms"], as_json
    )
