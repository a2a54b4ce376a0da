"""Single actions of scenarios on a running cluster, from Python and from the command line.

Owns: performing one action by its name, now.  Never: knows what an action does (actions/).
Kafka: no counterpart.

    undo = do(cluster, "isolate", nodes="leader(orders-0)")
    do(cluster, "kill", "any broker")
    do(cluster, "slow", nodes=3, latency="50ms", undone_after="5s")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kcluster.clients.ledger import Ledger
from kcluster.handle.cluster import Cluster
from kcluster.handle.verbs import ClusterVerbs
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.loader import action_of
from kcluster.scenario.language.model import Step
from kcluster.scenario.play.live import LiveStage
from kcluster.scenario.play.running_stage import RunningStage
from kcluster.scenario.play.stage import ScenarioStage

_STAGE: Final = "stage"


class Performed(Struct):
    """An action that was performed.  `nodes`: those it names, as far as it names any;
    `can_be_undone`: there is something to undo; `undo`: undoes it once, in the driver's thread."""

    nodes: tuple[int, ...]
    can_be_undone: bool
    undo: Callable[[], None]
    is_undone: bool = False


def do(
    cluster: ClusterVerbs,
    verb: str,
    short: object = None,
    *,
    undone_after: object = None,
    **keys: object,
) -> Callable[[], None]:
    """Perform an action, with its keys as in a scenario file or with its one value; returns the
    function that undoes it.  Raises ScenarioError for an unknown action or wrong keys, ClusterError
    for an action that cannot be performed."""
    return perform(cluster, action_of(verb, short, keys, undone_after))


def perform(cluster: ClusterVerbs, step: Step) -> Callable[[], None]:
    """Perform the action of a step now; returns the function that undoes it.  With `for` it is also
    undone after that time."""
    performed = perform_step(cluster, step)
    return lambda: undo(cluster, performed)


def perform_step(cluster: ClusterVerbs, step: Step) -> Performed:
    """Perform the action of a step now.  With `for` it is also undone after that time."""
    return cluster.call(lambda: _perform_on(running_stage(cluster), step))


def undo(cluster: ClusterVerbs, performed: Performed) -> None:
    """Undo an action, unless it is undone already."""
    cluster.call(performed.undo)


def perform_on(stage: ScenarioStage, step: Step) -> Callable[[], None]:
    """Perform the action on a stage of either clock, between two dispatches; returns the function
    that undoes it, in the same thread."""
    return _perform_on(stage, step).undo


def _perform_on(stage: ScenarioStage, step: Step) -> Performed:
    problems = len(stage.problems)
    nodes = step.action.about_to_affect(stage)
    if step.options.as_:
        stage.remember(step.options.as_, nodes)
    undo_it = step.action.do(stage)
    if len(stage.problems) > problems:
        raise ClusterError(stage.problems.pop())
    performed = Performed(nodes, undo_it is not None, _nothing)

    def undo_once() -> None:
        if undo_it is not None and not performed.is_undone:
            performed.is_undone = True
            undo_it()

    performed.undo = undo_once
    if step.options.for_ is not None:
        stage.at(stage.now_ms + step.options.for_.low_ms, undo_once)
    return performed


def late_problem(cluster: ClusterVerbs) -> str | None:
    """Why an action could not be performed, if that was known only after `perform`; reported
    once."""

    def take() -> str | None:
        problems = running_stage(cluster).problems
        return problems.pop() if problems else None

    return cluster.call(take)


def running_stage(cluster: ClusterVerbs) -> RunningStage:
    """The cluster's stage, created once, so that names and the random sequence persist.  Called in
    the driver's thread."""
    stage: RunningStage | None = cluster.belongings.get(_STAGE)
    if stage is None:
        stage = cluster.belongings[_STAGE] = new_stage(cluster)
    return stage


def new_stage(cluster: ClusterVerbs) -> RunningStage:
    """A stage whose time begins now.  Called in the driver's thread."""
    if isinstance(cluster, Cluster):
        return LiveStage(cluster, cluster.seed, Ledger())
    # Imported here: a live cluster has no use for virtual time.
    from kcluster.handle.world_cluster import WorldCluster
    from kcluster.scenario.play.world import WorldStage

    assert isinstance(cluster, WorldCluster), cluster
    return WorldStage(cluster, cluster.seed, Ledger())


def _nothing() -> None:
    """Undoes an action that cannot be undone."""
