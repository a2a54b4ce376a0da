"""A client of the HTTP API, for tests: the standard library's, one connection per request."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from typing import Any, NamedTuple

from kcluster.web.server import WebServer

FAST = {"brokers": 3, "topics": {"orders": {"replication_factor": 3}}, "profile": "fast"}


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str] | Message[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


class Api:
    """`token`, `host`: as they are sent."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """The answer; a body that is not bytes is sent as JSON."""
        with self.asked(method, path, body, **headers) as response:
            return Answer(response.status, response.headers, response.read())

    @contextmanager
    def asked(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> Iterator[http.client.HTTPResponse]:
        """The response, to be read by the caller."""
        sent = {"Authorization": f"Bearer {self.token}"}
        if body is not None:
            sent["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent |= {key.replace("_", "-"): value for key, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, sent)
            yield connection.getresponse()
        finally:
            connection.close()

    def ok(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The value of an answer that must be a success."""
        answer = self.ask(method, path, body, **headers)
        assert answer.status < 300, answer
        return answer.value

    def cluster(self, **keys: Any) -> str:
        """The path of a new cluster."""
        id = self.ok("POST", "/v1/clusters", {"topology": FAST, "seed": 1, **keys})["id"]
        return f"/v1/clusters/{id}"


@contextmanager
def serving(**options: Any) -> Iterator[tuple[WebServer, Api]]:
    """A server in this process, whose clusters stop with it."""
    server = WebServer(can_create=True, **options)
    server.start()
    try:
        yield server, Api(server.port, server.token)
    finally:
        server.stop()
        for held in server.clusters.all():
            held.stop()
