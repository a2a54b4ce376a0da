"""SASL listeners in virtual time: strangers try to log in, in any order and with broken messages.

Owns: the messages, the cluster, and that nobody comes in: no request of a stranger but the three
of a login reaches a broker.
Never: sends a right password, or a token with the scope that the listener asks for.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from kcluster.config.topology.model import Topology
from kcluster.contract import Input, Request
from kcluster.principals import SecurityProtocol
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import encode_request_frame
from kcluster.protocol.releases import latest
from kcluster.security.sasl.mechanisms import MECHANISMS
from tests.fuzz.episodes import Failure, Watch, packed
from tests.fuzz.frames import made_up_frame
from tests.fuzz.mutations import MUTATIONS
from tests.fuzz.targets.brokers import Closed, FuzzedCluster, Sent
from tests.fuzz.values import MadeUp
from tests.rig.requests import api_of

REQUESTS: Final = 200
LANES: Final = 6
SIGNED_LANES: Final = (4, 5)
"""The lanes to the listener whose tokens must be signed."""
STRANGERS_MAY: Final = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
NAMES: Final = ("alice", "al=2Cice", "", "=", "x" * 300, "\xe4", "\0", "alice\0alice", "User:alice")
NUMBERS: Final[tuple[object, ...]] = (
    0,
    -1,
    1e30,
    1e306,
    10**400,
    2**63,
    4_000_000_000,
    "x",
    None,
    True,
    [],
    {},
)
ALGORITHMS: Final = ("none", "none", "None", "RS256", "ES256", "HS256", "", None, ["none"])
JAAS: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    ' unsecuredValidatorRequiredScope="hush";'
)

KEY_SET: Final = Path(__file__).with_name("key_set.json")
"""A public key (RFC 7517, appendix A.1), with which no token here is signed."""

Step = Sent | Closed


def topology() -> Topology:
    """Three brokers with two SASL listeners, beside the one by which they are looked at."""
    sasl = {"protocol": "SASL_PLAINTEXT"}
    return Topology.of(
        brokers=3,
        profile="fast",
        listeners={"INSIDE": {"protocol": "PLAINTEXT"}, "CLIENT": sasl, "SIGNED": sasl},
        security={"users": {"alice": "alice-secret"}},
        config={
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "connections.max.reauth.ms": 500,
            "listener.name.client.oauthbearer.sasl.jaas.config": JAAS,
            "listener.name.signed.oauthbearer.sasl.jaas.config": JAAS,
            "listener.name.signed.oauthbearer.sasl.server.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            "listener.name.signed.sasl.oauthbearer.jwks.endpoint.url": KEY_SET.as_uri(),
        },
    )


def bearer_token(rng: Random, name: str) -> str:
    """A JSON Web Token; no right one."""
    number: object = rng.choice(NUMBERS)
    claims = {"sub": name, "exp": number, "iat": rng.choice((0, number)), "scope": [name]}
    header: dict[str, object] = {
        "alg": rng.choice(ALGORITHMS),
        "kid": rng.choice(("one", "two", 1, "x" * 1_000)),
    }
    if rng.random() < 0.3:
        header |= {rng.choice(("b64", "crit", "jwk", "zip")): rng.choice((False, ["b64"], "DEF"))}
    texts = [json.dumps(header), json.dumps(claims)]
    if rng.random() < 0.1:
        depth = rng.choice((10, 1_000, 50_000))
        texts[rng.randrange(2)] = rng.choice(("[", '{"a":', "9", " ")) * depth
    parts = [urlsafe_b64encode(text.encode()).rstrip(b"=").decode() for text in texts]
    return f"{'.'.join(parts)}{rng.choice(('.', '', '..', '.x', '.' + 'A' * 86))}"


def token(rng: Random) -> bytes:
    """A message of some mechanism; no right one."""
    name = rng.choice(NAMES)
    bearer = bearer_token(rng, name)
    salt = b64encode(rng.randbytes(rng.choice((0, 20, 32, 64)))).decode()
    extension = rng.choice(("", ",tokenauth=true", ",a=b,c=d", ",a=b" * 20_000))
    nonce = rng.choice(("abc", "abc", "", "\x7f", "a,b", "é", "r" * 100_000))
    texts = (
        f"\0{name}\0{rng.choice(('', 'wrong', name))}",
        f"n,{rng.choice(('', f'a={name}'))},n={name},r={nonce}{extension}",
        f"c={rng.choice(('biws', 'b', '===='))},r={nonce}{extension},p={salt}",
        f"n,,\x01auth=Bearer {bearer}\x01\x01",
        "\x01",
        "",
    )
    return rng.choice(texts).encode()


class Strangers:
    """The messages of clients that know no password."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.made_up = MadeUp(rng, (), old_formats=False)

    def frame(self) -> bytes:
        """The next one, with its length; often it is broken."""
        rng = self.rng
        chance = rng.random()
        if chance < 0.15:
            return made_up_frame(self.made_up, latest())
        if chance < 0.3:
            bare = token(rng)
            return len(bare).to_bytes(4, "big") + bare
        body: Any = m.SaslAuthenticateRequest(auth_bytes=token(rng))
        version = rng.choice((0, 1, 2))
        if chance < 0.6:
            mechanism = rng.choice((*MECHANISMS, *MECHANISMS, "GSSAPI", "", "plain"))
            body, version = m.SaslHandshakeRequest(mechanism=mechanism), rng.choice((0, 1, 1))
        elif chance < 0.65:
            name = rng.choice(("a", "-"))
            body = m.ApiVersionsRequest(client_software_name=name, client_software_version="1")
        elif chance < 0.75:
            body, version = rng.choice(((m.ListGroupsRequest(), 4), (m.MetadataRequest([]), 5)))
        frame = b"".join(encode_request_frame(api_of(body)[0], version, 1, "me", body))
        return rng.choice(MUTATIONS)(rng, frame) if rng.random() < 0.2 else frame


