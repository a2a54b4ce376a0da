"""SASL listeners in virtual time: strangers try to log in, in any order and with broken messages.

Owns: the messages, the cluster, and that nobody comes in: no request of a stranger but the three
of a login reaches a broker.
Never: sends a right password, or a token with the scope that the listener asks for.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Sequence
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
STRANGERS_MAY: Final = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
NAMES: Final = ("alice", "al=2Cice", "", "=", "x" * 300, "\xe4", "\0", "alice\0alice", "User:alice")
JAAS: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    ' unsecuredValidatorRequiredScope="hush";'
)

Step = Sent | Closed


def topology() -> Topology:
    """Three brokers with a SASL listener, beside the one by which they are looked at."""
    return Topology.of(
        brokers=3,
        profile="fast",
        listeners={"INSIDE": {"protocol": "PLAINTEXT"}, "CLIENT": {"protocol": "SASL_PLAINTEXT"}},
        security={"users": {"alice": "alice-secret"}},
        config={
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "connections.max.reauth.ms": 500,
            "listener.name.client.oauthbearer.sasl.jaas.config": JAAS,
        },
    )


def token(rng: Random) -> bytes:
    """A message of some mechanism; no right one."""
    name = rng.choice(NAMES)
    number: object = rng.choice((0, -1, 1e30, 2**63, 4_000_000_000, "x", None, [], {}))
    claims = {"sub": name, "exp": number, "iat": rng.choice((0, number)), "scope": [name]}
    parts = [
        urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
        for part in ({"alg": rng.choice(("none", "RS256", None))}, claims)
    ]
    bearer = f"{'.'.join(parts)}{rng.choice(('.', '', '..', '.x'))}"
    salt = b64encode(rng.randbytes(rng.choice((0, 20, 32, 64)))).decode()
    extension = rng.choice(("", ",tokenauth=true", ",a=b,c=d"))
    texts = (
        f"\0{name}\0{rng.choice(('', 'wrong', name))}",
        f"n,{rng.choice(('', f'a={name}'))},n={name},r=abc{extension}",
        f"c=biws,r={rng.choice(('abc', ''))},p={salt}",
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


class GuardedCluster(FuzzedCluster):
    """A cluster whose SASL listeners strangers try."""

    def __init__(self) -> None:
        super().__init__(topology())
        self.intruder: Request | None = None
        """The first request that a stranger must not make."""
        self._tap = self.rig.driver.dispatcher.tap
        self.rig.driver.dispatcher.tap = self.look

    def address(self, broker: int) -> tuple[str, int]:
        endpoint = self.rig.plan.endpoints[broker][1]
        assert endpoint.protocol is SecurityProtocol.SASL_PLAINTEXT
        return endpoint.host, endpoint.port

    def look(self, now_us: int, node_id: int, event: Input) -> None:
        """See what reaches the nodes."""
        if self._tap is not None:
            self._tap(now_us, node_id, event)
        if (
            isinstance(event, Request)
            and event.identity.protocol.has_sasl
            and event.api_key not in STRANGERS_MAY
            and self.intruder is None
        ):
            self.intruder = event
