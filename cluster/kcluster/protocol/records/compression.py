"""Codecs of record batches: none, gzip, snappy, lz4, zstd, with a limit on the decompressed size.

Owns: compressing and decompressing the records section of a batch.  Never: knows what a record is;
used for a batch that is only stored and forwarded.
Kafka: CompressionType, Compression; codec ids are the low three bits of a batch's attributes.

Snappy is written in the block framing of the Java client (xerial) and read in that framing or raw,
because Kafka's clients send both.  cramjam is imported when it is first needed.

DIFFERS: bytes behind a gzip or LZ4 frame, and a second snappy stream, are damage.  Kafka ignores
the bytes, and reads both streams; no client writes either.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout
from typing import Final

Buffer = bytes | bytearray | memoryview

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""The names of codecs by id.  Ids 5 to 7 have no codec."""

CODEC_IDS: Final = {name: codec for codec, name in enumerate(CODEC_NAMES)}

SIZE_MAX: Final = 256 * 1024 * 1024
"""The limit on the decompressed size of a batch; Kafka streams and has no limit."""

_ALLOWED_BYTES: Final = 64 * 1024 * 1024
_ALLOWED_PER_BYTE: Final = 64
ENTRY_BYTES: Final = 256
"""The number of bytes of the allowance that a record or a header costs."""

_GZIP_LEVEL: Final = 6
_LZ4_DEFAULT_LEVEL: Final = 9
_ZSTD_LEVEL: Final = 3

_FIRST_GUESS_MIN: Final = 64 * 1024

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_SNAPPY_RATIO_MAX: Final = 32
"""A copy in a Snappy stream has 3 bytes, and stands for at most 64."""
_INT32: Final = Layout(">i")


_SPENT: Final = "the request decompresses to more than is allowed"


class CompressionError(Exception):
    """The error for bytes that cannot be decompressed, or for an unknown codec."""


class TooLargeError(CompressionError):
    """The error when decompressing would take more than is allowed."""


