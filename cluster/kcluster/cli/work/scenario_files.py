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
from kcluster.scenario.search import scenario_files


def check_files(files: tuple[str, ...]) -> None:
    """Check the scenarios of these files."""
    scenarios = read_all(files)
    print(f"{len(scenarios)} scenario{'s' if len(scenarios) > 1 else ''}: no problems")


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
