"""A broker's end of TLS: handshakes, whatever the sizes of reads and writes, and how it ends."""

from __future__ import annotations

import ssl
from contextlib import suppress

import pytest

from kcluster.drivers.memory.stream import CAPACITY_BYTES
from kcluster.drivers.tls.authority import Authority
from kcluster.drivers.tls.contexts import ClientAuth, TlsSettings
from kcluster.security.certificates import CertificateState
from tests.drivers.tls.wire import AUTHORITY, BROKER, NAME, TlsWire, client_context

REQUIRED = TlsSettings(client_auth=ClientAuth.REQUIRED)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls__bytes_pass_both_ways(version: ssl.TLSVersion) -> None:
    wire = TlsWire(client=client_context(maximum_version=version)).shake_hands()
    assert wire.tls.version() == version.name.replace("_", ".")
    wire.says(b"request")
    assert wire.reads() == b"request"
    assert wire.sock.sendmsg([b"re", memoryview(b"pl"), bytearray(b"y")]) == 5
    assert wire.sock.send(b"!") == 1
    assert wire.hears() == b"reply!"


def test_tls__nothing_is_sent_before_the_handshake_has_ended() -> None:
    wire = TlsWire()
    with pytest.raises(BlockingIOError):
        wire.sock.send(b"early")
    woken: list[int] = []
    wire.sock.watch(2).start(lambda: woken.append(1))
    wire.shake_hands()
    wire.host.turn()
    assert woken == [1]
    assert wire.sock.send(b"now") == 3


def test_tls__a_client_that_sends_byte_by_byte_is_understood() -> None:
    wire = TlsWire().shake_hands()
    wire.tls.write(b"slow")
    for byte in wire.outgoing.read():
        assert wire.reads() is None
        wire.end.write(bytes([byte]))
    assert wire.reads() == b"slow"


def test_tls__a_reader_is_called_until_no_record_is_left() -> None:
    """The buffer is small, and the socket has nothing more, so nobody may wait for that."""
    wire = TlsWire().shake_hands()
    wire.buffer = memoryview(bytearray(5))
    read: list[bytes | None] = []
    reading = wire.sock.watch(1)
    reading.start(lambda: read.append(wire.reads()))
    wire.says(b"0123456789ab")
    wire.host.turn()
    assert read == [b"01234", b"56789", b"ab"]


def test_tls__what_is_left_while_nobody_reads_is_read_when_somebody_does() -> None:
    wire = TlsWire().shake_hands()
    wire.buffer = memoryview(bytearray(5))
    wire.says(b"0123456789")
    read: list[bytes | None] = []
    reading = wire.sock.watch(1)

    def read_once() -> None:
        read.append(wire.reads())
        reading.stop()

    for _ in range(2):
        reading.start(read_once)
        wire.host.turn()
    assert read == [b"01234", b"56789"]
    assert not reading.active


def test_tls__a_client_that_does_not_read_holds_back_the_rest() -> None:
    wire = TlsWire().shake_hands()
    body = bytes(3 * CAPACITY_BYTES)
    sent = 0
    with suppress(BlockingIOError):
        while True:
            sent += wire.sock.send(memoryview(body)[sent:])
    assert sent < CAPACITY_BYTES + (512 << 10)
    woken: list[int] = []
    wire.sock.watch(2).start(lambda: woken.append(1))
    wire.host.turn()
    assert not woken
    heard = len(wire.hears())
    while not woken:
        wire.host.turn()
        heard += len(wire.hears())
    while sent < len(body):
        sent += wire.sock.send(memoryview(body)[sent:])
        wire.host.turn()
        heard += len(wire.hears())
    wire.host.turn()
    assert heard + len(wire.hears()) == len(body)


def test_tls__the_end_of_the_stream_is_seen_after_the_last_bytes() -> None:
    wire = TlsWire().shake_hands()
    read: list[bytes | None] = []
    wire.sock.watch(1).start(lambda: read.append(wire.reads()))
    wire.tls.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        wire.tls.unwrap()
    wire.carry()
    wire.host.turn()
    assert read[:2] == [b"last", b""]


