"""`kcluster fork --at 12s 'kill: 2'`: the future with an action, beside the future without it.

Owns: the verb: its options, the two futures side by side.  Never: plays them
(scenario/forking.py, work/fork.py).  Kafka: no counterpart.
"""

from __future__ import annotations

import shutil
from typing import Any, Final

import click

from kcluster.cli.click_tools import Section, control_options, fail, print_json, section
from kcluster.cli.errors import CommandError
from kcluster.cli.remote import Remote
from kcluster.cli.table import side_by_side
from kcluster.config.files.durations import milliseconds
from kcluster.json_types import JsonObject

FUTURES: Final = ("here", "there")
"""The titles of the futures: without the action, and with it."""
SIDE_BY_SIDE: Final = 100
"""The least width of a terminal for the futures side by side; a narrower one shows them one after
the other."""


@section(Section.SCENARIOS)
@click.command("fork")
@click.argument("actions", nargs=-1, required=True)
@click.option(
    "--at",
    metavar="TIME",
    help="The moment: 12s since the first event (as kcluster events counts), or -5s from now."
    "  [default: now]",
)
@click.option(
    "--for",
    "duration",
    metavar="TIME",
    default="30s",
    show_default=True,
    help="How long both futures are played, before everything is repaired.",
)
@click.option("--play", metavar="SCENARIO", help="Fork a scenario instead of the running cluster.")
@click.option("--seed", type=click.IntRange(0), help="With --play: the seed of its run.")
@click.option(
    "-q", "--quiet", is_flag=True, help="Show only the difference, and the answer of each future."
)
@control_options
def command(
    actions: tuple[str, ...],
    at: str | None,
    duration: str,
    play: str | None,
    seed: int | None,
    quiet: bool,
    name: str | None,
    as_json: bool,
) -> None:
    """Show what would follow from an action, beside what follows without it.

    ACTIONS are written as in scenario files: 'kill: leader(orders-0)'. The past of the running
    cluster is played again in virtual time, with its seed, up to the moment; from there, it
    continues once with the actions and once without. The cluster itself is left alone. kcluster's
    own clients stand in for outside clients; the answer names every difference from the real past.
    """
    if play is not None:
        from kcluster.cli.work.fork import fork_scenario

        try:
            for_ms = milliseconds_of("--for", duration)
            at_ms = None if at is None else milliseconds_of("--at", at)
            answer = fork_scenario(play, seed, list(actions), at_ms, for_ms)
        except CommandError as error:
            fail(error, as_json)
    else:
        answer = fork_running(Remote(name), list(actions), at, duration)
    if as_json:
        print_json(answer)
    elif quiet:
        print("\n".join([answer["difference"], *answers(answer)]))
    else:
        print("\n".join(shown(answer, shutil.get_terminal_size((160, 50)).columns)))


def fork_running(remote: Remote, actions: list[str], at: str | None, duration: str) -> Any:
    """Play both futures of the running cluster."""
    wanted: JsonObject = {"actions": actions, "for": duration, "rows": False}
    if at is not None:
        offset_ms, clock = milliseconds_of("--at", at.removeprefix("-")), remote.get("clock")
        is_ago = at.startswith("-")
        wanted["at_ms"] = clock["now_ms"] - offset_ms if is_ago else clock["began_ms"] + offset_ms
    options = {"for": "--for", "*": ""}
    return remote.post("forks", wanted, options=options, timeout_s=None) | {"actions": actions}


def milliseconds_of(option: str, typed: str) -> int:
    """The time that was typed; CommandError if the text is no time."""
    try:
        return milliseconds(typed)
    except ValueError as error:
        raise CommandError(f"{option} {typed}: {error}", 2) from None


# ----------------------------------------------------------------------------------- the answer


def answers(answer: JsonObject) -> list[str]:
    """The answer of each future in a line: the last line about it."""
    return [f"{title(answer, future)} {answer[future]['lines'][-1]}" for future in FUTURES]


def title(answer: JsonObject, future: str) -> str:
    """The title of a future."""
    return (
        "with nothing more done:" if future == "here" else f"with {'; '.join(answer['actions'])}:"
    )


def shown(answer: JsonObject, width: int) -> list[str]:
    """The difference, then both futures side by side, `width` characters wide; one after the other
    if `width` is small."""
    left, right = ([title(answer, each), *answer[each]["lines"]] for each in FUTURES)
    both = [*left, "", *right] if width < SIDE_BY_SIDE else side_by_side(left, right, width)
    lines = [answer["difference"], "", *both]
    if answer["assumptions"]:
        lines += ["", "How the played past differs:", *answer["assumptions"]]
    return lines
