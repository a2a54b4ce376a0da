"""The routes as an OpenAPI 3.1 document, /openapi.json.

Owns: the document, made from the table of routes and the types named there.  Never: adds facts
about a route to its types and its docstring.
Kafka: no counterpart.
"""

from __future__ import annotations

import re
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import msgspec
from msgspec import Struct

from kcluster.json_types import JsonObject
from kcluster.version import __version__
from kcluster.web.api import load_all
from kcluster.web.call import YAML_TYPES, ApiAnswer, ApiCall
from kcluster.web.problems import MEDIA_TYPE, ProblemDocument
from kcluster.web.routes import JSON, ROUTES, Route, Runs, route

Document = JsonObject

_REF: Final = "#/components/schemas/{name}"
_ALWAYS: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.MISDIRECTED_REQUEST)
_WITH_BODY: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
_MEANINGS: Final = {
    HTTPStatus.BAD_REQUEST: "The request cannot be read; `problems` has the places.",
    HTTPStatus.UNAUTHORIZED: "The token is missing or wrong.",
    HTTPStatus.FORBIDDEN: "This server creates no clusters, or writes no files.",
    HTTPStatus.NOT_FOUND: "There is no such thing.",
    HTTPStatus.REQUEST_TIMEOUT: "Not in time: what was waited for, or the body; `state` and"
    " `detail` show the present state.",
    HTTPStatus.CONFLICT: "The cluster cannot do this in its present state.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is neither JSON nor YAML.",
    HTTPStatus.MISDIRECTED_REQUEST: "Host is not a name of this server.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Values are wrong; `problems` has each with its path.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Too many requests at once; again after `Retry-After`.",
}


@route("GET", "/openapi.json", answer={"type": "object"}, is_open=True)
def show_openapi(call: ApiCall) -> ApiAnswer:
    """This description of the API."""
    return ApiAnswer(body=openapi_text())


@cache
def openapi_text() -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(openapi())


def openapi() -> Document:
    """The document as values."""
    load_all()
    structs: list[object] = [ProblemDocument]
    for each in ROUTES:
        structs += [x for x in (each.body, each.answer) if is_struct(x)]
    _, schemas = msgspec.json.schema_components(dict.fromkeys(structs), ref_template=_REF)
    paths: Document = {}
    for each in ROUTES:
        paths.setdefault(path_of(each), {})[each.method.lower()] = operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kcluster",
            "version": __version__,
            "summary": "Create, break and judge simulated Kafka clusters.",
        },
        "security": [{"bearer": []}, {"query": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "query": {"type": "apiKey", "in": "query", "name": "token"},
            },
            "schemas": schemas,
        },
    }


def is_struct(kind: object) -> bool:
    """Whether a type is a Struct, and so has a schema under its name."""
    return isinstance(kind, type) and issubclass(kind, Struct)


def path_of(each: Route) -> str:
    """The path of a route in the document: `/v1/clusters/{id}`."""
    return re.sub(r"<(\w+)>", r"{\1}", each.path)


def operation(each: Route) -> Document:
    """The values of a route in the document."""
    found: Document = {
        "operationId": each.name,
        "tags": [each.handler.__module__.rpartition(".")[2]],
        "summary": each.summary,
        "parameters": parameters(each),
        "responses": responses(each),
    }
    if each.is_open:
        found["security"] = []
    if each.body is not None:
        content = {JSON: {"schema": schema_of(each.body)}}
        if each.takes_yaml:
            content[YAML_TYPES[0]] = {"schema": {"type": "string"}}
        found["requestBody"] = {"required": each.method != "POST", "content": content}
    return found


def parameters(each: Route) -> list[Document]:
    """The variables of the path, and the parameters of the query."""
    found: list[Document] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"<(\w+)>", each.path)
    ]
    schema = msgspec.json.schema(each.query)["$defs"][each.query.__name__]
    required = schema.get("required", ())
    for name, property in schema["properties"].items():
        words = property.pop("description", "")
        entry = {"name": name, "in": "query", "required": name in required, "schema": property}
        found.append({**entry, "description": words} if words else entry)
    return found


def responses(each: Route) -> Document:
    """The answer of a route, and its refusals."""
    success: Document = {"description": HTTPStatus(each.status).phrase}
    if isinstance(each.answer, str):
        success["content"] = {each.answer: {"schema": {"type": "string"}}}
    elif each.answer is not None:
        success["content"] = {JSON: {"schema": schema_of(each.answer)}}
    for media_type in each.also:
        success["content"][media_type] = {"schema": {"type": "string"}}
    statuses = {*each.errors, *(() if each.is_open else _ALWAYS)}
    if each.runs is not Runs.AT_ONCE:
        statuses.add(HTTPStatus.SERVICE_UNAVAILABLE)
    if each.body is not None:
        statuses |= {*_WITH_BODY}
    elif each.query.__struct_fields__:
        statuses.add(HTTPStatus.BAD_REQUEST)
    problem = {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}}
    refusals = {
        str(int(status)): {"description": _MEANINGS[HTTPStatus(status)], "content": problem}
        for status in sorted(statuses)
    }
    return {str(each.status): success, **refusals}


def schema_of(kind: Any) -> Document:
    """A type's schema, by reference; a schema stays as it is."""
    if is_struct(kind):
        return {"$ref": _REF.format(name=kind.__name__)}
    schema: Document = kind
    return schema
