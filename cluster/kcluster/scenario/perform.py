"""Single actions of scenarios on a running cluster, from Python and from the command line.

Owns: performing one action by its name, now.  Never: knows what an action does (actions/).
Kafka: no counterpart.

    undo = do(cluster, "isolate", nodes="leader(orders-0)")
    do(cluster, "kill", "any broker")
    do(cluster, "slow", nodes=3, latency="50ms", undone_after="5s")
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kcluster.actions import performing
from kcluster.actions.performing import Performed
from kcluster.actions.stage import Stage
from kcluster.clients.ledger import Ledger
from kcluster.handle.cluster import Cluster
from kcluster.handle.cluster_verbs import ClusterVerbs
from kcluster.scenario.language.loader import action_of
from kcluster.scenario.language.model import Step
from kcluster.scenario.play.live import LiveStage
from kcluster.scenario.play.running_stage import RunningStage


class _ClientsStage(Struct):
    """The part of a cluster's handle that keeps the stage for its clients."""

    stage: RunningStage


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
    return cluster.call(lambda: perform_on(cluster.stage, step))


def undo(cluster: ClusterVerbs, performed: Performed) -> None:
    """Undo an action, unless it is undone already."""
    cluster.call(performed.undo)


def perform_on(stage: Stage, step: Step) -> Performed:
    """Perform the action of a step on a stage, in the driver's thread."""
    undone_after = step.options.for_
    undone_after_ms = None if undone_after is None else undone_after.low_ms
    return performing.perform(stage, step.action, step.options.as_, undone_after_ms)


def late_problem(cluster: ClusterVerbs) -> str | None:
    """The reason why an action could not be performed, if that became known only after `perform`;
    reported once."""
    problems = cluster.stage.problems
    return cluster.call(lambda: problems.pop() if problems else None)


def running_stage(cluster: ClusterVerbs) -> RunningStage:
    """The stage for clients that are started on the cluster, created once.  Called in the driver's
    thread."""

    def make() -> _ClientsStage:
        stage = new_stage(cluster)
        stage.clients = cluster.stage.clients  # targets of actions find the clients by these names
        return _ClientsStage(stage)

    return cluster.parts.of(_ClientsStage, make).stage


def new_stage(cluster: ClusterVerbs) -> RunningStage:
    """A stage whose time begins now.  Called in the driver's thread."""
    if isinstance(cluster, Cluster):
        return LiveStage(cluster, cluster.seed, Ledger())
    # Imported here, because a live cluster does not need virtual time.
    from kcluster.handle.world_cluster import WorldCluster
    from kcluster.scenario.play.world import WorldStage

    assert isinstance(cluster, WorldCluster), cluster
    return WorldStage(cluster, cluster.seed, Ledger())
