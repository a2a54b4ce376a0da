"""Why an anomaly came to be: the chain of events that led to it, from what was recorded.

Owns: which story belongs to which anomaly (causes_of_losses.py, causes_of_sends.py and
causes_of_reads.py tell them), and the order of its links.
Never: guesses: each link is a note, an append, an answer or a client's own word.
Kafka: no counterpart; what a person reads out of the logs of all brokers and clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kcluster.checks.causes_of_losses import lost_story, offset_story
from kcluster.checks.causes_of_reads import committed_back, reads_story
from kcluster.checks.causes_of_sends import duplicate_story, reorder_story
from kcluster.evidence.history import Anomaly, Link
from kcluster.evidence.lookups import Facts


def explain(facts: Facts, anomaly: Anomaly) -> Anomaly:
    """`anomaly` with its chain, and with what allowed it where only the chain shows that."""
    links: Iterable[Link]
    allowed = anomaly.allowed
    match anomaly.name:
        case "lost-write":
            links, setting = lost_story(facts, anomaly)
            allowed = allowed or setting
        case "duplicate":
            links = duplicate_story(facts, anomaly)
        case "nonmonotonic-send":
            links = reorder_story(facts, anomaly)
        case "inconsistent-offsets" | "aborted-read" | "phantom":
            links, setting = offset_story(facts, anomaly)
            allowed = allowed or setting
        case "committed-offset-back":
            links = committed_back(facts, anomaly)
        case _:
            links = reads_story(facts, anomaly)
    return replace(anomaly, chain=tuple(in_order(links)), allowed=allowed)


def in_order(links: Iterable[Link]) -> list[Link]:
    """By time, equal times as given, each told once: what has a note by the first words for it."""
    once: dict[object, Link] = {}
    for entry in links:
        once.setdefault(entry.note_id or (entry.at_ms, entry.text), entry)
    return sorted(once.values(), key=lambda entry: entry.at_ms)


def chains_of(facts: Facts, anomalies: Sequence[Anomaly]) -> list[Anomaly]:
    """All of them, explained."""
    return [explain(facts, anomaly) for anomaly in anomalies]
