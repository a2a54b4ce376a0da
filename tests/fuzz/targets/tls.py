"""TLS listeners in virtual time: strangers send handshakes that are broken, and other protocols.

Owns: the bytes, the cluster, and that nobody comes in: no request of a stranger reaches a broker.
Never: has a certificate, so that no handshake of a stranger can end well.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from random import Random
from typing import Final

from kcluster.config.topology.model import Topology
from kcluster.contract import Input, Request
from kcluster.principals import SecurityProtocol
from tests.fuzz.episodes import Failure, Watch, packed
from tests.fuzz.mutations import MUTATIONS
from tests.fuzz.targets.brokers import Closed, FuzzedCluster, Sent

REQUESTS: Final = 150
LANES: Final = 6
HELLO: Final = b64decode(
    "FgMBAJUBAACRAwOUVp286/pe0Rly4/sqa/rKI0ygSgkcqbur69BiJ5hTlQAABMArAP8BAABkAAAADgAMAAAJbG9jYWxob3"
    "N0AAsABAMAAQIACgAMAAoAHQAXAB4AGQAYACMAAAAWAAAAFwAAAA0AKgAoBAMFAwYDCAcICAgJCAoICwgECAUIBgQBBQEG"
    "AQMDAwEDAgQCBQIGAg=="
)
"""What a client of TLS 1.2 says first."""
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

Step = Sent | Closed


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


class Tls:
    """The target."""

    name = "tls"
    step = Step

    def draw(self, rng: Random) -> list[Step]:
        """Bytes for three brokers."""
        steps: list[Step] = []
        for _ in range(REQUESTS):
            broker, lane = rng.randint(1, 3), rng.randrange(LANES)
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
        self._tap = self.rig.driver.dispatcher.tap
        self.rig.driver.dispatcher.tap = self.look

    def address(self, broker: int, lane: int) -> tuple[str, int]:
        endpoint = self.rig.plan.endpoints[broker][1]
        assert endpoint.protocol is SecurityProtocol.SSL
        return endpoint.host, endpoint.port

    def look(self, now_us: int, node_id: int, event: Input) -> None:
        """See what reaches the nodes."""
        if self._tap is not None:
            self._tap(now_us, node_id, event)
        if isinstance(event, Request) and event.identity.protocol.has_tls and self.intruder is None:
            self.intruder = event
