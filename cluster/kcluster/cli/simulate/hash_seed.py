"""The hash seed of a simulation: one for all processes, so that sets of strings have one order.

Owns: starting this command again with PYTHONHASHSEED.  Never: changes it if the user has set it.
Kafka: no counterpart.

The hash seed does not depend on the seed of the run.  Children that are forked for many seeds share
their parent's hash seed, and a failing seed must also fail when it is run alone.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from kcluster.world.environment import HASH_SEED, STARTED_AGAIN, UNKNOWN, hash_seed, start_again

CHOSEN: Final = "0"


def fix_hash_seed() -> None:
    """Make sure that the hash seed is known.  If it is unknown, start this command again with a
    chosen hash seed; then the call does not return."""
    if hash_seed() == UNKNOWN:
        start_again(CHOSEN)


def report_hash_seed() -> None:
    """Report on stderr that this process was started again with a hash seed, if it was."""
    if os.environ.pop(STARTED_AGAIN, None):
        print(f"kcluster: started again with {HASH_SEED}={CHOSEN}", file=sys.stderr)
