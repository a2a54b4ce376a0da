"""Scenario files, as verbs read them; the work of `kcluster scenario check`.

Owns: the form of their problems.  Never: reads one (scenario/language/), plays it.
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kcluster.cli.errors import CommandError
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.on_kafka import refused_steps
from kcluster.scenario.search import scenario_files


def check_files(files: tuple[str, ...], clock: str) -> None:
    """Check the scenarios of these files; with the clock `kafka`, also whether a real Kafka can
    play them."""
    scenarios = read_all(files)
    if clock == "kafka" and len(playable_on_kafka(scenarios)) < len(scenarios):
        sys.exit(2)
    print(f"{len(scenarios)} scenario{'s' if len(scenarios) > 1 else ''}: no problems")


def playable_on_kafka(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """The scenarios that a real Kafka can play; the steps that it refuses go to stderr."""
    refused = {scenario.source: [*refused_steps(scenario)] for scenario in scenarios}
    for steps in refused.values():
        print("\n".join(map(str, steps)), end="\n" if steps else "", file=sys.stderr)
    return [scenario for scenario in scenarios if not refused[scenario.source]]


def read_all(words: Sequence[str]) -> list[Scenario]:
    """The scenarios of files, names and directories.  All problems go to stderr; they end the
    process with exit code 2."""
    problems: list[str] = []
    scenarios = []
    for word in words:
        for file in scenario_files(word, problems):
            try:
                scenarios.append(Scenario.load(file))
            except ScenarioError as error:
                problems.append(str(error))
    if problems:
        print("\n".join(problems), file=sys.stderr)
        sys.exit(2)
    return scenarios


def one_scenario(word: str) -> Scenario:
    """The scenario of a file or name; CommandError unless it is exactly one."""
    problems: list[str] = []
    files = list(scenario_files(word, problems))
    if problems or len(files) != 1:
        several = f"{word} has {len(files)} scenarios; name one"
        raise CommandError("\n".join(problems) or several, 2)
    try:
        return Scenario.load(files[0])
    except ScenarioError as error:
        raise CommandError(str(error), 2) from None
