"""`kcluster fault 'isolate: leader(orders-0)'`: any action of a scenario, on the running cluster.

Owns: the verb: its options, its request, the list of actions.  Never: carries an action out
(actions/).  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kcluster.cli.click_tools import Section, control_options, make_change, section, wait_option
from kcluster.cli.control.arguments import seconds_text
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession

_TYPED: Final = "kcluster.fault.typed"
"""Where click keeps the words that were typed, for the help."""


class FaultCommand(click.Command):
    """`kcluster fault --help` lists the actions; `kcluster fault slow --help` explains one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_TYPED] = [word.partition(":")[0] for word in args if not word.startswith("-")]
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        from kcluster.scenario.language.reference import action_lines, pages
        from kcluster.scenario.language.reference_text import as_text

        actions = dict(action_lines())
        for word in ctx.meta.get(_TYPED, []):
            if word in actions:
                return as_text(pages()[word])
        lines = (f"  {verb:<16} {text}" for verb, text in actions.items())
        more = "kcluster fault slow --help shows the keys of slow."
        return "\n".join([super().get_help(ctx), "", "Actions:", *lines, "", more])


class FaultRequest(ControlRequest, verb="fault"):
    """`action`: as in a scenario file.  `duration`: undo it after this time; None for never.
    `wait`: answer when the cluster has settled."""

    action: str
    duration: str | None = None
    wait: bool = True


@section(Section.FAULTS)
@click.command("fault", cls=FaultCommand)
@click.argument("words", metavar="[ACTION]", nargs=-1)
@click.option(
    "--for", "duration", metavar="TIME", help="Undo the action after this time, such as 5s."
)
@wait_option
@control_options
def command(
    words: tuple[str, ...], duration: str | None, wait: bool, name: str | None, as_json: bool
) -> None:
    """Perform an action of a scenario on the running cluster.

    ACTION is written as in a scenario file: 'isolate: leader(orders-0)', 'heal',
    'slow: {nodes: 3, latency: 50ms}'.  Without ACTION, all actions are listed.  Returns when the
    controller has noticed which brokers are gone and ISRs have changed accordingly.
    """
    if not words:
        from kcluster.scenario.language.reference import action_lines

        print("\n".join(f"{verb:<16} {text}" for verb, text in action_lines()))
    else:
        make_change(FaultRequest(" ".join(words), duration, wait), name, as_json)


@handles(FaultRequest)
def handle(session: ControlSession, request: FaultRequest) -> ChangeResult:
    """Perform the action; the answer has what follows until the cluster has settled."""
    from msgspec.structs import replace

    from kcluster.operations.errors import ClusterError
    from kcluster.scenario.language.loader import ScenarioError, one_line, parse_action
    from kcluster.scenario.language.words import moment
    from kcluster.scenario.perform import late_problem, perform

    try:
        step = parse_action(request.action)
        if request.duration is not None:
            options = replace(step.options, for_=moment(request.duration))
            step = replace(step, options=options)
    except ScenarioError as error:
        raise ControlError(one_line(error), 2) from None
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
