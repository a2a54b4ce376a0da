"""The sample on which guided search is compared with chance, and the searches around a topology.

Owns: the mutations of the sample, the seeds, the limits of both.  Never: measures.  Kafka: no
counterpart.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.measure import Limits

SAMPLE: Final = (
    "kip279_unknown_epoch",
    "kafka7164_missed_epoch",
    "unclean_any_offline",
    "kip320_no_fencing",
)
"""Mutations that chance finds, but not within a few runs."""
SEEDS: Final = (1, 1_001, 2_001, 3_001, 4_001)
"""Far apart: chance draws its n-th schedule by seed + n, so that neighbours find the same one."""
SAMPLE_LIMITS: Final = Limits(100, 30.0)
AROUND_LIMITS: Final = Limits(60, 12.0)
"""Of the searches around a topology."""
