"""`kcluster fault 'isolate: leader(orders-0)'`: any action of a scenario, on the running cluster.

Owns: the verb: its options, its help.  Never: carries an action out (actions/).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import Section, control_options, section, wait_option

_TYPED: Final = "kcluster.fault.typed"
"""The key under which click keeps the typed words, for the help."""


class FaultCommand(click.Command):
    """`kcluster fault --help` lists the actions; `kcluster fault slow --help` explains one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_TYPED] = [word.partition(":")[0] for word in args if not word.startswith("-")]
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        found = _help(ctx.meta.get(_TYPED, []))
        if isinstance(found, str):
            return found
        lines = (f"  {line}" for line in found)
        more = "kcluster fault slow --help shows the keys of slow."
        return "\n".join([super().get_help(ctx), "", "Actions:", *lines, "", more])


def _help(words: Iterable[str]) -> str | list[str]:
    """The help of the first action among the words; without one, a line for each action."""
    from kcluster.cli.work.fault import help_of, list_lines

    return help_of(words) or list(list_lines())


@section(Section.FAULTS)
@click.command("fault", cls=FaultCommand)
@click.argument("action", metavar="[ACTION]", nargs=-1)
@click.option(
    "--for", "duration", metavar="TIME", help="Undo the action after this time, such as 5s."
)
@wait_option
@control_options
def command(
    action: tuple[str, ...], duration: str | None, wait: bool, name: str | None, as_json: bool
) -> None:
    """Perform an action of a scenario on the running cluster.

    ACTION is written as in a scenario file: 'isolate: leader(orders-0)', 'heal',
    'slow: {nodes: 3, latency: 50ms}'.  Without ACTION, all actions are listed.  Each is
    a verb, too: kcluster fill-disk 2.  Returns when the controller has noticed which brokers are
    gone and ISRs have changed accordingly.
    """
    if action:
        act(" ".join(action), name, as_json, wait=wait, duration=duration)
        return
    print("\n".join(_help(())))
