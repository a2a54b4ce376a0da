"""One request, as a handler sees it: its parameters, its body, the cluster that it names.

Owns: reading the query and the body against the types of the route, with every problem at once.
Never: knows a subject (api/ does), reads a socket.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, get_type_hints

import msgspec
from msgspec import Struct

from kcluster.config.files.problems import unknown
from kcluster.config.files.tree import Node, from_python, from_yaml
from kcluster.web.problems import PlacedProblem, RefusedRequest, bad_request, wrong_values
from kcluster.web.routes import JSON, Route

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from kcluster.web.held import HeldCluster, HeldClusters

S = TypeVar("S", bound=Struct)
T = TypeVar("T")

YAML_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")


class ServerSide(Protocol):
    """What a handler sees of the server."""

    clusters: HeldClusters
    is_stopping: bool

    @property
    def url(self) -> str:
        """Where the server is found from this machine."""

    def page_url(self, id: str) -> str:
        """The address of a cluster's page, with the token."""

    def in_thread(self, function: Callable[[], T]) -> T:
        """Call a function that waits, in a thread; called in a greenlet of the server's hub."""

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function in the server's hub, from any thread."""


class ApiAnswer(Struct):
    """An answer that is not just a value: `value`, for JSON; or `body` with its type."""

    value: Any = None
    status: int | None = None
    body: bytes | Iterable[bytes] | None = None
    media_type: str = JSON
    headers: dict[str, str] = {}


class ApiCall:
    """A request.  `named`: the variables in its path."""

    def __init__(
        self, server: ServerSide, request: Request, route: Route, named: dict[str, str]
    ) -> None:
        self.server = server
        self.request = request
        self.route = route
        self.named = named
        self.query: Any = read_query(request, route.query)
        self.body = request.get_data(cache=False) if route.body is not None else b""

    @property
    def held(self) -> HeldCluster:
        """The cluster that the path names; renews its lease."""
        return self.server.clusters.get(self.named["id"])

    @property
    def is_over(self) -> bool:
        """Whether a stream of this cluster ends: it was removed, or the server stops."""
        return self.server.is_stopping or not self.server.clusters.has(self.named["id"])

    @property
    def is_yaml(self) -> bool:
        """Whether the body is YAML."""
        return self.request.mimetype in YAML_TYPES

    def in_thread(self, function: Callable[[], T]) -> T:
        """Call a function that waits, in a thread: for handlers that run in the server's hub."""
        return self.server.in_thread(function)

    def values(self, kind: type[S]) -> S:
        """The JSON body as a Struct."""
        return read_struct_body(self.json_object(), kind)

    def json_object(self) -> dict[str, Any]:
        """The JSON body, which must be an object; an empty body is an empty one."""
        value = read_json(self.body) if self.body.strip() else {}
        if not isinstance(value, dict):
            raise bad_request("the body must be a JSON object")
        return value

    def node(self) -> Node:
        """The body as a tree with places; JSON is checked as JSON first."""
        text = read_text(self.body)
        if self.is_yaml:
            node, problems = from_yaml(text, "")
            if node is None or problems:
                raise wrong_values(problems) if problems else bad_request("the body is empty")
            return node
        value = read_json(self.body) if text.strip() else {}
        node, problems = from_yaml(text, "") if isinstance(value, dict) and value else (None, [])
        if node is not None and problems:
            raise wrong_values(problems)
        return from_python(value) if node is None else node

    def accepts(self, *media_types: str) -> str:
        """The one of these that the client likes best; the first if it does not say."""
        return self.request.accept_mimetypes.best_match(media_types, media_types[0])


def read_text(body: bytes) -> str:
    """The body as text; a refusal with the place of the first byte that is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line, column = place_of(body, error.start)
        problem = PlacedProblem("", "not UTF-8", line, column)
        raise bad_request(f"line {line}, column {column}: not UTF-8", problem) from None


def read_json(body: bytes) -> Any:
    """The value of a JSON text; a refusal with the place of the mistake."""
    import json

    try:
        return json.loads(read_text(body), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        text = f"not JSON: {error.msg}"
        problem = PlacedProblem("", text, error.lineno, error.colno)
        where = f"line {error.lineno}, column {error.colno}"
        raise bad_request(f"{where}: {text}", problem) from None
    except RecursionError:
        raise bad_request("not JSON that can be read: nested too deeply") from None


def _refuse_constant(name: str) -> Any:
    raise bad_request(f"not JSON: {name} is no number there")


def place_of(text: bytes, position: int) -> tuple[int, int]:
    """Line and column, from 1, of a byte."""
    before = text[:position]
    return before.count(b"\n") + 1, position - before.rfind(b"\n")


def read_query(request: Request, kind: type[S]) -> S:
    """The parameters of a query; `token` is not one of them."""
    values = {key: value for key, value in request.args.items() if key != "token"}
    problems, fields = read_fields(values, kind, "parameter", strict=False)
    if problems:
        raise _refuse_all(bad_request, problems)
    return kind(**fields)


def read_struct_body(values: dict[str, Any], kind: type[S]) -> S:
    """A JSON object as a Struct."""
    problems, fields = read_fields(values, kind, "key", strict=True)
    if problems:
        raise wrong_values(problems)
    return kind(**fields)


def read_fields(
    values: dict[str, Any], kind: type[Struct], word: str, strict: bool
) -> tuple[list[PlacedProblem], dict[str, Any]]:
    """What is wrong with the values of a Struct's fields, and those that are right."""
    hints = get_type_hints(kind, include_extras=True)
    by_name = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    found: dict[str, Any] = {}
    problems = []
    for name, value in values.items():
        if name not in by_name:
            problems.append(PlacedProblem(name, unknown(word, name, by_name)))
            continue
        field = by_name[name]
        try:
            found[field] = msgspec.convert(value, hints[field], strict=strict)
        except msgspec.ValidationError as error:
            problems.append(PlacedProblem(name, str(error)))
    problems += [
        PlacedProblem(each.encode_name, "is missing")
        for each in msgspec.structs.fields(kind)
        if each.required and each.encode_name not in values
    ]
    return problems, found


def _refuse_all(
    refuse: Callable[..., RefusedRequest], problems: list[PlacedProblem]
) -> RefusedRequest:
    return refuse("; ".join(f"{x.path}: {x.text}" for x in problems), *problems)
