"""The stage of a running cluster, on which its handle performs actions, and its clock.

Owns: timers and conditions of actions, on the cluster's clock.  Never: lets time pass,
starts a client.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from kcluster.actions.stage import Stage
from kcluster.handle.driver import HandleDriver
from kcluster.operations.verbs import Verbs
from kcluster.runtime.build import Plan


class DriverClock:
    """The clock of a driver, as a stage sees it.  `refuse`: called with the reason if a condition
    can no longer hold."""

    def __init__(self, driver: HandleDriver, refuse: Callable[[str], None]) -> None:
        self._driver = driver
        self._refuse = refuse

    @property
    def now_ms(self) -> int:
        return self._driver.now_ms()

    def at(self, at_ms: int, callback: Callable[[], None]) -> None:
        self._driver.at(at_ms * 1000, callback)

    def when(self, holds: Callable[[], bool], callback: Callable[[], None]) -> None:
        def run(future: Future[None]) -> None:
            error = future.exception()
            if error is None:
                self._driver.at(self._driver.dispatcher.now_us, callback)
            else:
                self._refuse(str(error))

        self._driver.when(holds).add_done_callback(run)


class ClusterStage(Stage):
    """A stage on an open cluster; used in the driver's thread."""

    def __init__(self, plan: Plan, driver: HandleDriver, verbs: Verbs, seed: int) -> None:
        clock = DriverClock(driver, self.refuse)
        super().__init__(plan, driver.dispatcher, verbs, clock, seed)
