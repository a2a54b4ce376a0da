"""A client that logs in by SASL over the bytes of a connection, of either kind (byte_worlds.py).

Owns: SaslLine.  Never: asserts what a test is about.
"""

from __future__ import annotations

from typing import Any

from kcluster.principals import BrokerEndpoint
from kcluster.protocol import messages as m
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.security.sasl.exchange import SaslClient
from tests.rig.byte_worlds import LiveSocket, MemoryBytes, MemorySocket
from tests.rig.requests import api_of


class SaslLine:
    """A connection to a listener of a broker."""

    def __init__(self, sock: Any) -> None:
        self.sock = sock

    @classmethod
    def to(cls, world: Any, broker_id: int, listener: str, timeout_s: float = 5) -> SaslLine:
        """Connect to a broker of a ByteWorld."""
        endpoint: BrokerEndpoint = next(
            one for one in world.cluster.plan.endpoints[broker_id] if one.listener == listener
        )
        address = endpoint.host, endpoint.port
        if isinstance(world, MemoryBytes):
            return cls(MemorySocket(world.cluster.driver, address, timeout_s))
        return cls(LiveSocket(address, timeout_s))

    def ask(self, body: Any, version: int | None = None) -> Any:
        """Send a request and return its answer; None at the end of the stream."""
        key, version = api_of(body, version)
        self.sock.sendall(b"".join(encode_request_frame(key, version, 1, "test", body)))
        frame = self.read_frame()
        return None if frame is None else decode_response_frame(key, version, frame)[1]

    def login(self, client: SaslClient) -> m.SaslAuthenticateResponse:
        """Log in; the last answer, with its error if there is one."""
        handshake = self.ask(m.SaslHandshakeRequest(mechanism=client.mechanism))
        assert not handshake.error_code, handshake
        challenge = b""
        while True:
            token = client.respond(challenge)
            assert token is not None, "the server expects more than the client has to say"
            request = m.SaslAuthenticateRequest(auth_bytes=token)
            answer: m.SaslAuthenticateResponse = self.ask(request, 2)
            if answer.error_code or not answer.auth_bytes or answer.auth_bytes[:2] == b"v=":
                return answer
            challenge = bytes(answer.auth_bytes)

    def read_frame(self) -> bytes | None:
        size = self._read(4)
        return None if size is None else self._read(int.from_bytes(size))

    def _read(self, size_bytes: int) -> bytes | None:
        read = b""
        while len(read) < size_bytes:
            piece = self.sock.recv(size_bytes - len(read))
            if not piece:
                return None
            read += piece
        return read

    def close(self) -> None:
        self.sock.close()
