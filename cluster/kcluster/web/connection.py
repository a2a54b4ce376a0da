"""Connections of the web server: HTTP/1.1 by gevent's pywsgi, within limits.

Owns: the limits of time and size of a connection's phases, the refusals before there is a request
and their log, and the end of work whose client has left.  Never: knows a route (application.py
does).  Kafka: SocketServer, Acceptor.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPMessage
from io import BytesIO
from typing import Any, BinaryIO, Final

import gevent
import msgspec
from gevent.pywsgi import Input, WSGIHandler, WSGIServer, headers_factory

from kcluster.web.call import CONNECTION
from kcluster.web.complaints import Complaints
from kcluster.web.limits import WebLimits
from kcluster.web.problems import MEDIA_TYPE, RefusedRequest, bad_request, overloaded

SLICE_BYTES: Final = 64 * 1024
UNREAD_S: Final = 0.5
"""The time for which a refused body is read, so that its client reads the answer instead of a
reset."""
ACCEPT_AGAIN_S: Final = 0.5
_TLS_HANDSHAKE: Final = b"\x16"
_TLS_ALERT: Final = b"\x15"
_FAREWELL: Final = b"\x17\x03\x03\x00\x13" + bytes(19)
"""The size of an alert of TLS 1.3, which looks like data of two bytes; no request is so short."""


class ClientLeft(ConnectionResetError):
    """The error for a client that has closed its connection, or does not read, so that an answer
    would reach no reader."""

    def __init__(self) -> None:
        super().__init__(errno.ECONNRESET, "the client has left")


class SlowClient(Exception):
    """The error for a phase of a request that has taken too long."""


class LimitedInput(Input):  # type: ignore[misc]  # gevent has no types
    """The body of a request.  `limit_s`: the time limit for all of it."""

    __slots__ = ("is_given_up", "limit_s")

    def __init__(self, limit_s: float, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self.limit_s = limit_s
        self.is_given_up = False

    @property
    def is_unread(self) -> bool:
        """Whether a part of the body was not read."""
        return bool(self.chunked_input or self.position < (self.content_length or 0))

    def read(self, length: int | None = None) -> bytes:
        """Read the body; ClientLeft if it ends early, a refusal if it does not come in time."""
        try:
            with gevent.Timeout(self.limit_s, SlowClient):
                body: bytes = super().read(length)
                return body
        except SlowClient:
            self.is_given_up = True
            detail = f"the body has not arrived within {self.limit_s:g} s"
            raise RefusedRequest(HTTPStatus.REQUEST_TIMEOUT, detail) from None
        except OSError as error:
            raise ClientLeft from error

    def _discard(self) -> None:
        if not self.is_unread or self.chunked_input or self.is_given_up:
            return
        if self.socket is not None:
            return  # a client that waits for 100 Continue sends nothing more
        with gevent.Timeout(UNREAD_S, False):
            try:
                super().read(SLICE_BYTES * 16)
            except OSError:
                return


class Connection(WSGIHandler):  # type: ignore[misc]  # gevent has no types
    """One connection, with one request at a time."""

    server: LimitedServer
    wsgi_input: Any
    ignored_socket_errors = (errno.EPIPE, errno.ECONNRESET, errno.EBADF)
    _phase: Any = None

    # ------------------------------------------------------------------------------- reading

    def handle_one_request(self) -> object:
        """pywsgi: read a request and answer it."""
        try:
            return super().handle_one_request()
        finally:
            self._end_phase()

    def read_requestline(self) -> str:
        """pywsgi: the first line; empty if there is none in time."""
        limits, first = self.server.limits, b""
        with gevent.Timeout(limits.idle_s, False):
            first = self.rfile.peek(1)
        if first.startswith(_TLS_HANDSHAKE):
            self._complain("a TLS handshake; this server speaks plain HTTP: http://")
            return ""
        if not first:
            return ""
        self._phase = gevent.Timeout.start_new(limits.header_s, SlowClient)
        try:
            line: str = super().read_requestline()
        except SlowClient:
            return ""
        return line

    def MessageClass(self, *_: object) -> HTTPMessage:  # pywsgi's name
        """pywsgi: the header; a refusal for a header that two readers could understand
        differently."""
        header = headers_factory(BytesIO(read_header(self.rfile, self.server.limits.header_bytes)))
        check_header(header)
        message: HTTPMessage = header
        return message

    def get_environ(self) -> dict[str, object]:
        """pywsgi: the request, whose header is complete."""
        self._end_phase()
        environ: dict[str, object] = super().get_environ()
        plain = self.wsgi_input
        self.wsgi_input = environ["wsgi.input"] = LimitedInput(
            self.server.limits.body_s,
            self.rfile,
            self.content_length,
            socket=plain.socket,
            chunked_input=plain.chunked_input,
        )
        environ[CONNECTION] = self
        return environ

    def handle_one_response(self) -> None:
        """pywsgi: answer the request that was read."""
        super().handle_one_response()
        if self.wsgi_input.is_unread:
            self.close_connection = True

    def _end_phase(self) -> None:
        if self._phase is not None:
            self._phase.close()
            self._phase = None

    # ------------------------------------------------------------------------------ refusing

    def _handle_client_error(self, ex: Exception) -> object:
        """pywsgi: the answer to a request that cannot be read."""
        self._end_phase()
        if isinstance(ex, OSError):
            return None
        if isinstance(ex, SlowClient):
            detail = f"the header is not complete after {self.server.limits.header_s:g} s"
            refusal = RefusedRequest(HTTPStatus.REQUEST_TIMEOUT, detail)
        elif isinstance(ex, RefusedRequest):
            refusal = ex
        else:
            refusal = bad_request(str(ex) or type(ex).__name__)
        self._complain(str(refusal))
        return str(refusal.document.status), refusal_bytes(refusal)

    def _complain(self, text: str) -> None:
        self.server.complaints.add(f"request from {client_name(self.client_address)}: {text}")

    # ------------------------------------------------------------------------------- sending

    def _sendall(self, data: bytes | bytearray) -> None:
        view = memoryview(data)
        for start in range(0, len(view), SLICE_BYTES):
            with gevent.Timeout(self.server.limits.send_s, ClientLeft):
                super()._sendall(view[start : start + SLICE_BYTES])

    def keep_open_until_exit(self) -> None:
        """Keep the socket open until the process ends."""
        os.dup(self.socket.fileno())

    @contextmanager
    def while_client_stays(self) -> Iterator[None]:
        """Run the body, which waits; ClientLeft is raised in it once the client has closed its
        connection."""
        greenlet = gevent.getcurrent()
        plain, has_tls = self.socket._sock, self.server.tls is not None
        watcher = gevent.get_hub().loop.io(plain.fileno(), 1)

        def on_readable() -> None:
            try:
                data = plain.recv(len(_FAREWELL) + 1, socket.MSG_PEEK)
                has_left = not data or (has_tls and is_farewell(data))
            except BlockingIOError:
                return
            except OSError:
                has_left = True
            watcher.stop()  # also if the client has sent its next request
            if has_left:
                greenlet.kill(ClientLeft, block=False)

        watcher.start(on_readable)
        try:
            yield
        finally:
            watcher.stop()
            watcher.close()


class LimitedServer(WSGIServer):  # type: ignore[misc]  # gevent has no types
    """Accepts connections, within `limits`."""

    handler_class = Connection

    def __init__(
        self,
        listener: object,
        application: object,
        limits: WebLimits,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(listener, application, log=None, spawn=gevent.pool.Pool())
        self.limits = limits
        self.tls = tls
        """gevent's SSLContext; None: plain HTTP."""
        if tls is not None:
            self.environ["wsgi.url_scheme"] = "https"
        self.complaints = Complaints(_to_stderr, time.monotonic)
        self.connections = 0
        """The connections that are open."""

    def handle(self, sock: Any, address: object) -> None:
        """pywsgi: serve a connection."""
        if self.connections >= self.limits.connections:
            refusal = overloaded(f"{self.limits.connections} connections are open")
            with gevent.Timeout(UNREAD_S, False):
                sock.sendall(refusal_bytes(refusal))
            self.complaints.add(f"a connection from {client_name(address)}: {refusal}")
            return
        self.connections += 1
        try:
            if self.tls is None:
                super().handle(sock, address)
            else:
                self._handle_tls(self.tls, sock, address)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has left before its answer, also before a refusal of its request
        finally:
            self.connections -= 1

    def _handle_tls(self, tls: ssl.SSLContext, sock: socket.socket, address: object) -> None:
        """Serve a connection after its handshake."""
        secured = tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        try:
            with gevent.Timeout(self.limits.header_s, SlowClient):
                secured.do_handshake()
            super().handle(secured, address)
        except SlowClient:
            self._complain_of(address, f"no TLS handshake within {self.limits.header_s:g} s")
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).replace("_", " ").lower()
            if error.reason == "HTTP_REQUEST":
                reason = "a request by plain HTTP; this server speaks TLS: https://"
            self._complain_of(address, reason)
        finally:
            secured.close()

    def _complain_of(self, address: object, text: str) -> None:
        self.complaints.add(f"connection from {client_name(address)}: {text}")

    def do_read(self) -> object:
        """pywsgi: accept; without a free descriptor, try again in a moment."""
        try:
            return super().do_read()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self.complaints.add(f"cannot accept a connection: {error.strerror} (ulimit -n)")
            self.stop_accepting()
            self._timer = self.loop.timer(ACCEPT_AGAIN_S)
            self._timer.start(self._start_accepting_if_started)
            return None


