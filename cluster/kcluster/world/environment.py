"""The environment of a run of real client code, on which its outcome depends besides the seed:
versions and the hash seed.

Owns: finding them, and starting a process again with a hash seed.  Never: decides when to start it
again (testing/hash_seed.py, cli/simulate/hash_seed.py). Kafka: no counterpart.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Final, NoReturn

from kcluster.version import __version__

HASH_SEED: Final = "PYTHONHASHSEED"
STARTED_AGAIN: Final = "KCLUSTER_STARTED_AGAIN"
"""The variable that `start_again` sets for the process that it starts."""
UNKNOWN: Final = "random"
_LIBRARIES: Final = {"kafka": "kafka-python", "aiokafka": "aiokafka"}
"""The distributions of client libraries, by their modules."""


def run_environment() -> dict[str, str]:
    """The versions of kcluster, Python and the client libraries that were imported, and the hash
    seed; "random" if none was set."""
    found = {"kcluster": __version__, "Python": platform.python_version()}
    for module, distribution in _LIBRARIES.items():
        if module in sys.modules:
            found[distribution] = _version_of(distribution)
    found[HASH_SEED] = hash_seed()
    return found


def hash_seed() -> str:
    """The seed of this process' str hashes, "random" if it is unknown."""
    if not sys.flags.hash_randomization:
        return "0"
    value = os.environ.get(HASH_SEED, "")
    return value if value.isdigit() else UNKNOWN


def start_again(seed: str) -> NoReturn:
    """Run this command again in place of this process, with a fixed hash seed."""
    environment = {**os.environ, HASH_SEED: seed, STARTED_AGAIN: "1"}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def _version_of(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"
