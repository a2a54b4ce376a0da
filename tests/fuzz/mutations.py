"""Bytes that went wrong: flipped, cut, repeated, with lengths that lie.

Owns: the ways in which bytes are broken.  Never: knows a format; what is broken may be a frame, a
batch, a line of JSON or an HTTP request.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

FIXED: Final = (
    *(b"\x7f\xff\xff\xff\xff\xff\xff\xff", b"\x80\0\0\0\0\0\0\0", b"\xff" * 8, b"\0" * 8),
    *(b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 4, b"\0" * 4, b"\0\x0f\x42\x40"),
    *(b"\x7f\xff", b"\x80\0", b"\xff\xff", b"\0\0", b"\0\1"),
    *(b"\x7f", b"\x80", b"\xff", b"\0", b"\1"),
)
"""Extremes of int64, int32, int16 and int8, big-endian, as Kafka writes lengths and numbers."""
VARINTS: Final = (
    *(b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x08"),
    *(b"\xff" * 9 + b"\x01", b"\x80" * 12, b"\x80\x80\x04", b"\xff\x7f", b"\x80\0"),
)
"""Large, too long, and longer than need be."""
TAGS: Final = (b"\x01\0\0", b"\x02\0\0\0\0", b"\x01\xff\xff\xff\xff\x0f\0", b"\x01\0\x05")
"""Sections of tagged fields: an empty tag, the same twice, a huge number, a size that lies."""
NOT_UTF8: Final = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80")
PIECE_BYTES: Final = 64


def put(rng: Random, data: bytes, what: tuple[bytes, ...], over: bool) -> bytes:
    """One of `what` somewhere: in place of as many bytes, or between two."""
    chosen = rng.choice(what)
    at = rng.randrange(len(data) + 1)
    return data[:at] + chosen + data[at + (len(chosen) if over else 0) :]


def flip(rng: Random, data: bytes) -> bytes:
    """One bit differs."""
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]


def cut(rng: Random, data: bytes) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data) + 1)]


def drop(rng: Random, data: bytes) -> bytes:
    """A piece in the middle is missing."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.randrange(PIECE_BYTES) :]


def repeat(rng: Random, data: bytes) -> bytes:
    """A piece is there several times."""
    at = rng.randrange(len(data) + 1)
    piece = data[at : at + rng.randrange(PIECE_BYTES)]
    return data[:at] + piece * rng.choice((1, 1, 2, 100)) + data[at:]


MUTATIONS: Final[tuple[Callable[[Random, bytes], bytes], ...]] = (
    flip,
    cut,
    drop,
    repeat,
    lambda rng, data: put(rng, data, FIXED, over=True),
    lambda rng, data: put(rng, data, FIXED, over=True),
    lambda rng, data: put(rng, data, VARINTS, over=rng.random() < 0.5),
    lambda rng, data: put(rng, data, TAGS, over=rng.random() < 0.5),
    lambda rng, data: put(rng, data, NOT_UTF8, over=True),
    lambda rng, data: put(rng, data, (rng.randbytes(rng.randrange(PIECE_BYTES)),), over=False),
)


def mutated(rng: Random, data: bytes) -> bytes:
    """`data`, broken in one to three ways."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(MUTATIONS)(rng, data)
    return data
