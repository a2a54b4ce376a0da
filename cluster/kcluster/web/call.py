"""One request, for its handler: its parameters, its body, the cluster that it names.

Owns: reading the query and the body against the types of the route, with every problem at once.
Never: knows a subject (api/ does), reads a socket.
Kafka: no counterpart.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, get_type_hints

import msgspec
from msgspec import Struct

from kcluster.config.files.problems import MAX_SHOWN, unknown
from kcluster.config.files.tree import MAX_TEXT_BYTES, Node, from_python, from_yaml
from kcluster.json_types import JsonObject
from kcluster.web.problems import (
    PlacedProblem,
    RefusedRequest,
    bad_request,
    wrong_parameters,
    wrong_values,
)
from kcluster.web.routes import JSON, Route

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from kcluster.web.held import HeldCluster, HeldClusters

S = TypeVar("S", bound=Struct)
T = TypeVar("T")

CONNECTION: Final = "kcluster.connection"
"""The key of the connection (connection.py) in a WSGI environment."""
SMALL_BODY_BYTES: Final = 4_096
MAX_PLACED_BYTES: Final = 64 * 1024
"""The greatest size of a JSON body whose problems get lines.  In a larger body, problems have only
paths: finding lines takes far longer than reading JSON."""
YAML_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")


class ServerSide(Protocol):
    """The server, for its handlers."""

    clusters: HeldClusters
    is_stopping: bool

    @property
    def url(self) -> str:
        """The address of the server on this machine."""

    def page_url(self, id: str) -> str:
        """The address of a cluster's page, with the token; empty if none is served."""

    def serve_page(self, port: int) -> None:
        """Serve pages on this port from now on, unless they are served already; ClusterError if
        that is not possible."""

    def place(self) -> AbstractContextManager[None]:
        """A place for a request that takes long; a refusal if there is none."""

    def in_thread(
        self,
        function: Callable[[], T],
        share: str,
        staying: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> T:
        """Call a function that computes or blocks, in a thread; called in a greenlet of the
        server's hub.  `share`: the cluster or subject, which has a few threads of its own;
        `staying`: ends the wait for such a thread when the client leaves."""

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function in the server's hub, from any thread."""


class ApiAnswer(Struct):
    """An answer with more than a value: `value`, for JSON; or `body` with its type."""

    value: Any = None
    status: int | None = None
    body: bytes | Iterable[bytes] | None = None
    media_type: str = JSON
    headers: dict[str, str] = {}


class ApiCall:
    """A request.  `named`: the variables in its path.  `is_local`: whether it is from a process of
    this user, over the unix socket; it then has the user's permissions."""

    def __init__(
        self,
        server: ServerSide,
        request: Request,
        route: Route,
        named: dict[str, str],
        is_local: bool,
    ) -> None:
        self.server = server
        self.request = request
        self.route = route
        self.named = named
        self.is_local = is_local
        self.query: Any = read_query(request, route.query)
        self._connection: Any = request.environ[CONNECTION]
        length = request.content_length if route.body is not None else 0
        self.body: bytes = request.environ["wsgi.input"].read(length) if length else b""

    @property
    def held(self) -> HeldCluster:
        """The cluster that the path names; renews its lease."""
        return self.server.clusters.get(self.named["id"])

    @property
    def is_over(self) -> bool:
        """Whether a stream of this cluster must end: the cluster was removed, or the server
        stops."""
        return self.server.is_stopping or not self.server.clusters.has(self.named["id"])

    @property
    def is_yaml(self) -> bool:
        """Whether the body is YAML."""
        return self.request.mimetype in YAML_TYPES

    def in_thread(self, function: Callable[[], T]) -> T:
        """Call a function that computes or blocks, in a thread: for handlers that run in the
        server's hub."""
        share = self.named.get("id", self.route.path)
        return self.server.in_thread(function, share, self.while_client_stays)

    def reading(self, read: Callable[[], T]) -> T:
        """Call a function that reads the body; in a thread if the body is large."""
        return read() if len(self.body) < SMALL_BODY_BYTES else self.in_thread(read)

    def keep_open_until_exit(self) -> None:
        """Keep the connection open until the process ends, so that the connection's end shows the
        client the end of the process."""
        self._connection.keep_open_until_exit()

    def while_client_stays(self) -> AbstractContextManager[None]:
        """Run the body while the client's connection is open; for waits in the server's hub."""
        staying: AbstractContextManager[None] = self._connection.while_client_stays()
        return staying

    def values(self, kind: type[S]) -> S:
        """The JSON body as a Struct."""
        return read_struct_body(self.json_object(), kind)

    def json_object(self) -> JsonObject:
        """The JSON body, which must be an object; an empty body counts as an empty object."""
        value = read_json(self.body) if self.body.strip() else {}
        if not isinstance(value, dict):
            raise bad_request("the body must be a JSON object")
        return value

    def node(self) -> Node:
        """The body as a tree with places; JSON is checked as JSON first."""
        text = read_text(self.body)
        if self.is_yaml:
            return read_yaml(text)
        value = read_json(self.body) if text.strip() else {}
        if not isinstance(value, dict) or not value or len(text) > MAX_PLACED_BYTES:
            return from_python(value)
        node, problems = from_yaml(text, "")
        if node is not None and problems:
            raise wrong_values(problems)
        return from_python(value) if node is None else node

    def accepts(self, *media_types: str) -> str:
        """The type among these that the client prefers; the first type if the client names none."""
        return self.request.accept_mimetypes.best_match(media_types, media_types[0])


_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_TOO_LONG: Final = f"a number of more than {sys.get_int_max_str_digits()} digits"


def read_text(body: bytes) -> str:
    """The body as text; a refusal with the place of the first byte that is no UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line, column = place_of(body, error.start)
        problem = PlacedProblem("", "not UTF-8", line, column)
        raise bad_request(f"line {line}, column {column}: not UTF-8", problem) from None


def read_yaml(text: str) -> Node:
    """The tree of a YAML text; a refusal with every problem and its place."""
    if len(text) > MAX_TEXT_BYTES:
        detail = f"{len(text)} characters of YAML; at most {MAX_TEXT_BYTES}"
        raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
    node, problems = from_yaml(text, "")
    if problems:
        raise wrong_values(problems)
    if node is None:
        raise bad_request("the body is empty")
    return node


def read_json(body: bytes) -> Any:
    """The value of a JSON text; a refusal with the place of the mistake."""
    import json

    text = read_text(body)
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        reason = f"not JSON: {error.msg}"
        problem = PlacedProblem("", reason, error.lineno, error.colno)
        where = f"line {error.lineno}, column {error.colno}"
        raise bad_request(f"{where}: {reason}", problem) from None
    except RecursionError:
        raise bad_request("not JSON that can be read: nested too deeply") from None
    except ValueError:
        raise bad_request(f"not JSON that can be read: {_TOO_LONG}") from None
    if _SURROGATE.search(text) is not None:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            raise bad_request(f"not text: {half} is half of a character") from None
    return value


def _refuse_constant(name: str) -> object:
    raise bad_request(f"not JSON: {name} is no number there")


def place_of(text: bytes, position: int) -> tuple[int, int]:
    """The line and the column, from 1, of a byte."""
    before = text[:position]
    return before.count(b"\n") + 1, position - before.rfind(b"\n")


def read_query(request: Request, kind: type[S]) -> S:
    """The parameters of a query; `token` is not one of them."""
    values = {key: value for key, value in request.args.items() if key != "token"}
    problems, fields = read_fields(values, kind, "parameter", strict=False)
    if problems:
        raise wrong_parameters(problems)
    return kind(**fields)


def read_struct_body(values: dict[str, object], kind: type[S]) -> S:
    """A JSON object as a Struct."""
    problems, fields = read_fields(values, kind, "key", strict=True)
    if problems:
        raise wrong_values(problems)
    return kind(**fields)


def read_fields(
    values: JsonObject, kind: type[Struct], word: str, strict: bool
) -> tuple[list[PlacedProblem], JsonObject]:
    """The values of a Struct's fields without problems, and the problems of the others."""
    hints = get_type_hints(kind, include_extras=True)
    by_name = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    found: dict[str, object] = {}
    problems: list[PlacedProblem] = []
    for name, value in values.items():
        if name not in by_name:
            is_shown = len(problems) < MAX_SHOWN
            text = unknown(word, name, by_name) if is_shown else f"no such {word}"
            problems.append(PlacedProblem(name, text))
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
