"""`kcluster fork --at 12s 'kill: 2'`: what would follow from an action, and what follows without.

Owns: the verb: its options, the two futures side by side.  Never: plays them
(scenario/forking.py, scenario/play/fork.py).  Kafka: no counterpart.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

import click

from kcluster.cli.click_tools import Section, control_options, fail, print_json, section
from kcluster.cli.errors import CommandError
from kcluster.cli.remote import Remote
from kcluster.json_types import JsonObject

if TYPE_CHECKING:
    from kcluster.scenario.language.model import Step
    from kcluster.scenario.language.scenario import Scenario
    from kcluster.scenario.play.fork import Future, Futures


FUTURES: Final = ("here", "there")
"""Without the action, and with it."""
SIDE_BY_SIDE: Final = 100
"""A terminal that is narrower shows the futures one after the other."""


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
@click.option("-q", "--quiet", is_flag=True, help="Show only the answer of each future.")
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
    cluster, with its seed, is played again in virtual time up to the moment, and from there on
    twice. The cluster itself is left alone. Clients of the project's own stand in for those from
    outside; the answer names what is not exactly as it was.
    """
    if play is not None:
        try:
            answer = fork_scenario(play, seed, list(actions), at, duration)
        except CommandError as error:
            fail(error, as_json)
    else:
        answer = fork_running(Remote(name), list(actions), at, duration)
    if as_json:
        print_json(answer)
    elif quiet:
        print("\n".join(answers(answer)))
    else:
        print("\n".join(shown(answer, shutil.get_terminal_size((160, 50)).columns)))


def fork_running(remote: Remote, actions: list[str], at: str | None, duration: str) -> Any:
    """Play both futures of the running cluster."""
    wanted: JsonObject = {"actions": actions, "for": duration, "rows": False}
    if at is not None:
        offset_ms, clock = _milliseconds("--at", at.removeprefix("-")), remote.get("clock")
        is_ago = at.startswith("-")
        wanted["at_ms"] = clock["now_ms"] - offset_ms if is_ago else clock["began_ms"] + offset_ms
    options = {"for": "--for", "*": ""}
    return remote.post("forks", wanted, options=options, timeout_s=None) | {"actions": actions}


def fork_scenario(
    word: str, seed: int | None, actions: list[str], at: str | None, duration: str
) -> JsonObject:
    """Play both futures of a scenario's run; CommandError for wrong words."""
    from kcluster.operations.errors import ClusterError
    from kcluster.scenario.play.fork import fork

    scenario = one_scenario(word)
    steps, for_ms = steps_of(actions), _milliseconds("--for", duration)
    at_ms = scenario.duration_ms if at is None else _milliseconds("--at", at)
    try:
        futures = fork(scenario, scenario.first_seed(seed), at_ms, steps, for_ms)
    except ClusterError as error:
        raise CommandError(str(error)) from None
    return {"scenario": scenario.name} | fork_values(futures, actions)


def one_scenario(word: str) -> Scenario:
    """The scenario of a file or name; CommandError unless it is exactly one."""
    from kcluster.scenario.language.loader import ScenarioError
    from kcluster.scenario.language.scenario import Scenario
    from kcluster.scenario.search import scenario_files

    problems: list[str] = []
    files = list(scenario_files(word, problems))
    if problems or len(files) != 1:
        several = f"{word} has {len(files)} scenarios; name one"
        raise CommandError("\n".join(problems) or several, 2)
    try:
        return Scenario.load(files[0])
    except ScenarioError as error:
        raise CommandError(str(error), 2) from None


def steps_of(actions: list[str]) -> list[Step]:
    """The actions as typed; CommandError for wrong ones."""
    from kcluster.scenario.language.loader import ScenarioError, one_line, parse_action

    try:
        return [parse_action(action) for action in actions]
    except ScenarioError as error:
        raise CommandError(one_line(error), 2) from None


def _milliseconds(option: str, typed: str) -> int:
    from kcluster.config.files.durations import milliseconds

    try:
        return milliseconds(typed)
    except ValueError as error:
        raise CommandError(f"{option} {typed}: {error}", 2) from None


# ----------------------------------------------------------------------------------- the answer


def fork_values(futures: Futures, actions: list[str]) -> JsonObject:
    """Both futures for JSON, each with the lines that show it."""
    import msgspec

    def values(future: Future) -> JsonObject:
        verdict = msgspec.json.decode(future.verdict.to_json())
        lines = [*future.problems, *future.verdict.lines()]
        return {"verdict": verdict, "problems": list(future.problems), "lines": lines}

    return {
        "at_ms": futures.at_ms,
        "actions": actions,
        "here": values(futures.here),
        "there": values(futures.there),
        "assumptions": list(futures.assumptions),
    }


def answers(answer: JsonObject) -> list[str]:
    """A line for each future: the last of its own."""
    return [f"{title(answer, future)} {answer[future]['lines'][-1]}" for future in FUTURES]


def title(answer: JsonObject, future: str) -> str:
    """What begins a future."""
    return (
        "with nothing more done:" if future == "here" else f"with {'; '.join(answer['actions'])}:"
    )


def shown(answer: JsonObject, width: int) -> list[str]:
    """Both futures side by side, `width` characters wide; one after the other if that is narrow."""
    from kcluster.cli.table import side_by_side

    left, right = ([title(answer, each), *answer[each]["lines"]] for each in FUTURES)
    lines = [*left, "", *right] if width < SIDE_BY_SIDE else side_by_side(left, right, width)
    if answer["assumptions"]:
        lines += ["", "How the played past differs:", *answer["assumptions"]]
    return lines
