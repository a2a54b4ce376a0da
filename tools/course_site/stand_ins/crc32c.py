"""CRC-32C in pure Python, instead of the package crc32c.

Owns: its table-driven loop, four bytes a step.  Never: is imported where the package is.
Kafka: Crc32C.
"""

from __future__ import annotations

from typing import Final

_POLYNOMIAL: Final = 0x82F63B78
"""Castagnoli's, reversed."""
_ALL_ONES: Final = 0xFFFFFFFF


def _tables() -> tuple[list[int], ...]:
    """For each of the four bytes of a word, its contribution by value."""
    table = list(range(256))
    for _ in range(8):
        table = [(each >> 1) ^ (_POLYNOMIAL if each & 1 else 0) for each in table]
    tables = [table]
    for _ in range(3):
        tables.append([table[each & 255] ^ (each >> 8) for each in tables[-1]])
    return tuple(tables)


_FOURTH, _THIRD, _SECOND, _FIRST = _tables()


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """The checksum of `data`; `value`: that of the bytes before them."""
    whole = bytes(data)
    words_end = len(whole) & ~3
    crc = value ^ _ALL_ONES
    first, second, third, fourth = _FIRST, _SECOND, _THIRD, _FOURTH
    for word in memoryview(whole)[:words_end].cast("I"):  # little-endian, as WebAssembly is
        crc ^= word
        crc = first[crc & 255] ^ second[crc >> 8 & 255] ^ third[crc >> 16 & 255] ^ fourth[crc >> 24]
    for byte in whole[words_end:]:
        crc = (crc >> 8) ^ fourth[(crc ^ byte) & 255]
    return crc ^ _ALL_ONES
