"""The records at an offset over time.

Owns: the story of an offset that holds a record that should not be there.  Never: guesses: each
link is an append, an answer or a note.  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.checks.anomalies.base import Anomaly, Explanation
from kcluster.checks.chain.facts import UNKNOWN, RecordAppended
from kcluster.checks.chain.links import Link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.losses import losses
from kcluster.checks.stories.sends import error_answered
from kcluster.evidence.lookups import Facts


def offset_story(facts: Facts, anomaly: Anomaly) -> Explanation:
    """Every record that ever stood at the offsets of an anomaly, and the events that removed it."""
    links: list[Link] = []
    allowed_by = Setting.NONE
    offsets = [offset for offset in (anomaly.first, anomaly.other) if offset >= 0]
    for offset in dict.fromkeys(offsets):
        entries = facts.appends_at(anomaly.partition, offset)
        for number, (observed, append) in enumerate(entries):
            values = [
                value for at, value in facts.recorder.contents.of(append.batch) if at == offset
            ]
            appended = RecordAppended(
                value=values[0] if values else UNKNOWN,
                offset=offset,
                broker=append.broker,
                epoch=append.epoch,
                isr=tuple(append.isr),
            )
            links.append(Link(append.at_ms, appended))
            links += error_answered(facts, append, anomaly.partition)
            if number + 1 < len(entries):
                removed, setting = losses(facts, observed, append, offset)
                links += removed
                allowed_by = allowed_by or setting
                if entries[number + 1][0] is not observed:
                    # A broker that does not know of the deletion yet goes on to serve readers.
                    allowed_by = allowed_by or Setting.RECREATED
    return Explanation(links, allowed_by)
