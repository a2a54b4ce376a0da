"""What ends an "unknown" of a running cluster, as values.

Owns: `Remedy`.  Never: finds out which one a cluster needs (handle/live_run.py), words it
(verdict_words.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class RemedyKind(StrEnum):
    """The operation."""

    START = "start"
    """Brokers are down."""
    RESUME = "resume"
    """Brokers are paused."""
    HEAL = "heal"
    """Links are cut or shaped."""
    WAIT = "wait"
    """Everything is repaired; replicas catch up."""
    REPAIR = "repair"
    """Of a test's cluster: all of these at once."""


class Remedy(Struct, frozen=True):
    """`brokers`: those that it is for."""

    kind: RemedyKind
    brokers: tuple[int, ...] = ()
