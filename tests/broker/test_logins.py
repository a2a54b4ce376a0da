"""Logins at a broker's SASL listener: its channel's frames, delays and events."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kcluster.broker.channel import Channel
from kcluster.broker.logins import Logins
from kcluster.contract import (
    CloseConnection,
    ConnectionClosed,
    HandshakeFailed,
    LoginFailed,
    Note,
    Reply,
    Request,
    Tick,
)
from kcluster.events import AuthenticationFailed
from kcluster.events.words import text_of
from kcluster.principals import ClientIdentity, SecurityProtocol
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.security.certificates import HandshakeProblem
from kcluster.security.sasl.exchange import LoginProblem
from kcluster.security.sasl.mechanisms import MECHANISMS
from kcluster.security.sasl.settings import SaslSettings
from tests.rig.one_broker import OneBroker, broker_records

LISTENER = ClientIdentity(listener="CLIENT", protocol=SecurityProtocol.SASL_PLAINTEXT)
SETTINGS = SaslSettings(MECHANISMS, {"alice": "alice-secret"}, failure_delay_ms=100)
ALICE = b"\0alice\0alice-secret"


class Connection:
    """A client's connection, without a driver: what it sends, and what comes back by when."""

    def __init__(
        self, broker: OneBroker, connection_id: int = 1, channel: Channel | None = None
    ) -> None:
        self.broker = broker
        logins = broker.broker.logins
        self.channel = channel or Channel(broker.broker, identity=LISTENER, logins=logins)
        self.connection_id = connection_id
        self.closed = ""
        """The reason why the connection was closed."""
        self._received: list[bytes] = []

    def send(self, frame: bytes) -> bytes | None:
        """Send a frame; the frame of its answer, if there is one now."""
        now_ms = self.broker.now_ms
        received = self.channel.receive(
            memoryview(bytearray(frame)), self.connection_id, "10.0.0.7", now_ms
        )
        if isinstance(received, Request | LoginFailed):
            self._carry_out(received)
        else:
            self._received.append(b"".join(received))
        return self.take()

    def ask(self, key: ApiKey, version: int, body: Any) -> Any:
        """Send a request; its answer, None if there is none yet."""
        frame = self.send(b"".join(encode_request_frame(key, version, 1, "me", body))[4:])
        return None if frame is None else decode_response_frame(key, version, frame[4:])[1]

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        request = m.SaslHandshakeRequest(mechanism=mechanism)
        return self.ask(ApiKey.SASL_HANDSHAKE, version, request)

    def token(self, data: bytes) -> Any:
        return self.ask(ApiKey.SASL_AUTHENTICATE, 2, m.SaslAuthenticateRequest(auth_bytes=data))

    def pass_time(self, ms: int) -> bytes | None:
        self.broker.now_ms += ms
        self._carry_out(Tick())
        return self.take()

    def take(self) -> bytes | None:
        return self._received.pop(0) if self._received else None

    def take_input(self, event: Any) -> None:
        """Hand the broker an input of its driver."""
        self._carry_out(event)

    def _carry_out(self, event: Any) -> None:
        for effect in self.broker.broker.step(self.broker.now_ms, event):
            if isinstance(effect, Reply):
                self._received.append(b"".join(self.channel.answer(effect)))
                self.closed = effect.close_reason
            elif isinstance(effect, CloseConnection):
                self.closed = effect.reason
            elif isinstance(effect, Note):
                self.broker.events.append(effect.event)


@pytest.fixture
def client() -> Connection:
    return Connection(OneBroker(broker_records(1), sasl={"CLIENT": SETTINGS}))


def logins_of(client: Connection) -> Logins:
    """The broker's own, which is there since it has a listener with SASL."""
    logins = client.broker.broker.logins
    assert logins is not None
    return logins


def metadata(client: Connection) -> Any:
    return client.ask(ApiKey.METADATA, 5, m.MetadataRequest(topics=[]))


def test_login__then_requests_are_served(client: Connection) -> None:
    software = m.ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert not client.ask(ApiKey.API_VERSIONS, 3, software).error_code
    assert client.handshake().error_code == 0
    assert client.token(ALICE).error_code == 0
    assert metadata(client) is not None
    assert metadata(client) is not None  # the second answer comes from the cache
    assert not client.closed
    assert not client.broker.events


def test_login__invalid_api_versions_do_not_count(client: Connection) -> None:
    wrong = m.ApiVersionsRequest(client_software_name="-", client_software_version="1")
    assert client.ask(ApiKey.API_VERSIONS, 3, wrong).error_code == 42
    too_new = b"\x00\x12\x00\x64" + b"\0\0\0\1" + b"\0\2me" + b"\0"
    assert client.send(too_new) is not None
    right = m.ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert client.ask(ApiKey.API_VERSIONS, 3, right).error_code == 0
    assert client.handshake().error_code == 0


def test_failure__is_answered_after_the_delay_and_closes_the_connection(client: Connection) -> None:
    client.handshake()
    assert client.token(b"\0alice\0x") is None
    assert client.pass_time(99) is None
    assert client.closed == ""
    assert client.pass_time(1) is not None
    assert client.closed == "login failed: wrong password"


def test_failure__a_client_that_leaves_first_gets_no_answer(client: Connection) -> None:
    client.handshake()
    client.token(b"\0alice\0x")
    client._carry_out(ConnectionClosed(1))
    assert client.pass_time(100) is None