def test_tls__a_client_that_hangs_up_within_the_handshake_is_at_its_end() -> None:
    wire = TlsWire()
    with pytest.raises(ssl.SSLWantReadError):
        wire.tls.do_handshake()
    wire.carry()
    wire.end.close()
    assert wire.reads() == b""


def test_tls__only_a_running_process_says_goodbye() -> None:
    for is_open in (True, False):
        wire = TlsWire().shake_hands()
        wire.host.is_open = is_open
        wire.sock.close()
        wire.carry()
        if is_open:
            assert wire.tls.read(1) == b""
        else:
            with pytest.raises(ssl.SSLEOFError):
                wire.tls.read(1)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP request"),
        (b"\0\0\0\x1a\0\x12\0\3\0\0\0\1\0\7console" + bytes(20), "did not send TLS"),
        (b"\x16\3\1\0\x05\1\0\0\1\0", "SSL handshake failed"),
    ],
)
def test_tls__bytes_of_another_protocol_are_refused_in_words(data: bytes, words: str) -> None:
    wire = TlsWire()
    wire.end.write(data)
    with pytest.raises(OSError, match=words) as caught:
        wire.reads()
    assert str(caught.value.strerror).startswith("SSL handshake failed: ")


def test_tls__garbage_after_the_handshake_ends_the_connection() -> None:
    wire = TlsWire().shake_hands()
    wire.says(b"good")
    wire.end.write(bytes(100))
    assert wire.reads() == b"good"
    for _ in range(2):
        with pytest.raises(OSError, match="TLS failed"):
            wire.reads()


# ------------------------------------------------------------------------------------ certificates


def test_tls__the_client_is_named_by_its_certificate() -> None:
    alice = AUTHORITY.for_client("alice")
    wire = TlsWire(REQUIRED, client_context(alice))
    seen: list[bytes | None] = []
    wire.sock.on_secured = seen.append
    wire.shake_hands()
    assert seen == [ssl.PEM_cert_to_DER_cert(alice.pem().split(b"KEY-----\n")[-1].decode())]


def test_tls__a_client_without_a_certificate_is_refused_only_if_one_is_required() -> None:
    wire = TlsWire(TlsSettings(client_auth=ClientAuth.REQUESTED))
    seen: list[bytes | None] = []
    wire.sock.on_secured = seen.append
    wire.shake_hands()
    assert seen == [None]
    with pytest.raises(OSError, match="sent no certificate"):
        TlsWire(REQUIRED).shake_hands()


@pytest.mark.parametrize(
    ("authority", "state", "words"),
    [
        (Authority(fixed_size=True), CertificateState.VALID, "not accepted"),
        (AUTHORITY, CertificateState.EXPIRED, "certificate has expired"),
    ],
    ids=["of another CA", "expired"],
)
def test_tls__a_clients_certificate_is_checked(
    authority: Authority, state: CertificateState, words: str
) -> None:
    client = client_context(authority.for_client("mallory", state))
    with pytest.raises(OSError, match=words):
        TlsWire(REQUIRED, client).shake_hands()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (CertificateState.EXPIRED, "certificate has expired"),
        (CertificateState.WRONG_NAME, "Hostname mismatch"),
    ],
)
def test_tls__a_broker_with_a_bad_certificate_is_refused(
    state: CertificateState, words: str
) -> None:
    wire = TlsWire(broker=AUTHORITY.for_broker([NAME], state))
    with pytest.raises(ssl.SSLCertVerificationError, match=words):
        wire.shake_hands()
    wire.carry()
    with pytest.raises(OSError, match="the broker's certificate"):
        wire.reads()


def test_tls__all_handshakes_have_one_size() -> None:
    """So that runs in virtual time do not differ in what the network carries."""
    sizes = set()
    for _ in range(5):
        broker = AUTHORITY.for_broker([NAME])
        wire = TlsWire(REQUIRED, client_context(AUTHORITY.for_client("bob")), broker)
        wire.shake_hands()
        sizes.add(tuple(wire.carried))
    assert len(sizes) == 1


def test_tls__credentials_show_no_key() -> None:
    assert repr(BROKER) == f"<Credentials of CN={NAME}>"