def is_farewell(data: bytes) -> bool:
    """Whether these encrypted bytes of a client are an alert, by which it ends its connection."""
    return data[:1] == _TLS_ALERT or (data[:5] == _FAREWELL[:5] and len(data) == len(_FAREWELL))


def client_name(address: object) -> str:
    """The address of a client; empty for a unix socket."""
    return str(address[0]) if isinstance(address, tuple) else "this machine"


def read_header(rfile: BinaryIO, limit_bytes: int) -> bytes:
    """The lines of a header, with the empty one at its end."""
    lines: list[bytes] = []
    size = 0
    while True:
        line: bytes = rfile.readline(limit_bytes + 1 - size)
        size += len(line)
        if size > limit_bytes:
            detail = f"the header has more than {limit_bytes} bytes"
            raise RefusedRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
        if not line.endswith(b"\n"):
            raise ClientLeft
        lines.append(line)
        if line in (b"\r\n", b"\n"):
            return b"".join(lines)


def check_header(header: HTTPMessage) -> None:
    """Refuse a header that a proxy and this server could understand differently (RFC 9112, section
    11.2): two lengths, a length that is not a number, a length together with chunks, a line that is
    not a field."""
    if header.defects:
        raise bad_request("a line of the header is no field")
    if any("\n" in value for value in header.values()):
        raise bad_request("a field of the header is folded")
    lengths = header.get_all("content-length", [])
    if len(lengths) > 1:
        raise bad_request(f"{len(lengths)} times Content-Length")
    if lengths and not (lengths[0].isascii() and lengths[0].isdecimal() and len(lengths[0]) < 20):
        raise bad_request(f"Content-Length: {lengths[0]!r} is no number of bytes")
    if lengths and "transfer-encoding" in header:
        raise bad_request("Content-Length and Transfer-Encoding at once")


def refusal_bytes(refusal: RefusedRequest) -> bytes:
    """The bytes of a refusal, for a request that cannot be answered by the application."""
    document = refusal.document
    body = msgspec.json.encode(document)
    fields = {
        "Content-Type": MEDIA_TYPE,
        "Content-Length": str(len(body)),
        "Connection": "close",
        **refusal.headers,
    }
    lines = [f"HTTP/1.1 {document.status} {document.title}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _to_stderr(line: str) -> None:
    if sys.stderr is not None:
        print(f"kcluster: {line}", file=sys.stderr)
