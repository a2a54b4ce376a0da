"""`kcluster fault 'isolate: leader(orders-0)'`: any action of a scenario, on the running cluster.

Owns: the verb: its options, its request, the list of actions.  Never: carries an action out
(scenario/actions).  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kcluster.cli.click_tools import Section, control_options, print_change, section
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles

if TYPE_CHECKING:
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
    """`action`: as in a scenario file.  `duration`: undo it after this time; None for never."""

    action: str
    duration: str | None = None


@section(Section.FAULTS)
@click.command("fault", cls=FaultCommand)
@click.argument("words", metavar="[ACTION]", nargs=-1)
@click.option(
    "--for", "duration", metavar="TIME", help="Undo the action after this time, such as 5s."
)
@control_options
def command(words: tuple[str, ...], duration: str | None, name: str | None, as_json: bool) -> None:
    """Perform an action of a scenario on the running cluster.

    ACTION is written as in a scenario file: 'isolate: leader(orders-0)', 'heal',
    'slow: {nodes: 3, latency: 50ms}'.  Without ACTION, all actions are listed.
    """
    if not words:
        from kcluster.scenario.language.reference import action_lines

        print("\n".join(f"{verb:<16} {text}" for verb, text in action_lines()))
    else:
        print_change(ask(FaultRequest(" ".join(words), duration), name), as_json)


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
        raise ControlError(f"--for {request.duration}: {error}", 2) from None
    return session.change(lambda: perform(session.cluster, step))
