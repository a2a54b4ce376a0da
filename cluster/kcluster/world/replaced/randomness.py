"""Random numbers of a world, from its seed.

Owns: the replacements of random, os.urandom and the sources of uuid and secrets.  Never: chooses
the seed (world.py). Kafka: no counterpart.
"""

from __future__ import annotations

import os
import random
import uuid
from contextlib import ExitStack
from typing import Final

from kcluster.world.active import world_here
from kcluster.world.holders import Replacement
from kcluster.world.replacing import set_attribute

NODE: Final = 0x02_00_00_00_00_01
"""The hardware address that all programs of a world see."""
_urandom: Final = os.urandom
_seed: Final = random.Random.seed
_seed_of_all: Final = random.seed
"""The function that seeds the generator behind the functions of random."""


def urandom(size: int, /) -> bytes:
    """Replaces os.urandom."""
    world = world_here()
    return _urandom(size) if world is None else world.entropy.randbytes(size)


def seed(
    self: random.Random, a: int | float | str | bytes | bytearray | None = None, version: int = 2
) -> None:
    """Replaces random.Random.seed: without a value it takes the world's seed instead of the
    system's."""
    world = world_here()
    if a is None and world is not None and not isinstance(self, random.SystemRandom):
        a = world.entropy.getrandbits(128)
    _seed(self, a, version)


def seed_of_all(a: int | float | str | bytes | bytearray | None = None, version: int = 2) -> None:
    """Replaces random.seed."""
    seed(random._inst, a, version)


PAIRS: Final = (Replacement(_urandom, urandom), Replacement(_seed_of_all, seed_of_all))


def replace_generators(undo: ExitStack, first_seed: str) -> None:
    """Seed the shared generator, and each new one; `undo` gives the shared one its state back."""
    undo.callback(random.setstate, random.getstate())
    random.seed(first_seed)
    set_attribute(undo, random.Random, "seed", seed)
    # uuid1 asks the C library for the time.
    set_attribute(undo, uuid, "_generate_time_safe", None)
    set_attribute(undo, uuid, "_last_timestamp", None)
    # uuid1 asks other programs for the machine's address.
    set_attribute(undo, uuid, "_node", NODE)
