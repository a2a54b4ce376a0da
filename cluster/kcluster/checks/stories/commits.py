"""When a group committed an offset, and what a broker answered to its OffsetFetch.

Owns: both look-ups in the brokers' answers.  Never: makes a link.  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.clients.ledger import Partition
from kcluster.evidence.lookups import Facts
from kcluster.protocol.apis import ApiKey


def commit_ms(facts: Facts, group: str, partition: Partition, offset: int) -> int:
    """When that commit was last answered; 0 for never."""
    last = 0
    for at_ms, _, reply in facts.recorder.answers:
        request = reply.request
        if request.api_key != ApiKey.OFFSET_COMMIT or request.body.group_id != group:
            continue
        for topic in request.body.topics:
            for wanted in topic.partitions:
                if wanted.partition_index == partition[1] and wanted.committed_offset == offset:
                    last = at_ms
    return last


def fetched_offset(body: object, group: str, partition: Partition) -> int:
    """The committed offset in an OffsetFetch response, -1 for none."""
    groups = getattr(body, "groups", ()) or (body,)
    for answered in groups:
        if getattr(answered, "group_id", group) != group:
            continue
        for topic in getattr(answered, "topics", ()):
            for entry in topic.partitions:
                if entry.partition_index == partition[1] and not entry.error_code:
                    offset: int = entry.committed_offset
                    return offset
    return -1
