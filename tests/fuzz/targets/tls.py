"""TLS listeners in virtual time: broken handshakes, other protocols, real clients that misbehave.

Owns: the bytes, the cluster, and that nobody comes in: a request reaches a broker only from a
client with a certificate, in the name of that.
Never: gives a certificate to a client that may not come in.
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.config.topology.model import Topology
from kcluster.contract import Input, Request
from kcluster.principals import SecurityProtocol
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import encode_request_frame
from tests.drivers.tls.wire import load
from tests.fuzz.episodes import Failure, Watch, packed, shorter, unpacked
from tests.fuzz.mutations import MUTATIONS
from tests.fuzz.targets.brokers import CONNECT_MS, Closed, FuzzedCluster, Sent

REQUESTS: Final = 150
LANES: Final = 6
HELLO: Final = b64decode(
    "FgMBAJUBAACRAwOUVp286/pe0Rly4/sqa/rKI0ygSgkcqbur69BiJ5hTlQAABMArAP8BAABkAAAADgAMAAAJbG9jYWxob3"
    "N0AAsABAMAAQIACgAMAAoAHQAXAB4AGQAYACMAAAAWAAAAFwAAAA0AKgAoBAMFAwYDCAcICAgJCAoICwgECAUIBgQBBQEG"
    "AQMDAwEDAgQCBQIGAg=="
)
"""What a client of TLS 1.2 says first."""
REQUEST: Final = b"".join(encode_request_frame(ApiKey.METADATA, 4, 1, "me", m.MetadataRequest([])))
OTHERS: Final = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"\0\0\0\x0e\0\x12\0\0\0\0\0\1\0\4test",
    b"\x15\3\3\0\2\2\x28",  # an alert
    b"\x15\3\3\0\2\1\0",  # a goodbye
    b"\x14\3\3\0\1\1",
    b"\x17\3\3\xff\xff" + bytes(300),
    b"\x16\3\1\x40\0\1\0\x3f\xfc" + bytes(500),
    b"\x80\x2e\1\3\1",  # SSL 2
)

USER: Final = "alice"
VERSIONS: Final = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
SIZES: Final = (0, 1, 1, 7, 100, 20_000, 300_000)
HANDSHAKE_TURNS: Final = 4
GOODBYE: Final = "goodbye"
HALF: Final = "half"


class Spoken(Struct, tag="spoken", omit_defaults=True):
    """A real client on a new connection: a handshake, then its bytes in records."""

    broker: int
    lane: int
    bytes: str
    has_certificate: bool = True
    version: int = 1
    """Which of VERSIONS."""
    record_bytes: int = 16_384
    piece_bytes: int = 0
    """The size of the pieces in which ciphertext is written; 0: all at once."""
    flipped_at: int = -1
    """The byte of the ciphertext in which a bit is flipped; -1: none."""
    cut_at: int = -1
    """How much of the ciphertext is written; -1: all."""
    ending: str = ""
    """goodbye: close_notify before the last record; half: the client closes at once."""

    def smaller(self) -> Iterator[Spoken]:
        """With fewer bytes, and without what may not matter."""
        data = unpacked(self.bytes)
        for size in shorter(len(data)):
            yield replace(self, bytes=packed(data[:size]))
        if self.piece_bytes:
            yield replace(self, piece_bytes=0)


Step = Sent | Closed | Spoken


def topology() -> Topology:
    """Three brokers with a listener that demands certificates, beside the one by which they are
    looked at."""
    return Topology.of(
        brokers=3,
        profile="fast",
        listeners={"INSIDE": {"protocol": "PLAINTEXT"}, "CLIENT": {"protocol": "SSL"}},
        security={"tls": {"client_auth": "required"}},
    )


def stranger(rng: Random) -> bytes:
    """The next bytes, often a handshake that is broken somewhere."""
    chance = rng.random()
    if chance < 0.2:
        return rng.choice(OTHERS)
    if chance < 0.3:
        return rng.randbytes(rng.choice((1, 5, 100, 20_000)))
    data = HELLO
    for _ in range(rng.randrange(4)):
        data = rng.choice(MUTATIONS)(rng, data)
    if rng.random() < 0.2:
        data = data[: rng.randrange(len(data) + 1)]
    return data + (rng.choice(OTHERS) if rng.random() < 0.3 else b"")


def spoken(rng: Random, broker: int, lane: int) -> Spoken:
    """A client that is real, up to some point."""
    data = b"".join(
        rng.choice((REQUEST, REQUEST, *OTHERS, bytes(rng.choice(SIZES)))) for _ in range(4)
    )
    where = rng.choice((-1, -1, -1, rng.randrange(300), rng.randrange(3_000)))
    is_flipped = rng.random() < 0.5
    return Spoken(
        broker,
        lane,
        packed(data),
        rng.random() < 0.7,
        rng.randrange(len(VERSIONS)),
        rng.choice((1, 1, 50, 16_384)) if len(data) < 2_000 else 16_384,
        rng.choice((0, 0, 1, 5, 1_000)) if len(data) < 2_000 else 0,
        where if is_flipped else -1,
        -1 if is_flipped else where,
        rng.choice(("", "", GOODBYE, HALF)),
    )


class Client:
    """A client's end of TLS, whose ciphertext is broken as a step says."""

    def __init__(self, context: ssl.SSLContext, step: Spoken) -> None:
        self._step = step
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        self._written_bytes = 0
        self.failed = False

    def received(self, data: bytes) -> None:
        self._incoming.write(data)

    def shake_hands(self) -> bool:
        """Go on with the handshake; whether it is over."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError:
            self.failed = True
            return False
        return True

    def speak(self) -> None:
        """Encrypt the bytes."""
        step, data = self._step, unpacked(self._step.bytes)
        records = [
            data[at : at + step.record_bytes] for at in range(0, len(data), step.record_bytes)
        ]
        for number, record in enumerate(records):
            if number == len(records) - 1 and step.ending == GOODBYE:
                with suppress(ssl.SSLError):
                    self._tls.unwrap()
            with suppress(ssl.SSLError):
                self._tls.write(record)

    def pieces(self) -> list[bytes]:
        """What is to be written now."""
        step, data = self._step, bytearray(self._outgoing.read())
        begin, self._written_bytes = self._written_bytes, self._written_bytes + len(data)
        if begin <= step.flipped_at < self._written_bytes:
            data[step.flipped_at - begin] ^= 1
        if step.cut_at >= 0:
            del data[max(step.cut_at - begin, 0) :]
        size = step.piece_bytes or len(data) or 1
        return [bytes(data[at : at + size]) for at in range(0, len(data), size)]


class Tls:
    """The target."""

    name = "tls"
    step = Step

    def draw(self, rng: Random) -> list[Step]:
        """Bytes for three brokers."""
        steps: list[Step] = []
        for _ in range(REQUESTS):
            broker, lane = rng.randint(1, 3), rng.randrange(LANES)
            if rng.random() < 0.15:
                steps.append(spoken(rng, broker, lane))
                continue
            steps.append(Sent(broker, lane, packed(stranger(rng)), rng.choice((0, 0, 1, 600))))
            if rng.random() < 0.1:
                steps.append(Closed(broker, rng.randrange(LANES)))
        return steps

    def play(self, steps: Sequence[Step]) -> Failure | None:
        """Do them to a fresh cluster, and look at it."""
        watch = Watch()
        with watch:
            cluster = CertifiedCluster()
            for step in steps:
                with cluster.budget:
                    if isinstance(step, Spoken):
                        cluster.speak(step)
                    else:
                        cluster.do(step)
                if cluster.budget.over is not None:
                    return cluster.budget.over
                if cluster.intruder is not None:
                    return Failure("came in", repr(cluster.intruder))
            return cluster.problem()
        return watch.failure


class CertifiedCluster(FuzzedCluster):
    """A cluster whose TLS listeners strangers try."""

    def __init__(self) -> None:
        super().__init__(topology())
        self.intruder: Request | None = None
        """The first request of a stranger."""
        self._known: set[str] = set()
        """The addresses of connections that have shown a certificate."""
        self._contexts: dict[tuple[bool, int], ssl.SSLContext] = {}
        self._tap = self.rig.driver.dispatcher.tap
        self.rig.driver.dispatcher.tap = self.look

    def address(self, broker: int, lane: int) -> tuple[str, int]:
        endpoint = self.rig.plan.endpoints[broker][1]
        assert endpoint.protocol is SecurityProtocol.SSL
        return endpoint.host, endpoint.port

    def context(self, has_certificate: bool, version: int) -> ssl.SSLContext:
        """The context of clients, which check nothing."""
        key = has_certificate, version
        if key not in self._contexts:
            context = self._contexts[key] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.minimum_version = context.maximum_version = VERSIONS[version]
            tls = self.rig.driver.tls
            assert tls is not None, "the listeners have TLS"
            if has_certificate:
                load(context, tls.authority.for_client(USER))
        return self._contexts[key]

    def speak(self, step: Spoken) -> None:
        """Connect, shake hands, send the bytes, and perhaps close."""
        key = step.broker, step.lane
        super().do(Closed(*key))
        end = self.line(*key)
        if step.has_certificate:
            self._known.add(end.local_address[0])
        client = Client(self.context(step.has_certificate, step.version), step)
        for _ in range(HANDSHAKE_TURNS):
            is_over = client.shake_hands()
            if is_over:
                client.speak()
            for piece in client.pieces():
                self.write(end, piece)
            if is_over or client.failed:
                break
            self.pass_ms(CONNECT_MS)
            with suppress(OSError):
                while end.is_readable and (data := end.read(1 << 20)):
                    client.received(data)
        if step.ending == HALF:
            super().do(Closed(*key))

    def look(self, now_us: int, node_id: int, event: Input) -> None:
        """See what reaches the nodes."""
        if self._tap is not None:
            self._tap(now_us, node_id, event)
        if isinstance(event, Request) and event.identity.protocol.has_tls and self.intruder is None:
            is_known = event.client_host in self._known
            if not is_known or event.identity.principal.name != f"CN={USER}":
                self.intruder = event
