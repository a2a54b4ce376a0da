"""What a run of real client code depends on besides its seed: versions, the hash seed.

Owns: which of these there are, and how they are found.  Never: changes one of them.
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Final

from kcluster.version import __version__

HASH_SEED: Final = "PYTHONHASHSEED"
UNKNOWN: Final = "random"
_LIBRARIES: Final = {"kafka": "kafka-python", "aiokafka": "aiokafka"}
"""Distributions of client libraries, by the modules that they have."""


def run_environment() -> dict[str, str]:
    """The versions of kcluster, Python and the client libraries that were imported, and the hash
    seed, "random" if nobody chose it."""
    found = {"kcluster": __version__, "Python": platform.python_version()}
    for module, distribution in _LIBRARIES.items():
        if module in sys.modules:
            found[distribution] = _version_of(distribution)
    found[HASH_SEED] = hash_seed()
    return found


def hash_seed() -> str:
    """The seed of this process' str hashes, "random" if it is not known."""
    if not sys.flags.hash_randomization:
        return "0"
    value = os.environ.get(HASH_SEED, "")
    return value if value.isdigit() else UNKNOWN


def _version_of(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"
