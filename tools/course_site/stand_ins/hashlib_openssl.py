"""The function of hashlib that only OpenSSL has: PBKDF2, with which SCRAM salts passwords.

Owns: that function, and its place in hashlib where there is none.  Never: replaces OpenSSL's.
Kafka: ScramFormatter.hi.
"""

from __future__ import annotations

import hashlib
import hmac


def pbkdf2_hmac(
    hash_name: str, password: bytes, salt: bytes, iterations: int, dklen: int | None = None
) -> bytes:
    """PBKDF2 (RFC 8018) with HMAC; `dklen`: None for the length of the hash."""
    start = hmac.new(password, digestmod=hash_name)
    length = start.digest_size if dklen is None else dklen
    derived = b""
    block = 0
    while len(derived) < length:
        block += 1
        derived += _block(start, salt + block.to_bytes(4, "big"), iterations)
    return derived[:length]


def _block(start: hmac.HMAC, text: bytes, iterations: int) -> bytes:
    """The exclusive or of `iterations` codes, each of them the code of the one before."""
    mixed = 0
    for _ in range(iterations):
        code = start.copy()
        code.update(text)
        text = code.digest()
        mixed ^= int.from_bytes(text, "big")
    return mixed.to_bytes(start.digest_size, "big")


if not hasattr(hashlib, "pbkdf2_hmac"):
    vars(hashlib)["pbkdf2_hmac"] = pbkdf2_hmac
