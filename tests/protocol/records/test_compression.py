"""Codecs: round trip, foreign framings, bounds, damage."""

from __future__ import annotations

import cramjam
import pytest

from kcluster.protocol.records.compression import (
    CODEC_IDS,
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    CompressionError,
    compress,
    decompress,
)

PLAIN = b"".join(b"record %d of a batch; " % i for i in range(20_000))
PACKED = [GZIP, SNAPPY, LZ4, ZSTD]


@pytest.mark.parametrize("codec", CODEC_IDS.values())
@pytest.mark.parametrize("size", [0, 1, 1000, len(PLAIN)])
def test_compression__round_trip(codec: int, size: int) -> None:
    plain = PLAIN[:size]
    assert bytes(decompress(codec, compress(codec, plain))) == plain
    assert bytes(decompress(codec, memoryview(compress(codec, memoryview(plain))))) == plain


@pytest.mark.parametrize("codec", PACKED)
def test_compression__output_is_bounded(codec: int) -> None:
    packed = compress(codec, bytes(5_000_000))
    assert len(packed) < 300_000
    assert len(decompress(codec, packed, 5_000_000)) == 5_000_000
    with pytest.raises(CompressionError, match="decompresses to more than"):
        decompress(codec, packed, 4_999_999)


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_compression__damage_is_one_error(codec: int, damage: str) -> None:
    packed = compress(codec, PLAIN)
    data = packed[: len(packed) // 2] if damage == "cut" else b"\x01garbage" * 9
    with pytest.raises(CompressionError):
        decompress(codec, data)


def test_snappy__raw_blocks_are_read_too() -> None:
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(PLAIN))) == PLAIN


@pytest.mark.parametrize("block_length", [b"\x00", b"\x00\x00\x01\x00abc", b"\xff\xff\xff\xff"])
def test_snappy__broken_block_lengths_are_reported(block_length: bytes) -> None:
    with pytest.raises(CompressionError):
        decompress(SNAPPY, compress(SNAPPY, b"")[:16] + block_length)


def test_lz4__blocks_are_independent_as_the_java_client_demands() -> None:
    assert compress(LZ4, PLAIN)[4] & 0x20


def test_compression__unknown_codecs_are_reported() -> None:
    with pytest.raises(CompressionError):
        decompress(5, b"")
    with pytest.raises(CompressionError):
        compress(7, b"")
