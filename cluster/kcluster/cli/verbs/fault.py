"""`kcluster fault 'isolate: leader(orders-0)'`: any action of a scenario, on the running cluster.

Owns: the verb: its options, its request, the list of actions.  Never: carries an action out
(scenario/actions).  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import Section, control_options, print_change, section
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class FaultRequest(ControlRequest, verb="fault"):
    """`action`: as in a scenario file.  `duration`: undo it after this time; None for never."""

    action: str
    duration: str | None = None


@section(Section.FAULTS)
@click.command("fault")
@click.argument("action", metavar="[ACTION]", required=False)
@click.option("--for", "duration", metavar="TIME", help="Undo it after this time, such as 5s.")
@control_options
def command(action: str | None, duration: str | None, name: str | None, as_json: bool) -> None:
    """Perform an action of a scenario on the running cluster.

    ACTION is written as in a scenario file: 'isolate: leader(orders-0)', 'heal',
    'slow: {nodes: 3, latency: 50ms}'.  Without ACTION, all actions are listed.
    """
    if action is None:
        _list_actions()
    else:
        print_change(ask(FaultRequest(action, duration), name), as_json)


def _list_actions() -> None:
    from kcluster.scenario.actions import ACTIONS

    for verb, action in sorted(ACTIONS.items()):
        summary = " ".join((action.__doc__ or "").split()).split(". ")[0].rstrip(".")
        print(f"{verb:<16} {summary}.")


@handles(FaultRequest)
def handle(session: ControlSession, request: FaultRequest) -> ChangeResult:
    """Perform the action; the answer has what follows at once."""
    from msgspec.structs import replace

    from kcluster.scenario.language.loader import ScenarioError, one_line, parse_action
    from kcluster.scenario.language.words import moment
    from kcluster.scenario.perform import perform

    try:
        step = parse_action(request.action)
        if request.duration is not None:
            options = replace(step.options, for_=moment(request.duration))
            step = replace(step, options=options)
    except ScenarioError as error:
        raise ControlError(one_line(error), 2) from None
    except ValueError as error:
        raise ControlError(f"--for: {error}", 2) from None
    return session.change(lambda: perform(session.cluster, step))
