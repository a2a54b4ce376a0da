"""What an action is: a Struct whose fields are its keys, and a deed on a stage.

Owns: Action, the table of them by name, the Stage that deeds are done on.  Never: does a deed.
Kafka: Trogdor's FaultSpec and TaskSpec.

To add one: a class with `@action("name", short="field")` in a file of this directory.  Reading,
checking, JSON Schema, the CLI's and Python's forms follow from its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Protocol, TypeVar

from msgspec import Struct

from kcluster.contract import Note, Rng
from kcluster.operations.verbs import Verbs
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from kcluster.scenario.play.conditions import Condition
from kcluster.scenario.play.targets import Targets


class Stage(Protocol):
    """What a deed may use, on either clock.  All of it in the driver's thread, and without waiting;
    deeds raise ClusterError when they cannot be done."""

    @property
    def plan(self) -> Plan: ...
    @property
    def dispatcher(self) -> Dispatcher: ...
    @property
    def verbs(self) -> Verbs: ...
    @property
    def rng(self) -> Rng: ...
    @property
    def now_ms(self) -> int:
        """Since the scenario began."""

    def at(self, at_ms: int, deed: Callable[[], None]) -> None:
        """Do something at a time to come, in ms since the scenario began."""

    def when(self, holds: Callable[[], bool], deed: Callable[[], None]) -> None:
        """Do something as soon as this holds."""

    def nodes(self, targets: Targets) -> tuple[int, ...]:
        """The ids of the nodes that are meant, now; ClusterError if there is none."""

    def remember(self, name: str, nodes: tuple[int, ...]) -> None:
        """Call these by a name from now on."""

    def client_ids(self) -> dict[str, int]:
        """The workload's clients: their ids in the fabric by name."""

    def holds(self, condition: Condition, since: int = 0) -> bool:
        """Whether a condition holds now."""

    def notes(self) -> list[Note]:
        """All so far, oldest first."""

    def refuse(self, text: str) -> None:
        """Tell that a deed begun could not be done after all: the run fails with these words."""


Undo = Callable[[], None]


class Action(Struct, frozen=True):
    """One thing to do.  A base: each kind has its own `do`."""

    VERB: ClassVar[str] = ""
    IS_FAULT: ClassVar[bool] = True
    """Undone when the scenario's end mends everything; else only after `for`."""
    SHORT: ClassVar[str] = ""
    """The field that a value which is no mapping stands for."""

    def do(self, stage: Stage) -> Undo | None:
        """Do it now; returns what undoes it, or None where that means nothing."""
        raise AssertionError(f"{type(self).__name__} has no deed")

    def affected(self, stage: Stage) -> tuple[int, ...]:
        """The nodes that `as` gives a name to; asked just before `do`."""
        return ()


ACTIONS: Final[dict[str, type[Action]]] = {}
"""By the word in files."""

A = TypeVar("A", bound=type[Any])


def action(verb: str, short: str = "") -> Callable[[A], A]:
    """Register an Action under its word."""

    def register(cls: A) -> A:
        assert verb not in ACTIONS, verb
        cls.VERB, cls.SHORT = verb, short
        ACTIONS[verb] = cls
        return cls

    return register
