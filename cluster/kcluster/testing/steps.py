"""The steps of a scenario file beside a test: `kafka_cluster.play("leader_dies.yaml")`.

Owns: `PlayedSteps`, a test's interface to it.  Never: performs a step (scenario/play/runner.py
does).  Kafka: Trogdor's agents beside a system test.
"""

from __future__ import annotations

from kcluster.handle.cluster_verbs import ClusterVerbs
from kcluster.operations.conditions import limit_ms_of
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.perform import new_stage
from kcluster.scenario.play.runner import Runner


class PlayedSteps:
    """The steps of one file on a running cluster.  They begin at once, by the cluster's clock; open
    choices are drawn from the cluster's seed."""

    def __init__(self, cluster: ClusterVerbs, scenario: Scenario) -> None:
        self._cluster = cluster
        self._runner: Runner = cluster.call(lambda: Runner(scenario, new_stage(cluster)))
        cluster.call(self._runner.start)

    @property
    def is_done(self) -> bool:
        """Whether all steps were performed; some may still have to be undone (`for`)."""
        return self._cluster.call(lambda: self._runner.is_done)

    def wait(self, within: str | float = 60.0) -> None:
        """Wait until all steps were performed; ClusterError if one could not be, or after this time
        (`90s`, or seconds)."""
        driver = self._cluster.driver
        future = self._cluster.call(lambda: driver.when(self._is_over))
        try:
            future.result(limit_ms_of(within) / 1000)
        except TimeoutError:
            self._cluster.call(lambda: driver.forget_condition(future))
            raise ClusterError(f"not all steps were performed within {within}") from None
        self.check()

    def stop(self) -> None:
        """Play no more steps, and undo every fault."""

        def stop() -> None:
            self._runner.is_ended = True
            self._runner.heal()

        self._cluster.call(stop)
        self.check()

    def check(self) -> None:
        """Raise ClusterError if a step could not be performed; once for each.  Steps that need not
        be possible (`if_possible`) are none of the test's business."""
        problems = self._runner.stage.problems
        found, problems[:] = problems[:], []
        if found and not all(x.options.if_possible for x in self._runner.scenario.steps):
            raise ClusterError("; ".join(found))

    def _is_over(self) -> bool:
        return self._runner.is_done or bool(self._runner.stage.problems)
