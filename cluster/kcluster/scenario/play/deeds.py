"""Deeds of scenarios on a live cluster at hand, from Python and from the command line.

Owns: doing one deed by its name, now.  Never: knows what it does (actions/).

    undo = do(cluster, "isolate", nodes="leader(orders-0)")
    do(cluster, "kill", "any broker")
    do(cluster, "slow", nodes=3, latency="50ms", undone_after="5s")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kcluster.evidence.history import Ledger
from kcluster.handle.cluster import Cluster
from kcluster.operations.verbs import ClusterError
from kcluster.scenario.language.loader import deed_of
from kcluster.scenario.language.model import Step
from kcluster.scenario.play.live import LiveStage
from kcluster.scenario.play.stage import StageBase

_STAGE: Final = "stage"


def do(
    cluster: Cluster, verb: str, short: Any = None, *, undone_after: Any = None, **keys: Any
) -> Callable[[], None]:
    """Do a deed with the keys that it has in a scenario file, or with its one value; returns what
    undoes it.  ScenarioError for a deed that does not exist or wrong keys, ClusterError for one
    that cannot be done."""
    return perform(cluster, deed_of(verb, short, keys, undone_after))


def perform(cluster: Cluster, step: Step) -> Callable[[], None]:
    """Do the deed of a step now; returns what undoes it, which happens by itself after `for`."""
    undo = cluster.call(lambda: perform_on(_stage(cluster), step))
    return lambda: cluster.call(undo)


def perform_on(stage: StageBase, step: Step) -> Callable[[], None]:
    """The same on either clock, between two dispatches."""
    problems = len(stage.problems)
    if step.options.as_:
        stage.remember(step.options.as_, step.action.affected(stage))
    undo = step.action.do(stage)
    if len(stage.problems) > problems:
        raise ClusterError(stage.problems[-1])
    undo = _once(undo) if undo is not None else _nothing
    if step.options.for_ is not None:
        stage.at(stage.now_ms + step.options.for_.low_ms, undo)
    return undo


def _stage(cluster: Cluster) -> LiveStage:
    """One for each cluster, so that names and randomness go on; in the driver's thread."""
    stage: LiveStage | None = cluster.belongings.get(_STAGE)
    if stage is None:
        stage = cluster.belongings[_STAGE] = LiveStage(cluster, cluster.seed, Ledger())
    return stage


def _once(undo: Callable[[], None]) -> Callable[[], None]:
    left = [undo]

    def act() -> None:
        if left:
            left.pop()()

    return act


def _nothing() -> None:
    """A deed that cannot be undone."""