@pytest.mark.parametrize(
    ("key", "body"),
    [
        (ApiKey.METADATA, m.MetadataRequest(topics=[])),
        (ApiKey.SASL_AUTHENTICATE, m.SaslAuthenticateRequest(auth_bytes=ALICE)),
    ],
)
def test_order__a_request_before_the_handshake_closes_the_connection(
    client: Connection, key: ApiKey, body: Any
) -> None:
    assert client.ask(key, 1, body) is None
    assert client.closed == "login failed: unexpected request"


def test_order__other_requests_in_the_exchange_are_refused(client: Connection) -> None:
    client.handshake()
    groups = b"".join(encode_request_frame(16, 0, 1, "me", m.ListGroupsRequest()))[4:]
    assert client.send(groups) is None
    answer = client.pass_time(100)
    assert answer is not None
    assert decode_response_frame(16, 0, answer[4:])[1].error_code == 34
    assert client.closed == "login failed: unexpected request"


@pytest.mark.parametrize(
    "frame",
    [b"", b"\x60\x82\x02\x10" + bytes(30), b"\x00\x11\x00\x09" + bytes(7), b"\x03\xe7" + bytes(9)],
    ids=["empty", "GSSAPI", "too new", "unknown API"],
)
def test_order__bytes_of_another_protocol_close_the_connection(
    client: Connection, frame: bytes
) -> None:
    assert client.send(frame) is None
    assert "not a SASL client" in client.closed or "unexpected request" in client.closed


def test_bare_tokens__are_answered_barely(client: Connection) -> None:
    client.handshake(version=0)
    assert client.send(ALICE) == bytes(4)
    assert metadata(client) is not None


def test_events__equal_failures_of_a_second_are_one(client: Connection) -> None:
    for number in range(5):
        again = Connection(client.broker, number, client.channel)
        again.handshake()
        again.token(b"\0alice\0x")
    (event,) = client.broker.events
    assert isinstance(event, AuthenticationFailed)
    assert event == AuthenticationFailed(
        1, "CLIENT", "PLAIN", "10.0.0.7", "me", LoginProblem.WRONG_PASSWORD, "alice"
    )
    assert text_of(event) == (
        "broker 1 refused the login of alice by PLAIN at CLIENT (me from 10.0.0.7): wrong password"
    )
    client.pass_time(1_000)
    assert client.broker.events[1] == replace(event, times=4)
    client.pass_time(1_000)
    assert len(client.broker.events) == 2
    assert text_of(client.broker.events[1]).endswith("(me from 10.0.0.7, 4 times): wrong password")
    assert logins_of(client).authentications.at("CLIENT").failed == 5


def test_events__a_failed_handshake(client: Connection) -> None:
    """Its client has sent nothing yet, so it has no name."""
    for _ in range(3):
        client.take_input(HandshakeFailed("CLIENT", "10.0.0.7", HandshakeProblem.EXPIRED))
    client.take_input(HandshakeFailed("CLIENT", "10.0.0.8", HandshakeProblem.OTHER, "bad record"))
    client.pass_time(1_000)
    assert [text_of(event) for event in client.broker.events] == [
        "broker 1: TLS handshake at CLIENT failed (from 10.0.0.7): to the client, the broker's"
        " certificate has expired",
        "broker 1: TLS handshake at CLIENT failed (from 10.0.0.8): bad record",
        "broker 1: TLS handshake at CLIENT failed (from 10.0.0.7, 2 times): to the client, the"
        " broker's certificate has expired",
    ]
    assert logins_of(client).authentications.at("CLIENT").failed == 4


def test_sessions__are_those_of_clients_that_are_let_in(client: Connection) -> None:
    logins = logins_of(client)
    client.ask(ApiKey.API_VERSIONS, 0, m.ApiVersionsRequest())
    client.handshake()
    assert not list(logins.sessions()), "it has not logged in"
    client.token(ALICE)
    (session,) = logins.sessions()
    assert (session.client_id, session.host, session.mechanism) == ("me", "10.0.0.7", "PLAIN")
    assert str(session.identity.principal) == "User:alice"
    assert session.ends_ms is None
    revision = logins.clients.revision
    metadata(client)
    metadata(client)
    assert logins.clients.revision == revision + 1, "its first request shows the login"
    client.take_input(ConnectionClosed(1))
    assert not list(logins.sessions())
    counts = logins.authentications.at("CLIENT")
    assert (counts.successful, counts.successful_no_reauth, counts.failed) == (1, 0, 0)


def test_sessions__end_unless_the_client_logs_in_again() -> None:
    settings = replace(SETTINGS, max_reauth_ms={"PLAIN": 5_000})
    client = Connection(OneBroker(broker_records(1), sasl={"CLIENT": settings}))
    client.handshake()
    client.token(ALICE)
    logins, began_ms = logins_of(client), client.broker.now_ms
    client.pass_time(2_000)
    client.handshake()
    assert [session.ends_ms for session in logins.sessions()] == [began_ms + 5_000]
    client.token(ALICE)
    assert [session.ends_ms for session in logins.sessions()] == [began_ms + 7_000]
    client.pass_time(5_001)
    client.ask(ApiKey.METADATA, 5, m.MetadataRequest(topics=[]))
    counts = logins.authentications.at("CLIENT")
    assert (counts.successful, counts.successful_reauthentication) == (1, 1)
    assert (counts.failed, counts.expired_connections_killed) == (0, 1)


def test_secrets__are_in_no_event_and_no_representation(client: Connection) -> None:
    client.handshake()
    token = m.SaslAuthenticateRequest(auth_bytes=b"\0alice\0hush")
    request = Request(1, ApiKey.SASL_AUTHENTICATE, 2, 1, None, token)
    assert "hush" not in repr(request)
    client.token(b"\0alice\0hush")
    client.pass_time(100)
    assert "hush" not in f"{client.broker.events}{client.closed}"
