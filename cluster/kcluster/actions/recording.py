"""The steps of a scenario that would repeat the operations on a cluster.

Owns: Recording, the steps made from events so far.  Never: knows an action (each reads its own
events, in `record`), writes a file (scenario/recorded.py does).  Kafka: no counterpart.

A step is made from the event that an operation leaves, so operations by the command line, Python or
an administrator's client give equal steps.  An action that was undone as a whole later is one step
with `for`.  So are a shutdown and the next start: when the file is played, the broker must not
start before its shutdown has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Protocol

from msgspec import Struct

from kcluster.contract import CONTROLLER_ID, Event
from kcluster.operations.targets import BrokerTarget, ControllerTarget, Targets


class Recordable(Protocol):
    """The part of an action that this module needs."""

    VERB: ClassVar[str]

    def written(self) -> object:
        """The action in a file, without its verb."""


class RecordedStep(Struct):
    """An action, `at_ms` after the start.  `for_ms`: the time after which it was undone; None if it
    was not.  `event`: the event from which the step was made."""

    at_ms: int
    action: Recordable
    event: Event
    for_ms: int | None = None

    @property
    def verb(self) -> str:
        """The action's verb in files."""
        return self.action.VERB

    @property
    def keys(self) -> object:
        """The action in a file, without its verb."""
        return self.action.written()


class Recording:
    """The steps so far.  `topics`, `brokers`: topics and brokers that exist although no step
    creates them; `halted`: brokers whose next death is part of another step."""

    def __init__(self, topics: Sequence[str], brokers: Sequence[int]) -> None:
        self.topics = tuple(topics)
        self.brokers = list(brokers)
        self.halted: set[int] = set()
        self.at_ms = 0
        self.steps: list[RecordedStep] = []

    def add(self, action: Recordable, event: Event) -> None:
        """Add a step with this action, which the event shows to have been performed."""
        self.steps.append(RecordedStep(self.at_ms, action, event))

    def undo(self, was_made: Callable[[Event], bool]) -> bool:
        """End the newest step in force whose event fits; False if there is none."""
        for step in reversed(self.steps):
            if step.for_ms is None and was_made(step.event):
                step.for_ms = max(1, self.at_ms - step.at_ms)
                return True
        return False


def these(nodes: Iterable[int]) -> Targets:
    """The words for some brokers, and the controller, in a step."""
    return tuple(
        ControllerTarget(shown="controller")
        if node == CONTROLLER_ID
        else BrokerTarget(broker_id=node, shown=str(node))
        for node in nodes
    )
