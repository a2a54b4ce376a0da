"""What a search may draw for a scenario, unless it is told otherwise.

Owns: the choice of the profile for scenarios that leave nothing open.  Never: draws (schedule.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

from kcluster.scenario.language.profiles import shipped_profile
from kcluster.scenario.language.scenario import Scenario
from kcluster.search.schedule import Space, space_of
from kcluster.search.widened import with_client_rules, with_moves

PROFILE: Final = "overlapping_faults"
"""The profile of a scenario that leaves nothing open."""


def searched_space(scenario: Scenario) -> Space:
    """The space of a scenario: its own faults, or those of PROFILE with moves of its leaders and
    replicas, and with rules on its clients' requests."""
    profile = with_moves(shipped_profile(PROFILE), scenario)
    return space_of(scenario, with_client_rules(profile, scenario.workload))
