"""The remedies for the verdict "unknown" on a running cluster, as values.

Owns: `Remedy`.  Never: finds the remedy that a cluster needs (handle/live_run.py), words it
(verdict_words.py). Kafka: no counterpart.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class RemedyKind(StrEnum):
    """The operation that remedies."""

    START = "start"
    """Start brokers, because some are down."""
    RESUME = "resume"
    """Resume brokers, because some are paused."""
    HEAL = "heal"
    """Heal links, because some are cut or shaped."""
    WAIT = "wait"
    """Wait: everything is repaired, and replicas catch up."""
    REPAIR = "repair"
    """Repair everything at once, for a test's cluster."""


class Remedy(Struct, frozen=True):
    """An operation that would end an "unknown".  `brokers`: the brokers to which it applies."""

    kind: RemedyKind
    brokers: tuple[int, ...] = ()
