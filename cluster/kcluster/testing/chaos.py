"""Random faults beside a test: `chaos="one fault"` in the mark.

Owns: the scenario of such faults, and the swarm of a seed.  Never: performs a fault.
Kafka: no counterpart; swarm testing by Groce and others.

A seed draws its swarm first: which kinds of faults there are, how dense and how long they are.  So
one seed has a few long faults of one kind, and another one many short faults of all kinds.
"""

from __future__ import annotations

from random import Random

from msgspec import structs

from kcluster.config.files.problems import unknown
from kcluster.config.files.tree import from_python
from kcluster.scenario.language.profiles import find_profile
from kcluster.scenario.language.scenario import Scenario, read_scenario
from kcluster.scenario.language.words import MomentRange
from kcluster.scenario.play.nemesis import Profile
from kcluster.scenario.random_faults import RandomFaults
from kcluster.search.schedule import LENGTHS, PACES, SWARM_SHARE
from kcluster.testing.marks import CHAOS, MarkError


def chaos_of(word: str, seed: int) -> Scenario:
    """The faults of a seed, which go on until they are stopped.  `word`: one of CHAOS, or a
    profile's file.  MarkError, or ScenarioError with the places of all problems."""
    name = CHAOS.get(word, word)
    if find_profile(name, "") is None:
        raise MarkError(f"chaos: {word}: {unknown('word or profile', word, CHAOS)}")
    steps = from_python({"steps": [{"at": "0s", "faults": name}]})
    scenario = read_scenario(steps, "", {}, [])
    (step,) = scenario.steps
    assert isinstance(step.action, RandomFaults)
    drawn = RandomFaults(swarm_of(step.action.profile, Random(f"{seed}/chaos")))
    return structs.replace(scenario, steps=(structs.replace(step, action=drawn),))


def swarm_of(profile: Profile, rng: Random) -> Profile:
    """A profile with some of its kinds, or all, more or less dense and long."""
    kinds = profile.kinds
    if rng.random() < SWARM_SHARE:
        kept = tuple(kind for kind in kinds if rng.random() < 0.5)
        kinds = kept or (rng.choice(kinds),)
    pace, length = rng.choice(PACES), rng.choice(LENGTHS)
    return structs.replace(
        profile,
        kinds=kinds,
        every=_scaled(profile.every, pace),
        repair=_scaled(profile.repair, length),
    )


def _scaled(moment: MomentRange, factor: float) -> MomentRange:
    return MomentRange(round(moment.low_ms * factor), round(moment.high_ms * factor))
