"""The WSGI application: from a request to its handler, and from its answer to bytes.

Owns: the order of the checks, limits of bodies, encoding of answers, streams.  Never: knows a
subject (api/ does), owns a socket (server.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.wrappers import Request, Response

from kcluster import __version__
from kcluster.web.api import load_for
from kcluster.web.call import YAML_TYPES, ApiAnswer, ApiCall, ServerSide
from kcluster.web.problems import (
    EXPECTED,
    MEDIA_TYPE,
    RefusedRequest,
    bad_request,
    not_found,
    refusal_of,
)
from kcluster.web.routes import JSON, ROUTES, VERSION_HEADER, Route, Runs, url_map

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    from kcluster.web.access import AccessControl
    from kcluster.web.limits import WebLimits

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    VERSION_HEADER: __version__,
}


class WebApplication:
    """Answers the requests of one listener.  `access`: None for a unix socket, which only this
    user's processes reach."""

    def __init__(self, server: ServerSide, access: AccessControl | None, limits: WebLimits) -> None:
        self._server = server
        self._access = access
        self._limits = limits
        self._known = 0
        """The number of routes that are in the map."""
        self._urls = url_map()

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        try:
            response = self._answer(request)
        except EXPECTED as error:
            response = problem_response(refusal_of(error))
            if environ["wsgi.input"].is_unread:
                response.headers["Connection"] = "close"
        return response(environ, start)

    def _answer(self, request: Request) -> Response:
        if self._access is not None:
            self._access.check_host(request)
        check_query(request)
        route, named = self._find(request)
        if self._access is not None and not route.is_open:
            self._access.check_token(request)
        check_body(request, route, self._limits.body_bytes)
        call = ApiCall(self._server, request, route, named, is_local=self._access is None)
        with self._lease(named):
            reply = self._call(call)
        return self._response(route, reply, named)

    def _call(self, call: ApiCall) -> object:
        handler = call.route.handler
        if call.route.runs is Runs.AT_ONCE:
            return handler(call)
        with self._server.place():
            if call.route.runs is Runs.WAITING:
                return handler(call)
            return call.in_thread(lambda: handler(call))

    def _find(self, request: Request) -> tuple[Route, dict[str, str]]:
        load_for(request.method, request.path)
        if self._known != len(ROUTES):
            self._known, self._urls = len(ROUTES), url_map()
        adapter = self._urls.bind_to_environ(request.environ)
        try:
            route, named = adapter.match()
        except MethodNotAllowed as error:
            allowed = ", ".join(sorted(error.valid_methods or ()))
            raise RefusedRequest(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{request.path} takes {allowed}",
                headers={"Allow": allowed},
            ) from None
        except NotFound:
            raise not_found(f"{request.path}: no such path; /openapi.json lists all") from None
        except HTTPException as error:
            status = HTTPStatus(error.code or 400)
            raise RefusedRequest(status, f"{request.path}: {status.phrase}") from None
        return route, dict(named)

    def _lease(self, named: dict[str, str]) -> AbstractContextManager[None]:
        return self._server.clusters.get(named["id"]).in_use() if "id" in named else nullcontext()

    def _response(self, route: Route, reply: object, named: dict[str, str]) -> Response:
        if not isinstance(reply, ApiAnswer):
            reply = ApiAnswer(reply)
        status = reply.status or route.status
        headers = {**_HEADERS, **reply.headers}
        if reply.body is None:
            body = b"" if status == HTTPStatus.NO_CONTENT else msgspec.json.encode(reply.value)
            return Response(body, status, headers, content_type=JSON)
        if isinstance(reply.body, bytes):
            return Response(reply.body, status, headers, content_type=reply.media_type)
        parts = self._streamed(iter(reply.body), named)
        return Response(parts, status, headers, content_type=reply.media_type)

    def _streamed(self, parts: Iterator[bytes], named: dict[str, str]) -> Iterator[bytes]:
        """The parts of a stream, which ends with the cluster; the cluster's lease is renewed
        meanwhile."""
        with self._lease(named):
            yield from parts


def check_query(request: Request) -> None:
    """Refuse a query with raw bytes that are not text."""
    try:
        request.query_string.decode()
    except UnicodeDecodeError as error:
        raise bad_request(f"byte {error.start + 1} of the query is not UTF-8") from None


def check_body(request: Request, route: Route, limit_bytes: int) -> None:
    """Refuse a body that is too large, or that is neither JSON nor YAML."""
    length = request.content_length
    if request.environ.get("HTTP_TRANSFER_ENCODING") and length is None:
        detail = "send the body with Content-Length"
        raise RefusedRequest(HTTPStatus.LENGTH_REQUIRED, detail)
    if not length:
        return
    if length > limit_bytes:
        detail = f"{length} bytes; at most {limit_bytes}"
        raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
    if route.body is None:
        return
    # A page of another site can send text/plain without asking, but not JSON.
    is_yaml = route.takes_yaml and request.mimetype in YAML_TYPES
    if request.mimetype != JSON and not is_yaml:
        given = request.mimetype or "none"
        wanted = f"{JSON} or {YAML_TYPES[0]}" if route.takes_yaml else JSON
        detail = f"Content-Type: {given}; send {wanted}"
        raise RefusedRequest(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)


def problem_response(refusal: RefusedRequest) -> Response:
    """A refusal as an answer."""
    document = refusal.document
    headers = {**_HEADERS, **refusal.headers}
    body = msgspec.json.encode(document)
    return Response(body, document.status, headers, content_type=MEDIA_TYPE)
