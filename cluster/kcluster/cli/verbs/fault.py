"""`kcluster fault 'isolate: leader(orders-0)'`: any action of a scenario, on the running cluster.

Owns: the verb: its options, its request, the list of actions.  Never: carries an action out
(scenario/actions).  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import Section, control_options, make_change, section, wait_option
from kcluster.cli.control.arguments import seconds_text
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession


class FaultRequest(ControlRequest, verb="fault"):
    """`action`: as in a scenario file.  `duration`: undo it after this time; None for never.
    `wait`: answer when the cluster has settled."""

    action: str
    duration: str | None = None
    wait: bool = True


@section(Section.FAULTS)
@click.command("fault")
@click.argument("action", metavar="[ACTION]", required=False)
@click.option("--for", "duration", metavar="TIME", help="Undo it after this time, such as 5s.")
@wait_option
@control_options
def command(
    action: str | None, duration: str | None, wait: bool, name: str | None, as_json: bool
) -> None:
    """Perform an action of a scenario on the running cluster.

    ACTION is written as in a scenario file: 'isolate: leader(orders-0)', 'heal',
    'slow: {nodes: 3, latency: 50ms}'.  Without ACTION, all actions are listed.  Returns when the
    controller has noticed which brokers are gone and ISRs have changed accordingly.
    """
    if action is None:
        _list_actions()
    else:
        make_change(FaultRequest(action, duration, wait), name, as_json)


def _list_actions() -> None:
    from kcluster.scenario.actions import ACTIONS

    for verb, action in sorted(ACTIONS.items()):
        summary = " ".join((action.__doc__ or "").split()).split(". ")[0].rstrip(".")
        print(f"{verb:<16} {summary}.")


@handles(FaultRequest)
def handle(session: ControlSession, request: FaultRequest) -> ChangeResult:
    """Perform the action; the answer has what follows until the cluster has settled."""
    from msgspec.structs import replace

    from kcluster.operations.errors import ClusterError
    from kcluster.scenario.language.loader import ScenarioError, parse_action
    from kcluster.scenario.language.words import moment
    from kcluster.scenario.perform import late_problem, perform

    try:
        step = parse_action(request.action)
        if request.duration is not None:
            options = replace(step.options, for_=moment(request.duration))
            step = replace(step, options=options)
    except ScenarioError as error:
        raise ControlError("; ".join(problem.text for problem in error.problems), 2) from None
    except ValueError as error:
        raise ControlError(f"--for {request.duration}: {error}", 2) from None
    cluster = session.cluster

    def operation(say: Say) -> None:
        perform(cluster, step)
        if not request.wait:
            return
        if not cluster.is_settled():
            limit = seconds_text(cluster.settle_limit_s)
            say(f"{session.name}: waiting until the cluster has settled (up to {limit})")
            if not cluster.wait_until_settled():
                say(f"{session.name}: not settled yet: kcluster status")
        if (problem := late_problem(cluster)) is not None:
            raise ClusterError(problem)

    return session.change(operation)