class Allowance:
    """A limit on the work that the compressed bytes of one request cause, counted in decompressed
    bytes.

    64 MiB and 64 times the received bytes are allowed; attempts with too small a buffer count too.

    DIFFERS: Kafka streams, in many threads, and has no limit.  Here one thread serves all brokers.
    """

    __slots__ = ("left_bytes",)

    def __init__(self, received_bytes: int) -> None:
        self.left_bytes = _ALLOWED_BYTES + _ALLOWED_PER_BYTE * received_bytes

    def spend(self, size_bytes: int) -> None:
        """Spend this many bytes; TooLargeError if fewer are left."""
        self.left_bytes -= size_bytes
        if self.left_bytes < 0:
            raise TooLargeError(_SPENT)

    @property
    def is_spent(self) -> bool:
        """Whether the allowance is used up."""
        return self.left_bytes <= 0

    def spend_on(self, entries: int) -> None:
        """Spend the cost of reading this many records or headers, however small they are."""
        self.spend(entries * ENTRY_BYTES)


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Return `data` compressed with the codec of that id.  `level`: in the scale of
    compression.gzip.level, compression.lz4.level or compression.zstd.level; None: the codec's
    default."""
    if codec == NONE:
        return bytes(data)
    import cramjam

    if codec == GZIP:
        return bytes(
            cramjam.gzip.compress(data, level=_GZIP_LEVEL if level in (None, -1) else level)
        )
    if codec == SNAPPY:
        return _compress_xerial(data, lambda block: bytes(cramjam.snappy.compress_raw(block)))
    if codec == LZ4:
        # The Java client refuses frames of linked blocks.
        frame = cramjam.lz4.Compressor(
            level=_lz4_level(level), content_checksum=False, block_linked=False
        )
        frame.compress(bytes(data))
        return bytes(frame.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL if level is None else level))
    raise CompressionError(f"unknown compression codec {codec}")


def _lz4_level(level: int | None) -> int:
    """The level in the C library's scale.  Level 1 is its fast compressor, the default of Java's
    client; levels 3 to 12 are its slow compressor, whose levels go up to 17 in Java."""
    return 1 if level is None or level == _LZ4_DEFAULT_LEVEL else min(max(level, 3), 12)


def decompress(
    codec: int, data: Buffer, size_max: int = SIZE_MAX, allowance: Allowance | None = None
) -> Buffer:
    """Return `data` decompressed; TooLargeError if that is more than `size_max` bytes, or than
    `allowance` has left; the bytes are spent from `allowance`."""
    if codec == NONE:
        return data
    if allowance is not None:
        if allowance.is_spent:
            raise TooLargeError(_SPENT)
        size_max = min(size_max, allowance.left_bytes)
    if codec == SNAPPY:
        opened = _decompress_snappy(memoryview(data), size_max)
        if allowance is not None:
            allowance.spend(len(opened))
        return opened
    import cramjam

    failed = cramjam.DecompressionError
    if codec == GZIP:
        return _decompress_growing(cramjam.gzip.decompress_into, failed, data, size_max, allowance)
    if codec == LZ4:
        return _decompress_growing(cramjam.lz4.decompress_into, failed, data, size_max, allowance)
    if codec == ZSTD:
        if not len(data):
            return b""
        return _decompress_growing(cramjam.zstd.decompress_into, failed, data, size_max, allowance)
    raise CompressionError(f"unknown compression codec {codec}")


def _decompress_growing(
    decompress_into: Callable[..., int],
    failed: type[Exception],
    data: Buffer,
    size_max: int,
    allowance: Allowance | None,
) -> memoryview:
    """Decompress into a growing buffer.  The codecs raise one exception for "does not fit" and "is
    damaged", so the output grows until it fits or the limit is reached; the last exception then
    shows which case it was.  The output grows fourfold, so all attempts together write at most a
    third more than the last one.  `failed`: the exception of the codecs."""
    size = max(0, min(max(_FIRST_GUESS_MIN, 8 * len(memoryview(data))), size_max))
    while True:
        output = bytearray(size)
        try:
            written = decompress_into(data, output)
        except failed as problem:
            # A larger output helps only against "failed to write whole buffer".
            if "write" not in str(problem):
                raise CompressionError(str(problem)) from problem
            if size >= size_max:
                raise TooLargeError(f"decompresses to more than {size_max} bytes") from problem
            written = size
        else:
            if allowance is not None:
                allowance.spend(written)
            return memoryview(output)[:written]
        if allowance is not None:
            allowance.spend(written)
            size_max = min(size_max, allowance.left_bytes)
        size = min(4 * size, size_max)


def _compress_xerial(data: Buffer, compress: Callable[[memoryview], bytes]) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = compress(view[start : start + _XERIAL_BLOCK_BYTES])
        parts.append(_INT32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(view: memoryview, size_max: int) -> bytes:
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_raw_snappy(view, size_max)
    parts: list[bytes] = []
    position = len(_XERIAL_HEADER)
    remaining = size_max
    while position < len(view):
        if position + 4 > len(view):
            raise CompressionError("snappy: truncated block length")
        (size,) = _INT32.unpack_from(view, position)
        position += 4
        if size < 0 or position + size > len(view):
            raise CompressionError(f"snappy: block of {size} bytes does not fit")
        parts.append(_decompress_raw_snappy(view[position : position + size], remaining))
        remaining -= len(parts[-1])
        position += size
    return b"".join(parts)


def _decompress_raw_snappy(view: memoryview, size_max: int) -> bytes:
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_len(view)
        if size > _SNAPPY_RATIO_MAX * len(view):
            raise CompressionError(f"snappy: {len(view)} bytes cannot hold {size}")
        if size > size_max:
            raise TooLargeError(f"decompresses to more than {size_max} bytes")
        return bytes(cramjam.snappy.decompress_raw(view))
    except cramjam.DecompressionError as problem:
        raise CompressionError(str(problem)) from problem
