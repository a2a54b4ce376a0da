"""The table of routes: the requests, their answers, the functions that answer.

Owns: Route, the decorator that adds one, the map by which werkzeug finds it.  Never: calls a
handler (application.py does), knows a subject (api/ does).
Kafka: no counterpart.

To add a route: a function in a module of api/ with `@route("GET", "/v1/...", ...)`.  The checks of
its parameters and its part of /openapi.json follow from the types named there.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeVar

from msgspec import Struct
from werkzeug.routing import Map, Rule

NDJSON: Final = "application/x-ndjson"
EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
HTML: Final = "text/html"
PLAIN: Final = "text/plain"
VERSION_HEADER: Final = "Kcluster-Version"
"""The header with the server's version; it is in every answer."""


class NoParameters(Struct, forbid_unknown_fields=True):
    """A query without parameters."""


class Runs(StrEnum):
    """The place where a handler runs.

    In a greenlet of the server's hub a handler may wait for a cluster, and for nothing else: a wait
    costs no thread, and ends with its client.  A handler that computes, or that calls a blocking
    function, runs in a thread, of which there are few.
    """

    AT_ONCE = "at once"
    """In the server's hub: cheap, and never refused because the server is busy."""
    WAITING = "waiting"
    """In the server's hub, maybe for a long time."""
    IN_THREAD = "in a thread"


class Route(Struct, frozen=True, eq=False):
    """One route.

    `query`: its parameters as a Struct.  `body`: the type of the JSON body, or a JSON Schema of it;
    None: no body; `takes_yaml`: whether it may be YAML. `answer`: the type of the answer, a media
    type if it is not JSON, None for 204; `also`: further media types of it.  `is_open`: whether it
    needs no token.  `runs`: the place where its handler runs.
    """

    method: str
    path: str
    handler: Callable[..., object]
    summary: str
    query: type[Struct]
    body: object
    takes_yaml: bool
    answer: object
    also: tuple[str, ...]
    status: int
    errors: tuple[int, ...]
    is_open: bool
    runs: Runs

    @property
    def name(self) -> str:
        """The route's operationId, such as `create_cluster`."""
        return self.handler.__name__


ROUTES: Final[list[Route]] = []

H = TypeVar("H", bound=Callable[..., object])


def route(
    method: str,
    path: str,
    *,
    query: type[Struct] = NoParameters,
    body: object = None,
    takes_yaml: bool = False,
    answer: object = None,
    also: tuple[str, ...] = (),
    status: int = 200,
    errors: tuple[int, ...] = (),
    is_open: bool = False,
    runs: Runs = Runs.IN_THREAD,
) -> Callable[[H], H]:
    """Add a handler to the table; the first paragraph of its docstring is the summary."""

    def register(handler: H) -> H:
        paragraph = (handler.__doc__ or "").partition("\n\n")[0]
        ROUTES.append(
            Route(
                method=method,
                path=path,
                handler=handler,
                summary=" ".join(paragraph.split()),
                query=query,
                body=body,
                takes_yaml=takes_yaml,
                answer=answer,
                also=also,
                status=status if answer is not None or status != 200 else 204,
                errors=errors,
                is_open=is_open,
                runs=runs,
            )
        )
        return handler

    return register


def url_map() -> Map:
    """The routes of ROUTES, found by method and path; the endpoint is the Route."""
    rules = [Rule(x.path, methods=[x.method], endpoint=x) for x in ROUTES]
    return Map(rules, strict_slashes=False)
