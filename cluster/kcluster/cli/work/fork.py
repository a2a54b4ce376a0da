"""The work of `kcluster fork --play`: both futures of a scenario's run.

Owns: the answer, in the running cluster's form.  Never: plays them (scenario/play/fork.py),
prints them (verbs/fork.py).  Kafka: no counterpart.
"""

from __future__ import annotations

import msgspec

from kcluster.cli.errors import CommandError
from kcluster.cli.work.scenario_files import one_scenario
from kcluster.json_types import JsonObject
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.loader import ScenarioError, one_line, parse_action
from kcluster.scenario.language.model import Step
from kcluster.scenario.play.fork import Future, Futures, fork


def fork_scenario(
    word: str, seed: int | None, actions: list[str], at_ms: int | None, for_ms: int
) -> JsonObject:
    """Play both futures of a scenario's run; CommandError for wrong words."""
    scenario = one_scenario(word)
    steps = steps_of(actions)
    if at_ms is None:
        at_ms = scenario.duration_ms
    try:
        futures = fork(scenario, scenario.first_seed(seed), at_ms, steps, for_ms)
    except ClusterError as error:
        raise CommandError(str(error)) from None
    return {"scenario": scenario.name} | fork_values(futures, actions)


def steps_of(actions: list[str]) -> list[Step]:
    """The steps of the typed actions; CommandError for wrong ones."""
    try:
        return [parse_action(action) for action in actions]
    except ScenarioError as error:
        raise CommandError(one_line(error), 2) from None


def fork_values(futures: Futures, actions: list[str]) -> JsonObject:
    """Both futures for JSON, each with the lines that show it."""

    def values(future: Future) -> JsonObject:
        verdict = msgspec.json.decode(future.verdict.to_json())
        lines = [*future.problems, *future.verdict.lines()]
        return {"verdict": verdict, "problems": list(future.problems), "lines": lines}

    return {
        "at_ms": futures.at_ms,
        "actions": actions,
        "difference": futures.difference.text,
        "facts": msgspec.to_builtins(futures.difference),
        "here": values(futures.here),
        "there": values(futures.there),
        "assumptions": list(futures.assumptions),
    }
