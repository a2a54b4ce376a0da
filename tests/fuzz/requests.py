"""Made-up requests over HTTP.

Owns: which routes, keys and values are drawn.  Never: sends anything.
"""

from __future__ import annotations

import json
from random import Random
from typing import Final
from urllib.parse import quote

from kcluster.web.api import load_all
from kcluster.web.routes import ROUTES, Route
from tests.fuzz.json_texts import ATOMS, made_up_object, made_up_value
from tests.fuzz.mutations import mutated

load_all()

TOKEN: Final = "made-up-token"
LIKELY: Final = (
    *("0", "1", "2", "3", "true", "null", '"1"', '"2"', '"all"', '"orders"', '"orders-0"'),
    *('"leader(orders-0)"', '"kill"', '"clean"', '"1s"', '"0s"', '"10ms"', '"12s"', '"-1s"'),
    *('"kill: 1"', '{"kill":1}', '{"cut":{"from":1,"to":2}}', '"heal"', '["kill: 2"]', '"clean"'),
    *('{"slow":{"broker":1,"latency":"1s"}}', '"settled"', '"all_serving"', '"pause"', '"resume"'),
    *('"producer"', '"consumer"', '{"topic":"orders"}', "[[1,2]]", '"127.0.0.1"', "9092"),
    *('{"brokers":1}', '{"brokers":2,"topics":{"orders":{}}}', '"brokers: 1"', '"runs"'),
)
"""Values, as JSON, that some key of some request takes."""
HEADERS: Final = (
    *("Content-Type: text/plain", "Content-Type: application/yaml", "Content-Type: \xff"),
    *("Accept: text/event-stream", "Accept: application/x-ndjson", "Accept: */*;q=nan"),
    *("Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: x"),
    *("Transfer-Encoding: chunked", "Expect: 100-continue", "Range: bytes=0-", "Host: x:y:z"),
    *(
        "Last-Event-ID: -1",
        "Last-Event-ID: " + "9" * 500,
        "Connection: upgrade",
        "X: " + "y" * 9_000,
    ),
    *("Authorization: Bearer", "Authorization: Basic \xc3", "If-None-Match: *", "Cookie: \x1b[31m"),
)
METHODS: Final = (
    "GET",
    "POST",
    "PUT",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "\xff",
    "get",
)


def made_up_http(rng: Random) -> str:
    """The bytes of a request, as Latin-1."""
    route = rng.choice(ROUTES)
    method = route.method if rng.random() < 0.93 else rng.choice(METHODS)
    target = made_up_path(rng, route) + made_up_query(rng, route)
    lines = [f"{method} {target} HTTP/1.{rng.choice('1111110')}", "Host: 127.0.0.1"]
    if rng.random() < 0.95:
        lines.append(f"Authorization: Bearer {TOKEN}")
    body = b""
    if route.body is not None or rng.random() < 0.1:
        body = made_up_body(rng, route)
        lines.append(f"Content-Type: {rng.choice(('application/json',) * 9 + ('text/yaml',))}")
        size = len(body) if rng.random() < 0.95 else rng.choice((0, 1, 2 * len(body), 1 << 21))
        lines.append(f"Content-Length: {size}")
    if rng.random() < 0.2:
        lines.append(rng.choice(HEADERS))
    lines += ["Connection: close", "", ""]
    request = "\r\n".join(lines).encode("latin-1") + body
    if rng.random() < 0.1:
        request = mutated(rng, request)
    return request.decode("latin-1")


def made_up_path(rng: Random, route: Route) -> str:
    """The path of a route, mostly of the cluster that is there."""
    path = route.path
    for part in path.split("/"):
        if not part.startswith("<"):
            continue
        name = part.strip("<>").rpartition(":")[2]
        known = "c1" if name == "id" else json.loads(rng.choice(('"1"', '"orders-0"', '"p1"')))
        chosen = known if rng.random() < 0.9 else rng.choice(ATOMS).encode("utf-8", "replace")[:99]
        path = path.replace(part, quote(chosen, safe=""))
    return path


def made_up_query(rng: Random, route: Route) -> str:
    """Some parameters of a route."""
    parts = []
    for name in route.query.__struct_encode_fields__:
        if rng.random() < 0.4:
            value = rng.choice(LIKELY if rng.random() < 0.6 else ATOMS).strip('"')
            parts.append(f"{name}={quote(value[:5_000].encode('utf-8', 'replace'))}")
    if rng.random() < 0.05:
        parts.append(rng.choice(("strange=1", "token=", "a=%ff", "%", "&&&=", "a[]=1")))
    return "?" + "&".join(parts) if parts else ""


def made_up_body(rng: Random, route: Route) -> bytes:
    """A body, mostly an object with the keys of the route."""
    if rng.random() < 0.15:
        text = made_up_value(rng)
    else:
        text = made_up_object(rng, body_names(route), LIKELY)
    body = text.encode("utf-8", "surrogatepass")
    return mutated(rng, body) if rng.random() < 0.1 else body


def body_names(route: Route) -> tuple[str, ...]:
    """The keys of a route's body; of a JSON Schema, those of its alternatives too."""
    if hasattr(route.body, "__struct_encode_fields__"):
        return tuple(route.body.__struct_encode_fields__)
    if not isinstance(route.body, dict):
        return ()
    schemas = (route.body, *route.body.get("anyOf", ()), *route.body.get("oneOf", ()))
    return tuple(dict.fromkeys(name for one in schemas for name in one.get("properties", ())))
