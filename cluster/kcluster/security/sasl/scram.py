"""SCRAM-SHA-256 and SCRAM-SHA-512: a password is proved, never sent (RFC 5802, RFC 7677).

Owns: the messages of the exchange, both of its sides.  Never: makes a credential (scram_keys.py
does), keeps one (the metadata does), draws a nonce (its caller does, from the node's rng).
Kafka: ScramSaslServer, ScramSaslClient, ScramMessages; KIP-84.

    client  n,,n=alice,r=CLIENT[,tokenauth=true]
    server  r=CLIENT+SERVER,s=SALT,i=ITERATIONS
    client  c=biws,r=CLIENT+SERVER,p=PROOF
    server  v=SIGNATURE

As in Kafka there is no channel binding, extensions other than `tokenauth` are ignored, and both
sides rebuild the messages that they sign from their parts.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Final, final

from msgspec import Struct

from kcluster.protocol.java import hash_order, java_hash_code
from kcluster.security.sasl.exchange import (
    Answer,
    Broken,
    Challenge,
    LoginAccepted,
    LoginProblem,
    LoginRefused,
    ServerNotTrusted,
)
from kcluster.security.sasl.plain import OTHER_ID_TEXT
from kcluster.security.sasl.scram_keys import HASHES, MIN_ITERATIONS, Credential

TOKEN_AUTH: Final = "tokenauth"

_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_SASLNAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64_CHAR: Final = "[a-zA-Z0-9/+]"
_BASE64: Final = f"(?:{_BASE64_CHAR}{{4}})*(?:{_BASE64_CHAR}{{3}}=|{_BASE64_CHAR}{{2}}==)?"
_RESERVED: Final = f"(?:m={_VALUE},)?"
_EXTENSIONS: Final = f"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST: Final = re.compile(
    f"n,(?:a=(?P<authzid>{_SASLNAME}))?,{_RESERVED}"
    f"n=(?P<name>{_SASLNAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS})"
)
_SERVER_FIRST: Final = re.compile(
    f"{_RESERVED}r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]+)"
    f"{_EXTENSIONS}"
)
_CLIENT_FINAL: Final = re.compile(
    f"c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS},p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL: Final = re.compile(f"v=(?P<signature>{_BASE64}){_EXTENSIONS}")


class TokenCredential(Struct, frozen=True):
    """A delegation token's credential; the token stands for its owner until it expires (KIP-48)."""

    owner: str
    keys: Credential
    expires_at_ms: int


CredentialOf = Callable[[str], Credential | None]
TokenOf = Callable[[str], TokenCredential | None]


