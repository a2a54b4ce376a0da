"""Single actions of scenarios on a running cluster, from Python and from the command line.

Owns: performing one action by its name, now.  Never: knows what an action does (actions/).
Kafka: no counterpart.

    undo = do(cluster, "isolate", nodes="leader(orders-0)")
    do(cluster, "kill", "any broker")
    do(cluster, "slow", nodes=3, latency="50ms", undone_after="5s")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kcluster.clients.ledger import Ledger
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.loader import action_of
from kcluster.scenario.language.model import Step
from kcluster.scenario.play.live import LiveStage
from kcluster.scenario.play.stage import Stage

_STAGE: Final = "stage"


def do(
    cluster: Cluster, verb: str, short: Any = None, *, undone_after: Any = None, **keys: Any
) -> Callable[[], None]:
    """Perform an action, with its keys as in a scenario file or with its one value; returns the
    function that undoes it.  Raises ScenarioError for an unknown action or wrong keys, ClusterError
    for an action that cannot be performed."""
    return perform(cluster, action_of(verb, short, keys, undone_after))


def perform(cluster: Cluster, step: Step) -> Callable[[], None]:
    """Perform the action of a step now; returns the function that undoes it.  With `for` it is also
    undone after that time."""
    undo = cluster.call(lambda: perform_on(live_stage(cluster), step))
    return lambda: cluster.call(undo)


def perform_on(stage: Stage, step: Step) -> Callable[[], None]:
    """The same on a stage of either clock, between two dispatches."""
    problems = len(stage.problems)
    if step.options.as_:
        stage.remember(step.options.as_, step.action.affected(stage))
    undo = step.action.do(stage)
    if len(stage.problems) > problems:
        raise ClusterError(stage.problems.pop())
    undo = _once(undo) if undo is not None else _nothing
    if step.options.for_ is not None:
        stage.at(stage.now_ms + step.options.for_.low_ms, undo)
    return undo


def late_problem(cluster: Cluster) -> str | None:
    """Why an action could not be performed, if that was known only after `perform`; reported
    once."""

    def take() -> str | None:
        problems = live_stage(cluster).problems
        return problems.pop() if problems else None

    return cluster.call(take)


def live_stage(cluster: Cluster) -> LiveStage:
    """The cluster's stage, created once, so that names and the random sequence persist.  Called in
    the driver's thread."""
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
    """Undoes an action that cannot be undone."""
