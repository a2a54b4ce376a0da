"""The work of `kcluster shrink`.

Owns: which finding of the run is shrunk, the output.  Never: shrinks, words a finding (search/
does).  Kafka: no counterpart.
"""

from __future__ import annotations

import sys

from msgspec import structs

from kcluster.cli.click_tools import fail, print_json
from kcluster.cli.errors import CommandError
from kcluster.cli.work.scenario_files import one_scenario
from kcluster.cli.work.search import directory_of, write_and_print
from kcluster.search.examine import examine_scenario
from kcluster.search.findings import lead
from kcluster.search.trial import play


def shrink(word: str, seed: int | None, out: str | None, as_json: bool) -> None:
    """Shrink a scenario, and end the process with the exit code."""
    try:
        scenario = one_scenario(word)
    except CommandError as error:
        fail(error, as_json)
    first = scenario.first_seed(seed)
    checks = structs.replace(scenario.checks, anomalies={}, violations={})
    scenario = structs.replace(scenario, checks=checks)
    played = play(scenario, first)
    finding = lead(played.findings)
    if finding is None:
        if as_json:
            print_json({"finding": None, "outcome": played.outcome})
        else:
            print(f"{scenario.name}: no promise is broken  ({played.outcome}, seed {first})")
        sys.exit(0)
    report = examine_scenario(scenario, first, finding)
    write_and_print(report, directory_of(scenario.name, out), as_json)
    sys.exit(1)
