"""The sample on which the search near moments is compared with chance.

Owns: the programs of the sample, the seeds.  Never: measures.  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

SAMPLE: Final = ("pool", "tasks", "commit_first", "dead_letter", "in_progress", "halves")
"""Programs whose bug needs a death in a short time."""
SEEDS: Final = (1, 1_001, 2_001)
"""Far apart: the n-th run of a search has seed + n, so that neighbours make the same runs."""
