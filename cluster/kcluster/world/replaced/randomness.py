"""Random numbers of a world, from its seed.

Owns: the replacements of random, os.urandom and what uuid and secrets draw from.  Never: the seed
(world.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import random
import uuid
from contextlib import ExitStack
from typing import Any, Final

from kcluster.world.active import world_here
from kcluster.world.holders import Replacement
from kcluster.world.replacing import set_attribute

NODE: Final = 0x02_00_00_00_00_01
"""The hardware address of the machine of all programs of a world."""
_urandom: Final = os.urandom
_seed: Final = random.Random.seed
_seed_of_all: Final = random.seed
"""Of the generator that the functions of random share."""


def urandom(size: int, /) -> bytes:
    """os.urandom."""
    world = world_here()
    return _urandom(size) if world is None else world.entropy.randbytes(size)


def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
    """random.Random.seed: without a value, from the world's seed instead of the system."""
    world = world_here()
    if a is None and world is not None and not isinstance(self, random.SystemRandom):
        a = world.entropy.getrandbits(128)
    _seed(self, a, version)


def seed_of_all(a: object = None, version: int = 2) -> None:
    """random.seed."""
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
    # It asks programs for the machine's address.
    set_attribute(undo, uuid, "_node", NODE)
