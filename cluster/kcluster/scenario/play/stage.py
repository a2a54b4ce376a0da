"""Where a scenario is played: a cluster, its clock, and who is meant by what; the same for both.

Owns: what both stages share: targets, names, conditions, notes, what went wrong with a deed.
Never: owns a clock (virtual.py, live.py do).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import Final

from kcluster.clients.wire import ClientStateMachine, Wire
from kcluster.contract import Note
from kcluster.evidence.history import Ledger
from kcluster.operations.verbs import ClusterError, Verbs
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from kcluster.scenario.language.words import Condition, Targets, condition
from kcluster.scenario.play.conditions import Conditions
from kcluster.scenario.play.targets import Finder

_SETTLED: Final = condition("settled")


class StageBase(ABC):
    """One cluster, seen by steps.  `problems`: deeds that could not be done, in words."""

    def __init__(
        self, plan: Plan, dispatcher: Dispatcher, verbs: Verbs, ledger: Ledger, seed: int
    ) -> None:
        self.plan = plan
        self.dispatcher = dispatcher
        self.verbs = verbs
        self.ledger = ledger
        self.rng = Random(f"{seed}/scenario")
        self.problems: list[str] = []
        self._notes: list[Note] = []
        self._finder = Finder(plan, dispatcher, verbs, self.rng)
        self._client_ids: dict[str, int] = {}
        self._finder.clients = self._client_ids
        self._conditions = Conditions(dispatcher, verbs, ledger, self._notes)
        dispatcher.note_sinks = (*dispatcher.note_sinks, self._notes.append)

    # -------------------------------------------------------------------------- the clock's

    @property
    @abstractmethod
    def now_ms(self) -> int:
        """Since the scenario began."""

    @abstractmethod
    def at(self, at_ms: int, deed: Callable[[], None]) -> None:
        """Do something at a time to come, in ms since the scenario began."""

    @abstractmethod
    def when(self, holds: Callable[[], bool], deed: Callable[[], None]) -> None:
        """Do something as soon as this holds."""

    @abstractmethod
    def _add(self, client: ClientStateMachine) -> Wire:
        """Let a client begin."""

    # -------------------------------------------------------------------------- what is meant

    def add_client(self, name: str, client: ClientStateMachine) -> Wire:
        """Let a client of the workload begin; targets mean it by its name."""
        wire = self._add(client)
        self._client_ids[name] = wire.client_id
        return wire

    def client_ids(self) -> dict[str, int]:
        """The workload's clients: their ids in the fabric by name."""
        return dict(self._client_ids)

    def nodes(self, targets: Targets) -> tuple[int, ...]:
        """The ids of the nodes that are meant, now; ClusterError if there is none."""
        return self._finder.find(targets)

    def remember(self, name: str, nodes: tuple[int, ...]) -> None:
        """Call these by a name from now on."""
        self._finder.names[name] = nodes

    def holds(self, condition: Condition, since: int = 0) -> bool:
        """Whether a condition holds; events count from the note with index `since` on."""
        return self._conditions.holds(condition, since)

    def is_whole(self) -> bool:
        """All brokers serve, and every replica is in sync."""
        return self._conditions.holds(_SETTLED)

    def value(self, condition: Condition) -> int:
        """The number that a condition compares, for the words when it does not hold."""
        return self._conditions.value(condition)

    def high_watermark(self, topic: str, partition: int) -> int:
        """Of a partition's leader; 0 if it has none."""
        return self._conditions.high_watermark(topic, partition)

    def notes(self) -> list[Note]:
        """All so far, oldest first."""
        return self._notes

    # ---------------------------------------------------------------------------- deeds

    def refuse(self, text: str) -> None:
        """A deed could not be done: the run tells nothing any more."""
        self.problems.append(text)

    def attempt(self, what: str, deed: Callable[[], None]) -> None:
        """Do a deed; what it refuses is a problem of the run."""
        try:
            deed()
        except ClusterError as error:
            self.refuse(f"{what}: {error}")
