"""The one scenario that a verb plays.

Owns: reading it.  Never: plays it (scenario/play/).  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.cli.errors import CommandError
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.search import scenario_files


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
