"""The base of actions: a Struct whose fields are the action's keys, performed on a stage.

Owns: Action, the table of actions by name, an action from Python values.  Never: performs one
(stage.py does), reads YAML (scenario/language/loader.py does).
Kafka: Trogdor's FaultSpec and TaskSpec.

To add an action: a class with `@action("name", short="field", example="name: 1")` in a file of this
directory.  Its YAML form, its checks, its JSON Schema, its page in the reference, its forms in
Python and on the command line follow from its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, TypeVar

from msgspec import Struct

from kcluster.actions.kinds import BROKERS, TARGETS
from kcluster.actions.menu import MenuItem
from kcluster.actions.recording import Recording
from kcluster.actions.stage import Stage, Undo
from kcluster.config.files.fields import (
    Kind,
    Quantity,
    StructField,
    Whole,
    Words,
    fields_of,
    key_of,
)
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import show
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import from_python
from kcluster.config.topology.model import Topology
from kcluster.contract import Event
from kcluster.operations.errors import ClusterError
from kcluster.operations.names import partition_name
from kcluster.operations.python_values import number_in, wrong
from kcluster.operations.targets import targets_of
from kcluster.operations.verbs import Verbs


class Action(Struct, frozen=True):
    """An action on a cluster; a subclass per kind.

    `do` and its undo run in the driver's thread and do not wait.  They raise ClusterError if the
    action cannot be performed.
    """

    VERB: ClassVar[str] = ""
    IS_FAULT: ClassVar[bool] = True
    """Whether the repair at the scenario's end undoes the action.  If not, only `for` undoes it."""
    SHORT: ClassVar[str] = ""
    """The field that gets the action's value if that is not a mapping."""
    CAN_BE_UNDONE: ClassVar[bool] = True
    """Whether `for` may undo it: False where `do` is declared to return None."""
    EXAMPLE: ClassVar[str] = ""
    """A step of a scenario with this action, for the reference; a test plays it."""
    MENU: ClassVar[tuple[MenuItem, ...]] = ()
    """The action's entries in the menus of the page."""

    def do(self, stage: Stage) -> Undo | None:
        """Perform the action now; returns the function that undoes it, None if it cannot be
        undone."""
        raise AssertionError(f"{type(self).__name__} cannot be performed")

    def problems(self) -> Iterator[tuple[str, str]]:
        """The reasons why values that are valid by themselves cannot be combined: a field's key,
        and the reason."""
        yield from ()

    def written(self) -> object:
        """The form of the action in a file, without its verb: a single value, or the keys that
        differ from their defaults."""
        keys = {
            field.key: written_value(field.kind, value)
            for field in fields_of(type(self))
            if (value := getattr(self, field.name)) not in (field.default, {})
        }
        only = key_of(self.SHORT)
        return keys[only] if list(keys) == [only] else keys or None

    RECORDED_FROM: ClassVar[tuple[type[Event], ...]] = ()
    """The types of events that show that the action was performed or undone, by whatever means."""

    @classmethod
    def record(cls, event: Any, recording: Recording) -> None:
        """Record an event of RECORDED_FROM: add a step that repeats the action, or end a step in
        force."""

    @classmethod
    def repair(cls, verbs: Verbs) -> Iterator[str]:
        """Undo every action of this kind that is in force in a cluster, whoever performed it;
        yields the reason for each action that cannot be undone."""
        yield from ()

    def affected(self, stage: Stage) -> tuple[int, ...]:
        """The nodes to which `as` gives a name.  Finding them may take a random draw."""
        return ()


def menu_items(topology: Topology | None = None) -> list[tuple[str, MenuItem]]:
    """The entries of all menus with their actions' verbs, in the order in which they are shown.
    With a topology: without entries for security that its clusters do not have."""
    items = [(cls.VERB, item) for cls in ACTIONS.values() for item in cls.MENU]
    if topology is not None:
        has = {
            None: True,
            "sasl": topology.has_sasl,
            "certificates": topology.makes_any_certificate,
        }
        items = [(verb, item) for verb, item in items if has[item.needs]]
    return sorted(items, key=lambda entry: entry[1].is_last)


def repair_all(verbs: Verbs) -> list[str]:
    """Undo every fault that a cluster may have; returns the reasons for the faults that cannot be
    undone.  Processes, whose actions are registered first, are started last: when their disks and
    links have been restored."""
    reasons = (why for action in reversed(ACTIONS.values()) for why in action.repair(verbs))
    return [f"healing: {why}" for why in reasons]


def written_value(kind: Kind, value: Any) -> object:
    """A value in the exact form in which a file has it."""
    if isinstance(kind, Quantity):
        return f"{value:.15g}ms" if kind.units else value
    if kind is TARGETS or kind is BROKERS:
        numbers = [(word, whole_number(word)) for word in map(str, value)]
        shown = [word if number is None else number for word, number in numbers]
        return shown[0] if len(shown) == 1 else shown
    if isinstance(kind, Words) and kind.parse is not str and isinstance(value, tuple):
        return ("-" if kind.parse is partition_name else "..").join(map(str, value))
    return list(value) if isinstance(value, tuple) else value


ACTIONS: Final[dict[str, type[Action]]] = {}
"""The classes of all actions, by the verb in files."""

A = TypeVar("A", bound=type[Any])


def action(verb: str, short: str = "", *, example: str) -> Callable[[A], A]:
    """Register an action under its verb."""

    def register(cls: A) -> A:
        assert verb not in ACTIONS, verb
        cls.VERB, cls.SHORT, cls.EXAMPLE = verb, short, example
        cls.CAN_BE_UNDONE = cls.do.__annotations__["return"] != "None"
        ACTIONS[verb] = cls
        return cls

    return register


def made(verb: str, values: Mapping[str, Any]) -> Action:
    """An action from Python values of its fields; None stands for the default.  ClusterError for a
    value that its field does not take."""
    cls = ACTIONS[verb]
    read = {
        field.name: _value(field, value)
        for field in fields_of(cls)
        if (value := values.get(field.name)) is not None
    }
    for field in fields_of(cls):
        if field.required and field.name not in read:
            raise wrong(field.name, None, "missing")
    action = cls(**read)
    for key, problem in action.problems():
        raise ClusterError(f"{key}={values.get(key)}: {problem}")
    return action


def _value(field: StructField, value: Any) -> Any:
    key, kind = field.name, field.kind
    if kind is TARGETS or kind is BROKERS:
        return targets_of(value)
    if isinstance(kind, Quantity | Whole):
        return number_in(key, value, kind.low, kind.high, isinstance(kind, Whole))
    reading = TreeReader("")
    read = kind.read(reading, from_python(written_value(kind, value)), key)
    for problem in reading.problems:
        if problem.path != key:
            raise ClusterError(str(problem))
        raise wrong(key, value, problem.text.removeprefix(f"{show(value)}: "))
    return read
