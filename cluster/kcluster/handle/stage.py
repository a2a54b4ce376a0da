"""The stage of a running cluster, on which its handle performs actions.

Owns: the stage's time (from its creation), timers and conditions on the cluster's clock.
Never: lets time pass, starts a client.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from kcluster.actions.stage import Stage
from kcluster.handle.driver import HandleDriver
from kcluster.operations.verbs import Verbs
from kcluster.runtime.build import Plan


class ClusterStage(Stage):
    """A stage on an open cluster; used in the driver's thread."""

    def __init__(self, plan: Plan, driver: HandleDriver, verbs: Verbs, seed: int) -> None:
        super().__init__(plan, driver.dispatcher, verbs, seed)
        self._driver = driver
        self._began_ms = driver.now_ms()

    @property
    def now_ms(self) -> int:
        return self._driver.now_ms() - self._began_ms

    def at(self, at_ms: int, callback: Callable[[], None]) -> None:
        self._driver.at((self._began_ms + at_ms) * 1000, callback)

    def when(self, holds: Callable[[], bool], callback: Callable[[], None]) -> None:
        def run(future: Future[None]) -> None:
            error = future.exception()
            if error is None:
                self._driver.at(self.dispatcher.now_us, callback)
            else:
                self.problems.append(str(error))

        self._driver.when(holds).add_done_callback(run)
