"""The messages that the controller answers: the handlers of all its parts in one table.

Owns: the form in which a part lists its handlers, and the table message name -> handler.  Never: a
switch. Names, not classes, so that a message class is only built when one arrives. Kafka:
ControllerApis.handle, as a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

Handler = Callable[[Any, int], Any]
"""Answers a message: (request message, now_ms) -> the response message."""


class Part(Protocol):
    """A part of the controller that answers messages."""

    def handlers(self) -> Mapping[str, Handler]:
        """The handlers by the names of their messages, `<Api>Request`."""


def handlers_of(parts: Iterable[Part]) -> dict[str, Handler]:
    """The handlers of all parts.  Each message has one."""
    table: dict[str, Handler] = {}
    for part in parts:
        for message_name, handler in part.handlers().items():
            assert message_name not in table, f"{message_name} has two handlers"
            table[message_name] = handler
    return table
