"""A password's credential for SCRAM: its keys, from which the password does not follow (RFC 5802).

Owns: these keys, and how they follow from a password.  Never: keeps a credential (the metadata
does), shows one, takes part in a login (scram.py does).
Kafka: ScramCredential, ScramFormatter; KIP-554.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final, Protocol

from msgspec import Struct

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The mechanisms, with the names of their hashes."""
MIN_ITERATIONS: Final = 4096


class Credential(Protocol):
    """The values against which a password is checked, as the metadata keeps them."""

    @property
    def salt(self) -> bytes: ...
    @property
    def stored_key(self) -> bytes: ...
    @property
    def server_key(self) -> bytes: ...
    @property
    def iterations(self) -> int: ...


class Keys(Struct, frozen=True):
    """A Credential that is not in the metadata."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "Keys(...)"


def derive_keys(mechanism: str, password: str, salt: bytes, iterations: int) -> Keys:
    """The credential of a password.  Kafka: ScramFormatter.generateCredential."""
    salted = salted_password(mechanism, password, salt, iterations)
    return keys_of_salted(mechanism, salted, salt, iterations)


def is_password(mechanism: str, password: str, credential: Credential) -> bool:
    """Whether a credential is that of a password."""
    keys = derive_keys(mechanism, password, credential.salt, credential.iterations)
    is_same: bool = _hmac().compare_digest(keys.stored_key, credential.stored_key)
    return is_same


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """A password as clients send it to be stored."""
    salted: bytes = _hashlib().pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
    return salted


def keys_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> Keys:
    """The credential of a salted and hashed password, the form in which clients send one."""
    hash_name = HASHES[mechanism]
    digest = _hmac().digest
    client_key = digest(salted, b"Client Key", hash_name)
    stored_key = _hashlib().new(hash_name, client_key).digest()
    return Keys(salt, stored_key, digest(salted, b"Server Key", hash_name), iterations)


def _hashlib() -> ModuleType:
    import hashlib  # OpenSSL takes a fiftieth of the start, and few clusters need it

    return hashlib


def _hmac() -> ModuleType:
    import hmac

    return hmac
