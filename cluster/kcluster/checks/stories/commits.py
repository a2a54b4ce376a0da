"""A group's commits of an offset, as brokers answered them.

Owns: the look-up of the last one.  Never: makes a link.  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.clients.ledger import Partition
from kcluster.evidence.group_history import FetchedOffset, offset_answers, offsets_marked
from kcluster.evidence.lookups import Facts


def commit_ms(
    facts: Facts, group: str, partition: Partition, offset: int, fetched: int | None = None
) -> int:
    """The time of the last accepted commit of this offset, before an OffsetFetch was answered with
    `fetched` (if that is given); without one, of the marker of a transaction that committed it; 0
    if there was none."""
    last = 0
    for each in offset_answers(facts.recorder):
        if (each.group, each.partition) != (group, partition):
            continue
        if isinstance(each, FetchedOffset):
            if last and each.offset == fetched:
                break
        elif each.is_accepted and each.offset == offset:
            last = each.at_ms
    return last or next(offsets_marked(facts.recorder, group, partition, offset), 0)
