"""The remedies for an "unknown" of a running cluster, as values.

Owns: `Remedy`.  Never: finds the remedy that a cluster needs (handle/live_run.py), words it
(verdict_words.py). Kafka: no counterpart.
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
    """All of these at once, for a test's cluster."""


class Remedy(Struct, frozen=True):
    """An operation.  `brokers`: the brokers to which it applies."""

    kind: RemedyKind
    brokers: tuple[int, ...] = ()
