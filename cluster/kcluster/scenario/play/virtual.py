"""The stage in virtual time.

Owns: the virtual driver of one run, conditions that are waited for.  Never: reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable

from kcluster.clients.wire import ClientStateMachine, Wire
from kcluster.drivers.virtual import VirtualDriver
from kcluster.evidence.history import Ledger
from kcluster.scenario.play.stage import StageBase


class VirtualStage(StageBase):
    """See module; `run` plays until `is_over` holds, or the limit."""

    def __init__(self, driver: VirtualDriver, seed: int, ledger: Ledger) -> None:
        self.driver = driver
        super().__init__(self.driver.plan, self.driver.dispatcher, self.driver.verbs, ledger, seed)
        self._waiting: list[tuple[Callable[[], bool], Callable[[], None]]] = []

    def start(self) -> None:
        """Start the cluster, and let it come up: the scenario's time begins when it serves."""
        self.driver.start()
        self.driver.run_until_condition(self.verbs.settled.all_serving, 120_000)
        self._began_ms = self.driver.now_ms

    @property
    def now_ms(self) -> int:
        return self.driver.now_ms - self._began_ms

    def at(self, at_ms: int, deed: Callable[[], None]) -> None:
        self.driver.at(self._began_ms + at_ms, deed)

    def when(self, holds: Callable[[], bool], deed: Callable[[], None]) -> None:
        self._waiting.append((holds, deed))

    def _add(self, client: ClientStateMachine) -> Wire:
        return self.driver.add_client(client)

    def run(self, is_over: Callable[[], bool], limit_ms: int) -> bool:
        """Let time pass; whether `is_over` came to hold within `limit_ms`."""

        def turn() -> bool:
            if self._waiting:
                self._look()
            return is_over()

        return self.driver.run_until_condition(turn, limit_ms)

    def run_until(self, until_ms: int) -> None:
        """Let time pass up to this, in ms since the scenario began."""
        self.run(_never, until_ms - self.now_ms)
        self.driver.run_until(self._began_ms + until_ms)

    def _look(self) -> None:
        for entry in tuple(self._waiting):
            holds, deed = entry
            if holds():
                self._waiting.remove(entry)
                deed()


def _never() -> bool:
    return False
