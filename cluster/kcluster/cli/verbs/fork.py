"""`kcluster fork --at 12s 'kill: 2'`: what would follow from an action, and what follows without.

Owns: the verb: its options, its request, the two futures side by side.  Never: plays them
(scenario/forking.py, scenario/play/fork.py).  Kafka: no counterpart.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

import click

from kcluster.cli.click_tools import Section, control_options, fail, print_json, section
from kcluster.cli.control.client import Conversation
from kcluster.cli.control.protocol import ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession
    from kcluster.scenario.language.model import Step
    from kcluster.scenario.play.fork import Future, Futures


FUTURES: Final = ("here", "there")
"""Without the action, and with it."""
SIDE_BY_SIDE: Final = 100
"""A terminal that is narrower shows the futures one after the other."""


class ForkRequest(ControlRequest, verb="fork"):
    """`actions`: as in a scenario file.  `at`: time since the cluster's first event, or -5s before
    now; None for now.  `duration`: how long the futures are."""

    actions: list[str]
    at: str | None = None
    duration: str = "30s"


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
    request = ForkRequest(list(actions), at, duration)
    if play is not None:
        try:
            answer = fork_scenario(play, seed, request)
        except ControlError as error:
            fail(error, as_json)
    else:
        with Conversation(name) as conversation:
            answer = conversation.ask(request, timeout_s=None)
    if as_json:
        print_json(answer)
    elif quiet:
        print("\n".join(answers(answer)))
    else:
        print("\n".join(shown(answer, shutil.get_terminal_size((160, 50)).columns)))


@handles(ForkRequest)
def handle(session: ControlSession, request: ForkRequest) -> dict[str, Any]:
    """Play both futures of the running cluster."""
    from kcluster.scenario.forking import fork_cluster

    steps, for_ms = steps_of(request.actions), _milliseconds("--for", request.duration)
    at_ms = None
    if request.at is not None:
        offset_ms = _milliseconds("--at", request.at.removeprefix("-"))
        is_ago = request.at.startswith("-")
        at_ms = session.cluster.clock().now_ms - offset_ms if is_ago else None
        at_ms = at_ms if is_ago else session.origin_ms + offset_ms
    futures = fork_cluster(session.cluster, steps, at_ms, for_ms)
    return {"cluster": session.name} | fork_values(futures, request.actions)


def fork_scenario(word: str, seed: int | None, request: ForkRequest) -> dict[str, Any]:
    """Play both futures of a scenario's run; ControlError for wrong words."""
    from kcluster.operations.errors import ClusterError
    from kcluster.scenario.play.fork import fork

    scenario = one_scenario(word)
    steps, for_ms = steps_of(request.actions), _milliseconds("--for", request.duration)
    at_ms = scenario.duration_ms if request.at is None else _milliseconds("--at", request.at)
    try:
        futures = fork(scenario, scenario.first_seed(seed), at_ms, steps, for_ms)
    except ClusterError as error:
        raise ControlError(str(error)) from None
    return {"scenario": scenario.name} | fork_values(futures, request.actions)


def one_scenario(word: str) -> Any:
    """The scenario of a file or name; ControlError unless it is exactly one."""
    from kcluster.scenario.language.loader import ScenarioError
    from kcluster.scenario.language.scenario import Scenario
    from kcluster.scenario.search import scenario_files

    problems: list[str] = []
    files = list(scenario_files(word, problems))
    if problems or len(files) != 1:
        several = f"{word} has {len(files)} scenarios; name one"
        raise ControlError("\n".join(problems) or several, 2)
    try:
        return Scenario.load(files[0])
    except ScenarioError as error:
        raise ControlError(str(error), 2) from None


def steps_of(actions: list[str]) -> list[Step]:
    """The actions as typed; ControlError for wrong ones."""
    from kcluster.scenario.language.loader import ScenarioError, one_line, parse_action

    try:
        return [parse_action(action) for action in actions]
    except ScenarioError as error:
        raise ControlError(one_line(error), 2) from None


def _milliseconds(option: str, typed: str) -> int:
    from kcluster.config.files.durations import milliseconds

    try:
        return milliseconds(typed)
    except ValueError as error:
        raise ControlError(f"{option} {typed}: {error}", 2) from None


# ----------------------------------------------------------------------------------- the answer


def fork_values(futures: Futures, actions: list[str]) -> dict[str, Any]:
    """Both futures for JSON, each with the lines that show it."""
    import msgspec

    def values(future: Future) -> dict[str, Any]:
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


def answers(answer: dict[str, Any]) -> list[str]:
    """A line for each future: the last of its own."""
    return [f"{title(answer, future)} {answer[future]['lines'][-1]}" for future in FUTURES]


def title(answer: dict[str, Any], future: str) -> str:
    """What begins a future."""
    return (
        "with nothing more done:" if future == "here" else f"with {'; '.join(answer['actions'])}:"
    )


def shown(answer: dict[str, Any], width: int) -> list[str]:
    """Both futures side by side, `width` characters wide; one after the other if that is narrow."""
    from kcluster.cli.table import side_by_side

    left, right = ([title(answer, each), *answer[each]["lines"]] for each in FUTURES)
    lines = [*left, "", *right] if width < SIDE_BY_SIDE else side_by_side(left, right, width)
    if answer["assumptions"]:
        lines += ["", "How the played past differs:", *answer["assumptions"]]
    return lines
