"""Logins by SASL: each mechanism, wrong passwords, wrong orders, sessions that end.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

import hashlib

from kcluster.conform.case import (
    Ask,
    Connect,
    Conversation,
    Disconnect,
    LogIn,
    SendBytes,
    Sleep,
    Step,
    passed_on,
)
from kcluster.conform.logins import PLAIN_USERS, REAUTH_MS
from kcluster.protocol.apis import ApiKey
from kcluster.security.sasl.mechanisms import OAUTHBEARER, PLAIN

HANDSHAKE, AUTHENTICATE = ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
ALICE = f"\0alice\0{PLAIN_USERS['alice']}".encode()
NONCES = {"auth_bytes": "a nonce is drawn at random"}


def stored(password: str, *mechanisms: str, user: str = "{user}") -> tuple[Step, ...]:
    """Steps that give a user a password by SCRAM, and wait until brokers know it."""
    codes = {SHA_256: (1, "sha256"), SHA_512: (2, "sha512")}
    upsertions = [
        {
            "name": user,
            "mechanism": code,
            "iterations": 4_096,
            "salt": b"salt",
            "salted_password": hashlib.pbkdf2_hmac(digest, password.encode(), b"salt", 4_096),
        }
        for code, digest in (codes[one] for one in mechanisms)
    ]
    api = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    return *(Ask(api, {"upsertions": [one]}, only_waits=True) for one in upsertions), Sleep(300)


def handshake(on: str, mechanism: str = PLAIN, note: str = "handshake", **more: object) -> Ask:
    return Ask(HANDSHAKE, {"mechanism": mechanism}, to=1, on=on, note=note, **passed_on(more))


def token(data: bytes, on: str, note: str = "token", **more: object) -> Ask:
    return Ask(AUTHENTICATE, {"auth_bytes": data}, to=1, on=on, note=note, **passed_on(more))


def asked(on: str, note: str = "another request", **more: object) -> Ask:
    body = {"topics": [{"name": "{missing}"}], "allow_auto_topic_creation": False}
    return Ask(ApiKey.METADATA, body, 4, to=1, on=on, note=note, **passed_on(more))


def versions(on: str) -> Ask:
    return Ask(ApiKey.API_VERSIONS, {}, 0, to=1, on=on, note="versions")


def fails(name: str, login: LogIn) -> tuple[Step, ...]:
    return (login, asked(login.on, f"{name}, and a request"), Disconnect(1, login.on))


def story(name: str, *steps: Step, **more: object) -> Conversation:
    masks = {**NONCES, "api_keys": "as for everyone", "brokers": "as for everyone"}
    return Conversation(name, steps, mask=masks, is_secured=True, **passed_on(more))


def by_plain(on: str, user: str, password: str, note: str, **more: object) -> LogIn:
    return LogIn(user, on, PLAIN, password, note=note, **passed_on(more))


def by_scram(on: str, mechanism: str, password: str, note: str, **more: object) -> LogIn:
    return LogIn("{user}", on, mechanism, password, note=note, **passed_on(more))


WRONG_TOKENS = (
    ("no parts", b"alice"), ("two parts", b"\0alice"), ("four parts", b"\0alice\0a\0b"),
    ("no user", b"\0\0alice-secret"), ("no password", b"\0alice\0"), ("nothing", b""),
    ("another authorization id", b"bob\0alice\0alice-secret"),
    ("its own authorization id", b"alice\0alice\0alice-secret"),
)  # fmt: skip
WRONG_FIRSTS = (
    ("scram: nothing", SHA_256, b""), ("scram: no header", SHA_256, b"n=alice,r=x"),
    ("scram: channel binding", SHA_256, b"y,,n=alice,r=x"),
    ("scram: another authorization id", SHA_256, b"n,a=bob,n=alice,r=x"),
    ("oauthbearer: nothing", OAUTHBEARER, b""),
    ("oauthbearer: no token", OAUTHBEARER, b"n,,\x01auth=\x01\x01"),
    ("oauthbearer: a broken token", OAUTHBEARER, b"n,,\x01auth=Bearer abc\x01\x01"),
    ("oauthbearer: basic", OAUTHBEARER, b"n,,\x01auth=Basic abc\x01\x01"),
)  # fmt: skip


def first_tokens() -> tuple[Step, ...]:
    """Each on a connection of its own."""
    found: list[Step] = []
    wrong = [*((f"plain: {name}", PLAIN, data) for name, data in WRONG_TOKENS), *WRONG_FIRSTS]
    for note, mechanism, data in wrong:
        found += [
            Connect(1, "c"), handshake("c", mechanism, f"{note}: handshake"),
            token(data, "c", note), asked("c", f"{note}: another request"), Disconnect(1, "c"),
        ]  # fmt: skip
    return tuple(found)


CONVERSATIONS = (
    story(
        "logins by plain",
        by_plain("a", "alice", "alice-secret", "right"), asked("a"),
        *(by_plain("v", "alice", "alice-secret", f"by v{version}", version=version)
          for version in (0, 1)),
        *fails("a wrong password", by_plain("b", "alice", "wrong", "a wrong password")),
        *fails("an unknown user", by_plain("c", "nobody", "wrong", "an unknown user")),
    ),
    story(
        "logins by scram",
        *stored("secret", SHA_256, SHA_512),
        by_scram("a", SHA_256, "secret", "right"), asked("a"),
        by_scram("b", SHA_512, "secret", "right, of a session that ends"), asked("b"),
        *fails("a wrong password", by_scram("c", SHA_256, "wrong", "a wrong password")),
        *fails("an unknown user", LogIn("nobody", "d", SHA_256, "secret", note="unknown")),
        *fails("a token", by_scram("e", SHA_256, "secret", "no token", by_token=True)),
        *stored("changed", SHA_256),
        asked("a", "after the password was changed"),
        *fails("the old password", by_scram("f", SHA_256, "secret", "the old password")),
        by_scram("g", SHA_256, "changed", "the new password"),
        by_scram("h", SHA_512, "secret", "the password of the other mechanism"),
    ),
    story(
        "logins by oauthbearer",
        LogIn("ann", "a", note="right"), asked("a"),
        *(LogIn("ann", "v", version=version, note=f"by v{version}") for version in (0, 1)),
        *fails("no subject", LogIn("", "b", note="a token of nobody")),
    ),
    story("first tokens that are wrong", *first_tokens()),
    story(
        "logins in a wrong order",
        Connect(1, "a"), asked("a", "a request before everything"), asked("a", "and again"),
        Connect(1, "b"), token(ALICE, "b", "a token before a handshake"), asked("b"),
        Connect(1, "c"), versions("c"), versions("c"), asked("c", "after versions alone"),
        Connect(1, "d"), versions("d"), handshake("d"), versions("d"), token(ALICE, "d"),
        Connect(1, "e"), handshake("e"), handshake("e", note="a second handshake"),
        token(ALICE, "e"), asked("e"),
        Connect(1, "f"), handshake("f", "GSSAPI", "a mechanism that is not enabled"),
        handshake("f", note="after it, one that is"), token(ALICE, "f"), asked("f"),
        Connect(1, "g"), handshake("g", ""), asked("g"),
        Connect(1, "h"), handshake("h"), asked("h", "a request in place of a token"),
        token(ALICE, "h"),
        Connect(1, "i"), handshake("i", OAUTHBEARER), token(ALICE, "i", "of another mechanism"),
        Connect(1, "j"), handshake("j"), token(ALICE, "j"), token(ALICE, "j", "a second token"),
        asked("j"),
    ),
    story(
        "logins by handshake v0",
        Connect(1, "a"), handshake("a", version=0), SendBytes(ALICE, 1, "a", "a bare token"),
        asked("a"),
        Connect(1, "b"), handshake("b", version=0),
        SendBytes(b"\0alice\0wrong", 1, "b", "a wrong one"),
        asked("b"),
        Connect(1, "c"), handshake("c", version=0), token(ALICE, "c", "a token in a request"),
        Connect(1, "d"), handshake("d"), SendBytes(ALICE, 1, "d", "a bare token after v1"),
        Connect(1, "e"), SendBytes(ALICE, 1, "e", "a bare token before everything"),
        Connect(1, "f"), SendBytes(b"GET / HTTP/1.1\r\n\r\n", 1, "f", "another protocol"),
        Connect(1, "g"), handshake("g", "GSSAPI", "v0, not enabled", version=0), asked("g"),
    ),
    story(
        "logins where there are none",
        handshake("plain", note="a handshake by PLAINTEXT"),
        token(ALICE, "plain", "a token by PLAINTEXT"), asked("plain"),
    ),
    story(
        "sessions that end",
        *stored("secret", SHA_256, SHA_512),
        *stored("secret", SHA_512, user="{user}.other"),
        by_scram("h", SHA_512, "secret", "a session"),
        handshake("h", SHA_512, "a handshake at once"), asked("h"),
        by_scram("a", SHA_512, "secret", "a session"), Sleep(REAUTH_MS // 2),
        by_scram("a", SHA_512, "secret", "again, in time", is_new=False), asked("a"),
        Sleep(REAUTH_MS - 800), asked("a", "in the second session"),
        Sleep(1_200), asked("a", "after its end"), asked("a", "and again"),
        by_scram("b", SHA_512, "secret", "another session"), Sleep(REAUTH_MS + 200),
        by_scram("b", SHA_512, "secret", "again, too late", is_new=False), asked("b"),
        Sleep(1_100),
        by_scram("b", SHA_512, "wrong", "again, with a wrong password", is_new=False), asked("b"),
        by_scram("c", SHA_512, "secret", "a third"), Sleep(1_100),
        handshake("c", SHA_256, "again, by another mechanism"),
        token(b"n,,n=x,r=y", "c"), asked("c"),
        by_scram("i", SHA_512, "secret", "a fourth"), Sleep(1_100),
        LogIn("{user}.other", "i", SHA_512, "secret", is_new=False, note="again, as another user"),
        asked("i"),
        by_scram("d", SHA_256, "secret", "of a mechanism without an end"), Sleep(1_100),
        by_scram("d", SHA_256, "secret", "again all the same", is_new=False), asked("d"),
        by_scram("f", SHA_512, "secret", "a fifth"), Sleep(1_100),
        handshake("f", SHA_512, "again, a handshake"), asked("f", "in the middle of it"),
        token(ALICE, "f"),
        by_plain("g", "alice", "alice-secret", "alice"), Sleep(1_100),
        token(ALICE, "g", "again, without a handshake"), asked("g"),
    ),
)  # fmt: skip
