"""Facts about the clusters of pytest's items: the clock, the seeds, the command that repeats an
item.

Owns: the mark's name, the options that override it, the items' stash.  Never: imports more of
kcluster than the plugin does anyway, because it runs for every item of every project with the
plugin.  Kafka: no counterpart.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

from kcluster.world.environment import HASH_SEED

if TYPE_CHECKING:
    from kcluster.chance import Anew
    from kcluster.scenario.language.scenario import Scenario
    from kcluster.search.near import ProgramLife

MARK: Final = "kafka_cluster"
FIXTURE: Final = "kafka_cluster"
VIRTUAL_FIXTURE: Final = "virtual_cluster"
SHARED: Final = ("kafka_cluster_module", "kafka_cluster_session")
STAY_LIVE: Final = "is shared by tests, so it is live; only kafka_cluster can be in virtual time"
NOT_SEARCHED: Final = (
    'whose cluster is live; it needs clock="virtual" in the mark, or --kcluster-clock virtual'
)
HASH_SEED_INI: Final = "kcluster_hash_seed"
SEED_LIMIT_INI: Final = "kcluster_seed_limit"
SEED: Final = pytest.StashKey[int]()
"""The seed with which an item runs now, if it differs from the mark's seed."""

TRACE: Final = pytest.StashKey[list[str]]()
"""The sink of the traffic between clients and brokers, if the item is run with one."""


SEARCH: Final = "--kcluster-search"
SEARCH_PLAIN: Final = "--kcluster-search-plain"
STEPS_FILE: Final = "--kcluster-steps"
STEPS: Final[pytest.StashKey[Scenario]] = pytest.StashKey()
"""The scenario whose steps a search plays beside an item."""
ANEW: Final[pytest.StashKey[Anew]] = pytest.StashKey()
"""The moment of an item from which on chance is drawn anew."""
LIFE: Final[pytest.StashKey[list[ProgramLife]]] = pytest.StashKey()
"""The sink of the moments of an item that runs as the first of a search."""
KEEP_GOING: Final = "--kcluster-keep-going"
TRACE_FILE: Final = "--kcluster-trace"

KAFKA: Final = "kafka"
"""The clock of a real Kafka."""


def clock_of(item: pytest.Item) -> str:
    """The clock of an item's kafka_cluster, "live", "virtual" or KAFKA; the mark may be wrong."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and FIXTURE in callspec.params:
        return str(callspec.params[FIXTURE])
    chosen = item.config.getoption("--kcluster-clock")
    if chosen in ("live", "virtual", KAFKA):
        return str(chosen)
    mark = item.get_closest_marker(MARK)
    return "live" if mark is None else str(mark.kwargs.get("clock", "live"))


def refused_by_kafka(error: BaseException) -> str:
    """Why a real Kafka cannot do what a test wants; empty if the test failed otherwise."""
    verbs = sys.modules.get("kcluster.mirror.limits")
    return "" if verbs is None or not isinstance(error, verbs.RefusedOnKafka) else str(error)


def collision(item: pytest.Item, error: BaseException) -> str:
    """Why a verb of a test could not be performed beside the steps of a search: its node was in
    another state, such as killed; empty if the test failed otherwise."""
    states = sys.modules.get("kcluster.operations.states")
    if STEPS not in item.stash or states is None or not isinstance(error, states.WrongState):
        return ""
    return f"a step of the search came before a verb of the test: {error}"


def is_virtual(item: pytest.Item) -> bool:
    """Whether an item's kafka_cluster is in virtual time."""
    return FIXTURE in getattr(item, "fixturenames", ()) and clock_of(item) == "virtual"


def has_live_cluster(item: pytest.Item) -> bool:
    """Whether an item has a cluster in real time, in which nothing can be searched for."""
    names = getattr(item, "fixturenames", ())
    return any(name in (FIXTURE, *SHARED) for name in names) and not is_virtual(item)


def seeds_of(item: pytest.Item) -> range:
    """The seeds with which an item runs; empty for an item without seeds."""
    names = getattr(item, "fixturenames", ())
    has_seeds = VIRTUAL_FIXTURE in names or is_virtual(item)
    mark = item.get_closest_marker(MARK)
    keys: Mapping[str, object] = {} if mark is None else mark.kwargs
    number = item.config.getoption("--kcluster-seeds") or keys.get("seeds", 1)
    first = keys.get("seed", 1)
    if not has_seeds or item.config.getoption("--kcluster-seed") is not None:
        return range(0)
    if not isinstance(number, int) or not isinstance(first, int):
        return range(0)  # the fixture will refuse the mark
    return range(first, first + number)


def first_seed_of(item: pytest.Item) -> int:
    """The seed of an item that is run once; the mark may be wrong."""
    chosen = item.config.getoption("--kcluster-seed")
    mark = item.get_closest_marker(MARK)
    said = 1 if mark is None else mark.kwargs.get("seed", 1)
    return chosen if chosen is not None else said if isinstance(said, int) else 1


def wide_fixtures(item: Any) -> list[str]:
    """The fixtures that an item shares with others, in the order in which they are made."""
    known = item._fixtureinfo.name2fixturedefs
    return [x for x in item.fixturenames if x in known and known[x][-1].scope != "function"]


def narrow_use(item: Any) -> str:
    """The shared fixture of an item that takes the cluster of one test, and the fixture that it can
    take instead; empty if there is none."""
    known = item._fixtureinfo.name2fixturedefs
    if FIXTURE not in known or known[FIXTURE][-1].scope != "function":
        return ""
    for name in wide_fixtures(item):
        for definition in known[name]:
            if FIXTURE in definition.argnames:
                scope = definition.scope
                shared = SHARED[0] if scope in ("class", "module") else SHARED[1]
                return (
                    f"fixture {name} has the scope {scope}, and {FIXTURE} is a new cluster for each"
                    f" test: take {shared}"
                )
    return ""


def replay_of(item: pytest.Item, seed: int) -> str:
    """The command that runs a test in virtual time again with this seed."""
    mark = item.get_closest_marker(MARK)
    is_said = mark is not None and mark.kwargs.get("clock") == "virtual"
    chosen = item.config.getoption("--kcluster-clock")
    is_known = not is_virtual(item) or (is_said and chosen is None)
    clock = "" if is_known else f" --kcluster-clock {chosen or 'virtual'}"
    chosen_hash = os.environ.get(HASH_SEED, "")
    is_usual = chosen_hash in ("", item.config.getini(HASH_SEED_INI))
    environment = "" if is_usual else f"{HASH_SEED}={chosen_hash} "
    return f"{environment}pytest {shlex.quote(_from_here(item))}{clock} --kcluster-seed {seed}"


def _from_here(item: pytest.Item) -> str:
    """The test's name, relative to the directory in which pytest was called."""
    _, _, name = item.nodeid.partition("::")
    return f"{os.path.relpath(item.path, item.config.invocation_params.dir)}::{name}"
