"""AlterUserScramCredentials as the controller decides it."""

from __future__ import annotations

import base64
import hashlib

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import Controller

SHA_256, SHA_512 = 1, 2
R = m.AlterUserScramCredentialsRequest
OK = ErrorCode.NONE


def salted(password: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password, salt, iterations)


def setting(
    user: str, mechanism: int = SHA_256, iterations: int = 4096, password: bytes = b"hashed"
) -> m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    return R.ScramCredentialUpsertion(user, mechanism, iterations, b"salt", password)


def removing(
    user: str, mechanism: int = SHA_256
) -> m.AlterUserScramCredentialsRequest.ScramCredentialDeletion:
    return R.ScramCredentialDeletion(user, mechanism)


def alter(t: Controller, *changes: object) -> dict[str, ErrorCode]:
    """Error codes by user, in the order answered."""
    deletions = [c for c in changes if isinstance(c, R.ScramCredentialDeletion)]
    upsertions = [c for c in changes if isinstance(c, R.ScramCredentialUpsertion)]
    answer = t.ask(1, R(deletions, upsertions))
    return {result.user: ErrorCode(result.error_code) for result in answer.results}


def test_alter__stores_the_keys_of_rfc_7677() -> None:
    # The example of RFC 7677: user "user", password "pencil".
    t = Controller()
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    password = salted(b"pencil", salt, 4096)
    upsertion = R.ScramCredentialUpsertion("user", SHA_256, 4096, salt, password)
    assert alter(t, upsertion) == {"user": OK}
    stored = t.node.image.scram_credentials["user", SHA_256]
    assert base64.b64encode(stored.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(stored.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    assert (stored.salt, stored.iterations) == (salt, 4096)


def test_alter__mechanisms_are_independent_and_removable() -> None:
    t = Controller()
    alter(t, setting("a"))
    alter(t, setting("a", SHA_512, 8192))
    assert alter(t, removing("a")) == {"a": OK}
    assert list(t.node.image.scram_credentials) == [("a", SHA_512)]
    assert alter(t, removing("a")) == {"a": ErrorCode.RESOURCE_NOT_FOUND}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (setting("", SHA_256), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (setting("a", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (setting("a", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (setting("a", iterations=16384), OK),
        (setting("a", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (setting("a", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (setting("a", password=b""), ErrorCode.UNKNOWN_SERVER_ERROR),
        (removing(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (removing("a", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (removing("a"), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_alter__refused(change: object, error: ErrorCode) -> None:
    t = Controller()
    assert list(alter(t, change).values()) == [error]
    assert bool(t.node.image.scram_credentials) is (error is OK)


def test_alter__a_request_alters_a_user_once() -> None:
    t = Controller()
    alter(t, setting("a"))
    twice = {"a": ErrorCode.DUPLICATE_RESOURCE}
    assert alter(t, setting("a"), setting("a", SHA_512)) == twice
    assert alter(t, removing("a"), setting("a", SHA_512)) == twice
    assert alter(t, removing("a"), removing("a")) == twice
    assert list(t.node.image.scram_credentials) == [("a", SHA_256)]


def test_alter__failed_users_are_listed_last() -> None:
    t = Controller()
    alter(t, setting("d"))
    answered = alter(t, setting("b"), setting("a", iterations=1), removing("d"), setting("c"))
    assert list(answered) == ["d", "b", "c", "a"]
