"""Made-up records: honest batches, wrong insides under a right CRC, bombs, sets of old formats.

Owns: which batches are tried.  Never: knows a broker, or what it ought to answer.
"""

from __future__ import annotations

from random import Random
from typing import Final

from kcluster.protocol.records.batch_builder import varint
from kcluster.protocol.records.batches import HEADER, HEADER_BYTES, seal
from kcluster.protocol.records.compression import CODEC_IDS, compress
from kcluster.protocol.records.message_sets import build_message_set
from kcluster.protocol.records.records import Record, build_batch
from tests.fuzz.mutations import mutated

CODECS: Final = ("none", "none", "none", "gzip", "snappy", "lz4", "zstd")
WIDTHS: Final = dict(
    zip(
        ("base_offset", "length", "epoch", "magic", "crc", "attributes", "last_delta",
         "base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "sequence", "count"),
        (64, 32, 32, 8, 0, 16, 32, 64, 64, 64, 16, 32, 32),
        strict=True,
    )
)  # fmt: skip
"""The fields of a batch's header, and their bits."""
TIMES: Final = (0, 1_000, -1, 2**63 - 1, -(2**63), 2**42)
BOMB_BYTES: Final = 1 << 20
"""What a bomb opens to: more than a small broker expects, little enough for a thousand a minute."""


def made_up_records(rng: Random, old_formats: bool = False) -> memoryview:
    """The records of a Produce request."""
    kind = rng.random()
    if kind < 0.45:
        made = honest(rng)
    elif kind < 0.6:
        made = wrong_header(rng)
    elif kind < 0.75:
        made = wrong_inside(rng)
    elif kind < 0.8:
        made = bomb(rng)
    elif kind < 0.85:
        made = bytearray(b"".join(honest(rng) for _ in range(rng.choice((2, 2, 3, 30)))))
    elif kind < 0.95 or not old_formats:
        made = bytearray(mutated(rng, bytes(honest(rng))))
    else:
        made = old_set(rng)
    return memoryview(made)


def records_of(rng: Random, count: int) -> list[Record]:
    """`count` records; keys are few, so that compaction has work."""
    return [
        Record(
            number,
            rng.choice(TIMES[:2]),
            rng.choice((None, b"", b"k", b"k%d" % rng.randrange(4))),
            rng.choice((None, b"", b"v", b"x" * rng.choice((1, 100, 3_000)))),
            rng.choice(((), (("h", None),), (("", b""), ("ä" * 70, b"z" * 200)))),
        )
        for number in range(count)
    ]


def honest(rng: Random) -> bytearray:
    """A batch as producers send it; producer ids and sequences are as they come."""
    return build_batch(
        records_of(rng, rng.choice((1, 1, 2, 3, 9, 20))),
        producer_id=rng.choice((-1, -1, 0, 1, 7)),
        producer_epoch=rng.choice((0, 1, 32_767)),
        base_sequence=rng.choice((-1, 0, 1, 2**31 - 1)),
        compression=rng.choice(CODECS),
    )


def wrong_header(rng: Random) -> bytearray:
    """One or two fields of the header have values that do not fit; the CRC is right."""
    batch = honest(rng)
    fields = list(HEADER.unpack_from(batch))
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice([name for name, bits in WIDTHS.items() if bits])
        bits = WIDTHS[name]
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        at = list(WIDTHS).index(name)
        near = min(max(fields[at] + rng.choice((-1, 1)), low), high)
        fields[at] = rng.choice((low, high, -1, 0, 1, near, rng.randint(low, high)))
    HEADER.pack_into(batch, 0, *fields)
    seal(batch)
    return batch


def wrong_inside(rng: Random) -> bytearray:
    """The records' bytes are not records, or not as many as the header counts; the CRC is right."""
    inside = bytes(honest_inside(rng))
    kind = rng.randrange(4)
    if kind == 0:
        inside = rng.randbytes(rng.choice((0, 1, 100)))
    elif kind == 1:
        inside = mutated(rng, inside)
    elif kind == 2:
        inside = varint(rng.choice((-1, 2**31 - 1, 2**62))) + inside
    else:
        inside += rng.choice((b"\0", b"\xff" * 9, inside))
    return wrapped(inside, rng.choice((0, 1, 10, 100, 2**31 - 1)), rng.choice(CODECS))


def honest_inside(rng: Random) -> bytearray:
    """The bytes of some records, without their header."""
    return build_batch(records_of(rng, rng.choice((1, 10, 12))))[HEADER_BYTES:]


def bomb(rng: Random) -> bytearray:
    """Few bytes that open to many: of zeros, of one record, or of another bomb."""
    size_bytes = BOMB_BYTES * rng.choice((1, 1, 4, 40))
    codec = rng.choice(CODECS[3:])
    zeros = bytes(size_bytes)
    if rng.random() < 0.5:
        inside = varint(size_bytes + 12) + b"\0\0\0\1" + varint(size_bytes) + zeros + b"\0"
    else:
        inside = zeros
    if rng.random() < 0.3:
        inside = compress(CODEC_IDS[codec], inside)
    return wrapped(inside, rng.choice((1, 1, 9, 100)), codec)


def wrapped(inside: bytes, count: int, codec: str) -> bytearray:
    """A batch with these bytes for its records: its header and its CRC are right."""
    payload = compress(CODEC_IDS[codec], inside)
    batch = bytearray(
        HEADER.pack(
            *(0, HEADER_BYTES - 12 + len(payload), -1, 2, 0, CODEC_IDS[codec], max(0, count - 1)),
            *(0, 0, -1, -1, -1, count),
        )
    )
    batch += payload
    seal(batch)
    return batch


def old_set(rng: Random) -> bytearray:
    """A message set of format 0 or 1."""
    made = bytearray(
        build_message_set(
            [
                Record(number, rng.choice((0, 1_000)), b"k", b"v")
                for number in range(rng.randint(0, 3))
            ],
            rng.choice((0, 1)),
            rng.choice((0, 1, 2, 3)),
            rng.random() < 0.1,
        )
    )
    return bytearray(mutated(rng, bytes(made))) if made and rng.random() < 0.5 else made