class Logins:
    """The target."""

    name = "logins"
    step = Step

    def __init__(self, requests: int = REQUESTS) -> None:
        self.requests = requests

    def draw(self, rng: Random) -> list[Step]:
        """Messages for three brokers."""
        strangers = Strangers(rng)
        steps: list[Step] = []
        for _ in range(self.requests):
            broker, lane = rng.randint(1, 3), rng.randrange(LANES)
            wait_ms = rng.choice((0, 0, 0, 1, 110, 600))
            steps.append(Sent(broker, lane, packed(strangers.frame()), wait_ms))
            if rng.random() < 0.1:
                steps.append(Closed(broker, rng.randrange(LANES)))
        return steps

    def play(self, steps: Sequence[Step]) -> Failure | None:
        """Do them to a fresh cluster, and look at it."""
        watch = Watch()
        with watch:
            cluster = GuardedCluster()
            for step in steps:
                with cluster.budget:
                    cluster.do(step)
                if cluster.budget.over is not None:
                    return cluster.budget.over
                if cluster.intruder is not None:
                    return Failure("came in", repr(cluster.intruder))
            return cluster.problem()
        return watch.failure


class WatchedCluster(FuzzedCluster):
    """A cluster that keeps the first request that must not have reached a broker."""

    def __init__(self, topology: Topology) -> None:
        super().__init__(topology)
        self.intruder: Request | None = None
        self._tap = self.rig.driver.dispatcher.tap
        self.rig.driver.dispatcher.tap = self.look

    def look(self, now_us: int, node_id: int, event: Input) -> None:
        """See what reaches the nodes."""
        if self._tap is not None:
            self._tap(now_us, node_id, event)
        if (
            isinstance(event, Request)
            and event.identity.protocol.has_sasl
            and event.api_key not in STRANGERS_MAY
            and self.intruder is None
            and self.is_intruder(now_us, event)
        ):
            self.intruder = event

    def is_intruder(self, now_us: int, request: Request) -> bool:
        """Whether a request of a SASL listener must not have reached a broker; here all."""
        return True


class GuardedCluster(WatchedCluster):
    """A cluster whose SASL listeners strangers try."""

    def __init__(self) -> None:
        super().__init__(topology())

    def address(self, broker: int, lane: int) -> tuple[str, int]:
        endpoint = self.rig.plan.endpoints[broker][2 if lane in SIGNED_LANES else 1]
        assert endpoint.protocol is SecurityProtocol.SASL_PLAINTEXT
        return endpoint.host, endpoint.port
