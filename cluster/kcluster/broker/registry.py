"""The APIs that a broker serves: the table in which handlers register themselves.

Owns: the table API key -> (handler, versions).  Never: a switch; adding an API touches its handler
file alone.  Kafka: KafkaApis.handle, as a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, final

from msgspec import Struct

from kcluster.broker.broker import Broker
from kcluster.contract import Request
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.messages import Message


class Parked(Struct):
    """The sign that the handler will answer later."""


class NoResponse(Struct):
    """The sign that the client expects no answer (Produce, acks=0)."""


PARKED: Final = Parked()
NO_RESPONSE: Final = NoResponse()

Answer = Message | Parked | NoResponse
"""The response body; PARKED when `broker.reply(request, body)` will be called later; NO_RESPONSE
when the client expects none."""
Handler = Callable[[Broker, Request, int], Answer]
"""Serves one request: (broker, request, now_ms) -> the answer."""
Registered = TypeVar("Registered", bound=Handler)


@final
class ServedApi:
    """One row of the table: the lowest and the highest version that 4.4.0 serves."""

    __slots__ = ("api_key", "handler", "max_version", "min_version")

    def __init__(
        self, api_key: ApiKey, min_version: int, max_version: int, handler: Handler
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version
        self.handler = handler


SERVED_APIS: Final[dict[int, ServedApi]] = {}


def handles(api_key: ApiKey, versions: tuple[int, int]) -> Callable[[Registered], Registered]:
    """Register the decorated function as the handler of `api_key` for these versions."""

    def register(handler: Registered) -> Registered:
        assert api_key not in SERVED_APIS, f"{api_key.name} has two handlers"
        SERVED_APIS[api_key] = ServedApi(api_key, *versions, handler)
        return handler

    return register
