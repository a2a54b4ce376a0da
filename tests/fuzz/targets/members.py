"""SASL listeners in virtual time: clients that know their passwords, and send what strangers send.

Owns: logins that go on to their end, re-authentication, delegation tokens, sessions that end; and
that each request is made in the name that its connection has proved, before its session ends.
Never: lets chance decide while it plays.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.config.topology.model import Topology
from kcluster.contract import Request
from kcluster.drivers.memory.stream import StreamEnd
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.releases import latest
from kcluster.security.sasl.exchange import SaslClient, ServerNotTrusted
from kcluster.security.sasl.mechanisms import MECHANISMS, OAUTHBEARER, PLAIN, SCRAM_CODES
from kcluster.security.sasl.oauthbearer import OAuthBearerClient
from kcluster.security.sasl.plain import PlainClient
from kcluster.security.sasl.scram import ScramClient
from tests.fuzz.episodes import Failure, Watch, packed
from tests.fuzz.frames import made_up_frame
from tests.fuzz.targets.brokers import Closed, Sent
from tests.fuzz.targets.logins import JAAS, Strangers, WatchedCluster
from tests.fuzz.values import MadeUp
from tests.rig.requests import api_of

STEPS: Final = 120
LANES: Final = 2
SESSION_MS: Final = 10_000
WAITS_MS: Final = (*(0,) * 8, 1, 110, 1_100, 1_100, SESSION_MS)
USERS: Final = {"alice": "alice-secret", "bob": "bob-secret"}
TOKEN: Final = "token"
"""In place of a user: the delegation token that was made last."""
FLAWS: Final = (*("",) * 12, "password", "no handshake", "only handshake", "bare")
TIMES_S: Final = (1, 20, 1_000, 1_000, 1_000, 1e306, 10**400, 2**63)
ANSWER_MS: Final = 150
"""How long an answer is waited for; that of a failed login is delayed by 100 ms."""


class LoggedIn(Struct, tag="logged_in", omit_defaults=True):
    """A login from its handshake to its last token, on a new or an open connection.  `flaw`: how it
    goes wrong; `expires_s`: of a token of OAUTHBEARER."""

    broker: int
    lane: int
    mechanism: str
    user: str
    flaw: str = ""
    expires_s: str = "1000"
    wait_ms: int = 0

    def smaller(self) -> Iterator[LoggedIn]:
        """Without the wait."""
        if self.wait_ms:
            yield replace(self, wait_ms=0)


class TokenMade(Struct, tag="token_made"):
    """A delegation token is created by the client of a lane."""

    broker: int
    lane: int
    lifetime_ms: int


Step = Sent | Closed | LoggedIn | TokenMade


def topology() -> Topology:
    """Three brokers with a SASL listener, whose sessions and delegation tokens are short."""
    return Topology.of(
        brokers=3,
        profile="fast",
        listeners={"INSIDE": {"protocol": "PLAINTEXT"}, "CLIENT": {"protocol": "SASL_PLAINTEXT"}},
        security={"users": {**USERS, "admin": "admin-secret"}},
        config={
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "connections.max.reauth.ms": SESSION_MS,
            "listener.name.client.oauthbearer.sasl.jaas.config": JAAS,
            "delegation.token.secret.key": "hush",
            "delegation.token.expiry.time.ms": 3_000,
        },
    )


class Members:
    """The target."""

    name = "members"
    step = Step

    def draw(self, rng: Random) -> list[Step]:
        """Logins, requests and pauses."""
        strangers, made_up = Strangers(rng), MadeUp(rng, (), old_formats=False)
        places = [(broker, lane) for broker in (1, 2, 3) for lane in range(LANES)]
        mechanisms = {place: rng.choice(MECHANISMS) for place in places}
        users = {place: rng.choice((*USERS, *USERS, TOKEN)) for place in places}
        steps: list[Step] = []
        for _ in range(STEPS):
            broker, lane = rng.choice(places)
            wait_ms = rng.choice(WAITS_MS)
            chance = rng.random()
            if chance < 0.4:
                same = mechanisms[broker, lane], users[broker, lane]
                other = rng.choice(MECHANISMS), rng.choice((*USERS, TOKEN))
                mechanism, user = same if rng.random() < 0.8 else other
                flaw, expires_s = rng.choice(FLAWS), str(rng.choice(TIMES_S))
                steps.append(LoggedIn(broker, lane, mechanism, user, flaw, expires_s, wait_ms))
            elif chance < 0.5:
                steps.append(TokenMade(broker, lane, rng.choice((-1, 0, 1, 2_000, 2**63 - 1))))
            elif chance < 0.53:
                steps.append(Closed(broker, lane))
            else:
                known = chance < 0.93
                frame = made_up_frame(made_up, latest()) if known else strangers.frame()
                steps.append(Sent(broker, lane, packed(frame), wait_ms))
        return steps

    def play(self, steps: Sequence[Step]) -> Failure | None:
        """Do them to a fresh cluster, and look at it."""
        watch = Watch()
        with watch:
            cluster = MembersCluster()
            for number, step in enumerate(steps):
                cluster.number = number
                with cluster.budget:
                    cluster.do(step)
                if cluster.budget.over is not None:
                    return cluster.budget.over
                if cluster.intruder is not None:
                    return Failure("another's name", repr(cluster.intruder))
            return cluster.problem()
        return watch.failure


class Proof(Struct, frozen=True):
    """The user that a connection has proved to be, until its session ends."""

    user: str
    ends_ms: int | None = None


class MembersCluster(WatchedCluster):
    """A cluster whose SASL listeners have users."""

    def __init__(self) -> None:
        super().__init__(topology())
        self.number = 0
        """The number of the step."""
        self._proved: dict[str, tuple[Proof, ...]] = {}
        """By the address of the connection: who its client may be to the broker.  Several from
        a token until its answer: requests sent before the token may still be on their way."""
        self._token: tuple[str, str, str] | None = None
        """A delegation token's owner, id and HMAC."""

    def address(self, broker: int, lane: int) -> tuple[str, int]:
        endpoint = self.rig.plan.endpoints[broker][1]
        return endpoint.host, endpoint.port

    def is_intruder(self, now_us: int, request: Request) -> bool:
        """Whether a request has another user's name, or comes without a login or after its end."""
        name = request.identity.principal.name
        return not any(
            name == proof.user and (proof.ends_ms is None or now_us <= (proof.ends_ms + 1) * 1_000)
            for proof in self._proved.get(request.client_host, ())
        )

    def do(self, step: object) -> None:
        if isinstance(step, LoggedIn):
            self._log_in(step)
            self.pass_ms(step.wait_ms)
        elif isinstance(step, TokenMade):
            self._make_token(step)
        elif isinstance(step, Sent | Closed):
            super().do(step)

    def _make_token(self, step: TokenMade) -> None:
        end = self.line(step.broker, step.lane)
        proofs = self._proved.get(end.local_address[0], ())
        if len(proofs) != 1:
            return
        body = m.CreateDelegationTokenRequest(max_lifetime_ms=step.lifetime_ms)
        answer = self._ask(end, body, 3)
        if answer is not None and not answer.error_code:
            self._token = proofs[0].user, answer.token_id, b64encode(answer.hmac).decode()

    def _log_in(self, step: LoggedIn) -> None:
        login = self._client(step)
        if login is None:
            return
        user, client = login
        end = self.line(step.broker, step.lane)
        if step.flaw != "no handshake":
            version = 0 if step.flaw == "bare" else 1
            answer = self._ask(end, m.SaslHandshakeRequest(mechanism=step.mechanism), version)
            if answer is None or answer.error_code or step.flaw == "only handshake":
                return
        challenge: bytes | None = b""
        while challenge is not None:
            try:
                token = client.respond(challenge)
            except ServerNotTrusted:
                return
            if token is None:
                return
            challenge = self._pass_token(end, token, user, step.flaw)

    def _pass_token(self, end: StreamEnd, token: bytes, user: str, flaw: str) -> bytes | None:
        """Send a token of a login; the broker's challenge, None if it is over."""
        address = end.local_address[0]
        before = self._proved.get(address, ())
        if flaw != "password":
            self._proved[address] = (*before, Proof(user))  # as soon as the broker has this
        if flaw == "bare":
            self.write(end, len(token).to_bytes(4, "big") + token)
            return None
        answer = self._ask(end, m.SaslAuthenticateRequest(auth_bytes=token), 2)
        if answer is None:
            return None
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            self._proved[address] = before
        elif answer.error_code:
            self._proved.pop(address, None)
        elif answer.session_lifetime_ms:
            now_ms = self.rig.driver.now_us // 1_000
            self._proved[address] = (Proof(user, now_ms + answer.session_lifetime_ms),)
        return bytes(answer.auth_bytes) if answer.auth_bytes and not answer.error_code else None

    def _client(self, step: LoggedIn) -> tuple[str, SaslClient] | None:
        """The user whom a login proves, and the client's side; None if there is no token yet."""
        mechanism, nonce = step.mechanism, f"nonce{self.number}"
        wrong = "wrong" if step.flaw == "password" else ""
        if step.user == TOKEN:
            if self._token is None or mechanism not in SCRAM_CODES:
                return None
            owner, token_id, hmac = self._token
            return owner, ScramClient(mechanism, token_id, wrong + hmac, nonce, by_token=True)
        password = wrong + USERS[step.user]
        if mechanism == PLAIN:
            return step.user, PlainClient(step.user, password)
        if mechanism != OAUTHBEARER:
            return step.user, ScramClient(mechanism, step.user, password, nonce)
        scope = wrong or "hush"
        claims = f'{{"sub":"{step.user}","exp":{step.expires_s},"scope":"{scope}"}}'
        parts = (b'{"alg":"none"}', claims.encode())
        encoded = ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
        return step.user, OAuthBearerClient(f"{encoded}.")

    def _ask(self, end: StreamEnd, body: m.Message, version: int) -> Any:
        """The answer to a request; None if none comes."""
        api, correlation_id = api_of(body)[0], 1_000_000 + self.number
        self.drained(end)
        frame = b"".join(encode_request_frame(api, version, correlation_id, "me", body))
        self.write(end, frame)
        read = b""
        for wait_ms in (0, 1, ANSWER_MS):
            self.pass_ms(wait_ms)
            try:
                while end.is_readable and (piece := end.read(1 << 20)):
                    read += piece
            except OSError:
                return None
            while len(read) >= 8 and len(read) >= 4 + int.from_bytes(read[:4], "big"):
                size = 4 + int.from_bytes(read[:4], "big")
                answer, read = read[4:size], read[size:]
                if int.from_bytes(answer[:4], "big") == correlation_id:
                    return decode_response_frame(api, version, answer)[1]
        return None
