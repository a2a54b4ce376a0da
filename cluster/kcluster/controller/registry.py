"""Which messages the controller answers: handlers find their way here by registration.

Owns: the table message name -> handler.  Never: a switch.  Names, not classes, so that a message
class is only built when one arrives.  Kafka: ControllerApis.handle, but as a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode

Handler = Callable[["ControllerNode", Any, int], Any]
"""(controller, request message, now_ms) -> the response message."""

HANDLERS: dict[str, Handler] = {}


def answers(message_name: str) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of `<Api>Request`."""

    def register(handler: Handler) -> Handler:
        assert message_name not in HANDLERS, f"{message_name} has two handlers"
        HANDLERS[message_name] = handler
        return handler

    return register
