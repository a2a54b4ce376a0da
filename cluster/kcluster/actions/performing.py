"""Performing one action on a stage, from Python values, now; and the facts about it later.

Owns: Performed, reading an action's fields from Python values.  Never: waits, reads YAML
(scenario/language/loader.py does), knows an action.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kcluster.actions import ACTIONS, Action
from kcluster.actions.kinds import BROKERS, TARGETS
from kcluster.actions.stage import Doing, Stage
from kcluster.config.files.fields import Kind, OneOf, Quantity, Whole, Words, fields_of
from kcluster.config.files.problems import show, unknown
from kcluster.deaths import ProcessState
from kcluster.operations.errors import ClusterError
from kcluster.operations.targets import targets_of


class Performed(Struct):
    """An action that was performed.  `nodes`: the nodes that it names, if it names any;
    `left_alone`: the brokers among them on which it did not act, with their states;
    `can_be_undone`: whether the action can be undone; `undo`: undoes it once, called in the
    driver's thread; `is_over`: whether all of it has been done or refused, also called there."""

    nodes: tuple[int, ...]
    left_alone: tuple[tuple[int, ProcessState], ...]
    can_be_undone: bool
    undo: Callable[[], None]
    is_over: Callable[[], bool]
    is_undone: bool = False

    @property
    def chosen(self) -> tuple[int, ...]:
        """The nodes on which the action acted."""
        left_alone = [node for node, _ in self.left_alone]
        return tuple(node for node in self.nodes if node not in left_alone)


def made(verb: str, values: Mapping[str, Any]) -> Action:
    """An action from Python values of its fields; None stands for the default.  Raises ClusterError
    for a word that a field does not accept."""
    cls = ACTIONS[verb]
    action = cls(
        **{
            field.name: _value(field.name, field.kind, value)
            for field in fields_of(cls)
            if (value := values.get(field.name)) is not None
        }
    )
    for key, problem in action.problems():
        raise ClusterError(f"{key}={values.get(key)}: {problem}")
    return action


def _value(key: str, kind: Kind, value: Any) -> Any:
    if kind is TARGETS or kind is BROKERS:
        return targets_of(value)
    if isinstance(kind, OneOf) and value not in kind.words:
        raise ClusterError(f"{key}={show(str(value))}: {unknown(kind.what, value, kind.words)}")
    if isinstance(kind, Quantity | Whole) and not kind.low <= value <= kind.high:
        bound = f"at least {kind.low:g}" if value < kind.low else f"at most {kind.high:g}"
        raise ClusterError(f"{key}={value:g}: must be {bound}")
    if isinstance(kind, Words) and isinstance(value, str):
        try:
            return kind.parse(value)
        except ValueError as error:
            raise ClusterError(f"{key}={show(value)}: {error}") from None
    return value


def perform(
    stage: Stage, action: Action, name: str = "", undone_after_ms: int | None = None
) -> Performed:
    """Perform an action now, between two dispatches.  `name`: a name for its nodes, for later
    targets; `undone_after_ms`: the time after which it is undone."""
    problems = len(stage.problems)
    doing = stage.doing = Doing()
    try:
        nodes = action.about_to_affect(stage)
        if name:
            stage.remember(name, nodes)
        undo_it = action.do(stage)
    finally:
        stage.doing = None
    if len(stage.problems) > problems:
        raise ClusterError(stage.problems.pop())

    def is_over() -> bool:
        return bool(stage.problems) or all(holds() for holds in doing.awaited)

    def undo_once() -> None:
        if undo_it is not None and not performed.is_undone:
            performed.is_undone = True
            undo_it()

    performed = Performed(nodes, doing.left_alone, undo_it is not None, undo_once, is_over)
    if undone_after_ms is not None:
        stage.at(stage.now_ms + undone_after_ms, undo_once)
    return performed
