"""What is read of a run besides its findings: what nobody asks for is not worked out.

Owns: Asked.  Never: works anything out.  Kafka: no counterpart.

A search plays thousands of runs, and reads nothing of them but findings; explaining their outages
cost it more than playing them.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Asked(Struct, frozen=True):
    """The parts of a run's result that are read.  `windows`: the times in which partitions were not
    available to clients; `degraded`: the times in which they were degraded; `reasons`: the reasons
    and the origins of both; `states`: the states of coordinators over time, which pages show;
    `trace`: the hash of the trace.  A part that is not asked for is empty."""

    windows: bool = True
    degraded: bool = True
    reasons: bool = True
    states: bool = True
    trace: bool = True


EVERYTHING: Final = Asked()
