"""Made-up frames: a request of any API in any version, whole or broken on the wire.

Owns: how often which API and which kind of damage is drawn.  Never: sends anything.
"""

from __future__ import annotations

from random import Random
from struct import pack
from typing import Final

from kcluster.broker.versions import listed, served
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.framing import encode_request_frame
from kcluster.protocol.releases import Release
from tests.fuzz.mutations import mutated
from tests.fuzz.values import TEXTS, MadeUp

BROKEN_SHARE: Final = 0.4
FREQUENT: Final = (ApiKey.PRODUCE, ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.OFFSET_COMMIT)
SIZES: Final = (-1, 0, 1, -(2**31), 2**31 - 1, 100 << 20, (100 << 20) + 1)
"""Lengths of frames that nobody means, around socket.request.max.bytes."""


def made_up_frame(made_up: MadeUp, release: Release) -> bytes:
    """A frame with its length, for a broker of this release."""
    rng = made_up.rng
    api_key, version = made_up_api(rng, release)
    body = made_up.message(f"{APIS[api_key].name}Request", version)
    client_id = rng.choice(("made up", "made up", "", None, *TEXTS[:8]))
    frame = b"".join(encode_request_frame(api_key, version, rng.randrange(2**31), client_id, body))
    if rng.random() >= BROKEN_SHARE:
        return frame
    kind = rng.random()
    if kind < 0.8:
        inside = mutated(rng, frame[4:])
        return pack(">i", len(inside)) + inside
    if kind < 0.9:
        return pack(">i", rng.choice(SIZES)) + frame[4:]
    return mutated(rng, frame)


def made_up_api(rng: Random, release: Release) -> tuple[int, int]:
    """(API key, version), one that a broker of this release serves in most cases."""
    keys = [key for key, _, _ in listed(release) if served(release, key)]
    frequent = [int(key) for key in FREQUENT if int(key) in keys]
    api_key = rng.choice(frequent if rng.random() < 0.2 else keys)
    low, high = served(release, api_key) or (0, 0)
    if rng.random() < 0.05:
        low, high = APIS[api_key].all_versions
    return api_key, rng.choice((low, high, rng.randint(low, high)))
