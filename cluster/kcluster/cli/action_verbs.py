"""The verbs of actions without a file in verbs/: `kcluster fill-disk 2`, from the action's fields.

Owns: the command that an action's Struct stands for.  Never: performs it (acting.py asks for that).
Kafka: none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, Final

import click

from kcluster.actions.base import Action
from kcluster.actions.kinds import BROKERS, PARTITION, TARGETS
from kcluster.cli.acting import act
from kcluster.cli.click_tools import control_options, wait_option
from kcluster.cli.completion import complete_partitions, complete_targets
from kcluster.config.files.fields import Flag, StructField, fields_of
from kcluster.config.topology.security_keys import Password
from kcluster.scenario.actions import ACTIONS

_DIGITS: Final = re.compile(r"[0-9]+")
FROM_STDIN: Final = "-"
"""Given in place of a password: read it from the standard input."""
_UNSEEN: Final = f"""

    {FROM_STDIN} as the password reads it from the standard input: a list of processes, and the
    history of a shell, show what is typed in a command."""

_Decorator = Callable[[Callable[..., object]], Callable[..., object]]


def action_verb(name: str) -> click.Command | None:
    """The verb of the action that is typed with this word; None if there is no such action."""
    cls = ACTIONS.get(name.replace("-", "_"))
    return None if cls is None else _command(name, cls)


def _command(name: str, cls: type[Action]) -> click.Command:
    """An argument for the action's short value and each field that it needs, options for all other
    fields."""
    known = fields_of(cls)
    options = {field.key: _option(field) for field in known if not _is_argument(field, cls)}

    def perform(
        wait: bool, name: str | None, as_json: bool, duration: str | None = None, **given: Any
    ) -> None:
        keys = {field.key: _value(field, given[_parameter_of(field)]) for field in known}
        keys = {key: value for key, value in keys.items() if value not in (None, False, {})}
        action = {cls.VERB: keys or None}
        act(action, name, as_json, wait=wait, duration=duration, options=options)

    function = wait_option(control_options(perform))
    if cls.CAN_BE_UNDONE:
        undone = click.option("--for", "duration", metavar="TIME", help="Undo it after this time.")
        function = undone(function)
    for field in reversed(known):
        function = _parameter(field, _is_argument(field, cls))(function)
    words = cls.__doc__ or ""
    if any(isinstance(field.kind, Password) for field in known):
        words += _UNSEEN
    return click.command(name, help=words)(function)


def _parameter(field: StructField, is_argument: bool) -> _Decorator:
    completes = None
    if field.kind is TARGETS or field.kind is BROKERS:
        completes = complete_targets
    elif field.kind is PARTITION:
        completes = complete_partitions
    parameter, option = _parameter_of(field), _option(field)
    if is_argument:
        word = field.name.upper()
        return click.argument(
            parameter,
            metavar=word if field.required else f"[{word}]",
            required=field.required,
            shell_complete=completes,
        )
    if isinstance(field.kind, Flag):
        return click.option(option, parameter, is_flag=True, help=field.words)
    default = f"  [default: {field.default_text}]" if field.default_text else ""
    return click.option(
        option,
        parameter,
        required=field.required,
        multiple=_is_mapping(field),
        metavar="KEY=VALUE" if _is_mapping(field) else "VALUE",
        help=f"{field.words}{default}",
        shell_complete=completes,
    )


def _parameter_of(field: StructField) -> str:
    """The name of a field's parameter. It must differ from the options that all verbs have, such as
    name."""
    return f"{field.name}_of_action"


def _option(field: StructField) -> str:
    return f"--{field.key.replace('_', '-')}"


def _is_argument(field: StructField, cls: type[Action]) -> bool:
    return (field.required or field.name == cls.SHORT) and not _is_mapping(field)


def _is_mapping(field: StructField) -> bool:
    return field.kind.schema().get("type") == "object"


def _read_password() -> str:
    """The line that is typed, unseen, or that comes through a pipe."""
    if sys.stdin.isatty():
        return str(click.prompt("password", hide_input=True))
    return sys.stdin.readline().rstrip("\n")


def _value(field: StructField, given: Any) -> Any:
    """The value in the action for a typed value."""
    if isinstance(field.kind, Password) and given == FROM_STDIN:
        return _read_password()
    if field.kind.schema().get("type") in ("integer", "number") and _DIGITS.fullmatch(str(given)):
        return int(given)  # a text of digits would pass for a quoted one
    if not _is_mapping(field):
        return given
    pairs = [str(pair).partition("=") for pair in given]
    return {key: value for key, _, value in pairs}
