"""Made-up messages: plausible names and ids, and the extremes of every type.  Not a test file.

Owns: which values of a field are tried.  Never: sends anything; breaks the encoding
(mutations.py does); makes batches (batches.py does).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from kcluster.protocol.codec.schema import FieldSchema
from tests.fuzz.batches import made_up_records
from tests.protocol.generated import Generator

TOPIC: Final = "orders"
COMPACTED: Final = "table"
NAMES: Final = (
    *(TOPIC, TOPIC, COMPACTED, "nope", "g", "t", "range", "consumer", "__consumer_offsets"),
    *("__transaction_state", "", "retention.ms", "cleanup.policy", "0", "1", "-1", "a/b", ".."),
)
TEXTS: Final = (
    *("\0", "\x1b]0;x\x07", "ä€𝄞", "\u202e", "a" * 127, "b" * 249, "c" * 250, "d" * 32_767),
    *(str(2**63 - 1), str(-(2**63)), "9" * 5_000, "1e999", "nan", "[" * 500, "*", "%s{0}\\"),
)
"""What no client means, but UTF-8 all the same; strings that are not are made by mutation."""
BITS: Final = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
KNOWN: Final = (0, 0, 0, 1, 1, 2, 3, 5, 50, 100, 400, 6_000, -1, -2, -3)
FLOATS: Final = (0.0, -0.0, 1.0, -1.5, 1e300, 5e-324, math.inf, -math.inf, math.nan)
BLOBS: Final = (0, 1, 3, 16, 126, 127, 128, 500, 40_000)


def limits(type_name: str) -> tuple[int, int]:
    """The lowest and the highest value of an integer type."""
    bits = BITS[type_name]
    if type_name.startswith("u"):
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


def number(rng: Random, type_name: str) -> int:
    """Mostly a value that means something; often an extreme, or one beside it."""
    low, high = limits(type_name)
    kind = rng.random()
    if kind < 0.65:
        return min(max(rng.choice(KNOWN), low), high)
    if kind < 0.9:
        return min(max(rng.choice((low, high)) + rng.choice((0, 0, -1, 1)), low), high)
    if kind < 0.95:
        return min(max(1 << rng.randrange(BITS[type_name]), low), high)
    return rng.randint(low, high)


class MadeUp(Generator):
    """`ids`: of topics that exist.  `old_formats`: records of formats 0 and 1, too."""

    def __init__(self, rng: Random, ids: Sequence[bytes], old_formats: bool) -> None:
        super().__init__(0, wild=True)
        self.rng = rng
        self.ids = ids
        self.old_formats = old_formats

    def item(self, field: FieldSchema, top: Any, version: int, depth: int) -> Any:
        rng = self.rng
        if field.struct is not None:
            return super().item(field, top, version, depth)
        match field.type:
            case "string":
                return rng.choice(NAMES if rng.random() < 0.9 else TEXTS)
            case "uuid":
                return rng.choice((*self.ids, bytes(16), b"\0" * 15 + b"\1", b"\xff" * 16))
            case "records":
                return made_up_records(rng, self.old_formats)
            case "bytes":
                return rng.randbytes(rng.choice(BLOBS[:-1] if rng.random() < 0.97 else BLOBS))
            case "bool":
                return rng.random() < 0.5
            case "float64":
                return rng.choice(FLOATS)
        return number(rng, field.type)
