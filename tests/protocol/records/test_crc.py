"""CRC-32C: the test vectors of RFC 3720, appendix B.4."""

from __future__ import annotations

import crc32c
import pytest

from kcluster.protocol.records.crc import crc32c_of


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_crc__vectors(data: bytes, checksum: int) -> None:
    assert crc32c_of(data) == crc32c_of(memoryview(bytearray(data))) == checksum
    assert crc32c.crc32c(data) == checksum