@final
class ScramServer:
    """The server's side.  `nonce`: the server's part of the nonce."""

    def __init__(
        self, mechanism: str, credential_of: CredentialOf, token_of: TokenOf, nonce: str
    ) -> None:
        self._hash_name = HASHES[mechanism]
        self._credential_of = credential_of
        self._token_of = token_of
        self._nonce = nonce
        self._user = ""
        self._token: TokenCredential | None = None
        self._credential: Credential | None = None
        self._client_first = self._server_first = ""

    def evaluate(self, message: bytes, now_ms: int) -> Answer:
        text = message.decode(errors="replace")
        if self._credential is None:
            return self._take_first(text, now_ms)
        return self._take_final(text, self._credential)

    def _take_first(self, message: str, now_ms: int) -> Answer:
        first = _CLIENT_FIRST.fullmatch(message)
        name = None if first is None else _unescape(first["name"])
        if first is None or name is None:
            return LoginRefused(LoginProblem.MALFORMED)
        pairs = (pair.split("=", 1) for pair in first["extensions"].split(",")[1:])
        extensions = dict(pairs)
        credential: Credential | None
        if extensions.get(TOKEN_AUTH, "").lower() == "true":
            token = self._token = self._token_of(name)
            if token is None:
                return LoginRefused(LoginProblem.UNKNOWN_TOKEN, name)
            self._user, credential = token.owner, token.keys
        else:
            self._user, credential = name, self._credential_of(name)
            if credential is None:
                return LoginRefused(LoginProblem.UNKNOWN_USER, name)
        if first["authzid"] and first["authzid"] != name:
            return LoginRefused(LoginProblem.OTHER_AUTHORIZATION_ID, name, OTHER_ID_TEXT)
        self._credential = credential
        parts = [f"n={first['name']}", f"r={first['nonce']}"]
        ordered = hash_order(extensions, java_hash_code)
        self._client_first = ",".join(parts + [f"{key}={extensions[key]}" for key in ordered])
        self._nonce = first["nonce"] + self._nonce
        salt = b64encode(credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        return Challenge(self._server_first.encode())

    def _take_final(self, message: str, credential: Credential) -> Answer:
        final_message = _CLIENT_FINAL.fullmatch(message)
        if final_message is None:
            return LoginRefused(LoginProblem.MALFORMED, self._user)
        if not hmac.compare_digest(final_message["nonce"], self._nonce):
            return LoginRefused(LoginProblem.WRONG_NONCE, self._user)
        channel = b64encode(b64decode(final_message["channel"])).decode()
        signed = f"{self._client_first},{self._server_first},c={channel},r={self._nonce}".encode()
        signature = hmac.digest(credential.stored_key, signed, self._hash_name)
        proof = b64decode(final_message["proof"])
        if len(proof) != len(signature):
            return Broken(LoginProblem.MALFORMED)
        client_key = _xor(proof, signature)
        stored_key = hashlib.new(self._hash_name, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            return LoginRefused(LoginProblem.WRONG_PASSWORD, self._user)
        verifier = b64encode(hmac.digest(credential.server_key, signed, self._hash_name))
        expires_at_ms = None if self._token is None else self._token.expires_at_ms
        return LoginAccepted(b"v=" + verifier, self._user, self._token is not None, expires_at_ms)


@final
class ScramClient:
    """The client's side.  `nonce`: the client's part of the nonce; `by_token`: `user` is the id of
    a delegation token and `password` its HMAC in base 64."""

    def __init__(
        self, mechanism: str, user: str, password: str, nonce: str, *, by_token: bool = False
    ) -> None:
        self.mechanism = mechanism
        self._hash_name = HASHES[mechanism]
        self._password = password
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={nonce}" + (f",{TOKEN_AUTH}=true" if by_token else "")
        self._signature: bytes | None = None
        """The server's signature, once the proof is sent."""
        self._is_first = True

    def respond(self, challenge: bytes) -> bytes | None:
        if self._is_first:
            self._is_first = False
            return b"n,," + self._first.encode()
        text = challenge.decode(errors="replace")
        if self._signature is None:
            return self._prove(text)
        last = _SERVER_FINAL.fullmatch(text)
        if last is None or not hmac.compare_digest(b64decode(last["signature"]), self._signature):
            raise ServerNotTrusted("the server's signature is wrong")
        return None

    def _prove(self, server_first: str) -> bytes:
        read = _SERVER_FIRST.fullmatch(server_first)
        if read is None or not read["nonce"].startswith(self._nonce):
            raise ServerNotTrusted("the server's first message is malformed, or for another client")
        iterations = int(read["iterations"])
        if iterations < MIN_ITERATIONS:
            raise ServerNotTrusted(f"{iterations} iterations, fewer than {MIN_ITERATIONS}")
        salted = hashlib.pbkdf2_hmac(
            self._hash_name, self._password.encode(), b64decode(read["salt"]), iterations
        )
        client_key = hmac.digest(salted, b"Client Key", self._hash_name)
        stored_key = hashlib.new(self._hash_name, client_key).digest()
        without_proof = f"c=biws,r={read['nonce']}"
        signed = f"{self._first},{server_first},{without_proof}".encode()
        proof = _xor(client_key, hmac.digest(stored_key, signed, self._hash_name))
        server_key = hmac.digest(salted, b"Server Key", self._hash_name)
        self._signature = hmac.digest(server_key, signed, self._hash_name)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()


def _unescape(name: str) -> str | None:
    """The user of a SASL name; None if it has an `=` that is no escape."""
    if "=" in name.replace("=2C", "").replace("=3D", ""):
        return None
    return name.replace("=2C", ",").replace("=3D", "=")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
