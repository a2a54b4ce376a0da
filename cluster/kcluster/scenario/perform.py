"""Single actions of scenarios on a running cluster, from Python and from the command line.

Owns: performing one action by its name, now; the stage of clients that are started on a cluster.
Never: knows what an action does (actions/).
Kafka: no counterpart.

    undo = do(cluster, "isolate", nodes="leader(orders-0)")
    do(cluster, "kill", "any broker")
    do(cluster, "slow", nodes=3, latency="50ms", undone_after="5s")
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kcluster.clients.ledger import Ledger
from kcluster.handle.cluster import Cluster
from kcluster.handle.cluster_verbs import ClusterVerbs
from kcluster.handle.port import VerbPort
from kcluster.scenario.language.loader import action_of
from kcluster.scenario.language.model import Step
from kcluster.scenario.play.live import LiveStage
from kcluster.scenario.play.running_stage import RunningStage


class _ClientsStage(Struct):
    """The part of a cluster's handle that keeps the stage for its clients."""

    stage: RunningStage


def do(
    cluster: VerbPort,
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


def perform(cluster: VerbPort, step: Step) -> Callable[[], None]:
    """Perform the action of a step now; returns the function that undoes it.  With `for` it is also
    undone after that time."""
    options = step.options
    performed = cluster.perform_action(step.action, options.as_, options.undone_after_ms)
    return lambda: cluster.call(performed.undo)


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
