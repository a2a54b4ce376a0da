"""The sample on which guided search is compared with chance.

Owns: the mutations of the sample, the seeds, the limits.  Never: measures.  Kafka: no counterpart.
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
SEEDS: Final = (1, 2, 3, 4, 5)
SAMPLE_LIMITS: Final = Limits()
