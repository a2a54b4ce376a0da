"""A connection to a node of a real Kafka: one request at a time, one greenlet waiting for it.

Owns: the socket, its deadline, and the end of the connection after an error.  Never: knows what a
request means, tries again (its users do).  Kafka: NetworkClient with one request in flight.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

import gevent
from gevent import socket
from msgspec import Struct

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.messages import Message

CLIENT_ID: Final = "kcluster-mirror"
TIMEOUT_S: Final = 10.0
_SIZE: Final = Layout(">i")

Address = tuple[str, int]


class InnerLogin(Struct, frozen=True):
    """The user of the listeners between nodes, by SASL PLAIN."""

    user: str
    password: str


class NoAnswer(Exception):
    """The error for a node that cannot be reached, or does not answer in time."""


class KafkaConnection:
    """A connection to `address`, opened by the first request and, after an error, by the next."""

    def __init__(self, address: Address, login: InnerLogin | None = None) -> None:
        self.address = address
        self._login = login
        self._socket: socket.socket | None = None
        self._correlation_id = 0

    def ask(
        self, api_key: int, version: int, body: Message, timeout_s: float = TIMEOUT_S
    ) -> Message:
        """The answer to a request; NoAnswer if there is none.  Only the greenlet waits."""
        timeout = gevent.Timeout(timeout_s)
        timeout.start()
        try:
            return self._ask(api_key, version, body)
        except (OSError, gevent.Timeout) as error:
            self.close()
            if isinstance(error, gevent.Timeout) and error is not timeout:
                raise
            raise NoAnswer(f"{self.address[0]}:{self.address[1]}: {error}") from error
        except gevent.GreenletExit:
            self.close()
            raise
        finally:
            timeout.close()

    def _ask(self, api_key: int, version: int, body: Message) -> Message:
        if self._socket is None:
            self._socket = socket.create_connection(self.address)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._login is not None:
                self._log_in(self._login)
        return self._exchange(api_key, version, body)

    def _log_in(self, login: InnerLogin) -> None:
        self._exchange(ApiKey.SASL_HANDSHAKE, 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
        token = f"\0{login.user}\0{login.password}".encode()
        answer = self._exchange(
            ApiKey.SASL_AUTHENTICATE, 2, m.SaslAuthenticateRequest(auth_bytes=token)
        )
        assert isinstance(answer, m.SaslAuthenticateResponse), answer
        if answer.error_code:
            raise ConnectionRefusedError(answer.error_message)

    def _exchange(self, api_key: int, version: int, body: Message) -> Message:
        assert self._socket is not None
        self._correlation_id += 1
        buffers = encode_request_frame(api_key, version, self._correlation_id, CLIENT_ID, body)
        self._socket.sendall(b"".join(buffers))
        (size,) = _SIZE.unpack(self._read(_SIZE.size))
        answer: Message = decode_response_frame(api_key, version, self._read(size))[1]
        return answer

    def _read(self, size: int) -> bytes:
        assert self._socket is not None
        parts, left = [], size
        while left:
            part = self._socket.recv(min(left, 1 << 20))
            if not part:
                raise ConnectionResetError("the node has closed the connection")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
