"""A group's commits of an offset, and the brokers' answers to its OffsetFetch.

Owns: both look-ups in the brokers' answers.  Never: makes a link.  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.clients.ledger import Partition
from kcluster.contract import Reply
from kcluster.evidence.lookups import Facts
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey


def commit_ms(
    facts: Facts, group: str, partition: Partition, offset: int, fetched: int | None = None
) -> int:
    """The time of the last accepted commit of this offset, before an OffsetFetch was answered with
    `fetched` (if that is given); 0 if there was none."""
    last = 0
    for at_ms, _, reply in facts.recorder.answers:
        request = reply.request
        if request.api_key == ApiKey.OFFSET_FETCH:
            is_wanted = last and fetched is not None
            if is_wanted and fetched_offset(reply.body, group, partition) == fetched:
                break
        elif is_commit_of(reply, group, partition, offset):
            last = at_ms
    return last


def is_commit_of(reply: Reply, group: str, partition: Partition, offset: int) -> bool:
    """Whether this answer accepts the commit of an offset."""
    request = reply.request
    return (
        request.api_key == ApiKey.OFFSET_COMMIT
        and request.body.group_id == group
        and _number(request.body, partition, "committed_offset") == offset
        and not _number(reply.body, partition, "error_code")
    )


def _number(
    body: m.OffsetCommitResponse | m.OffsetCommitRequest | None, partition: Partition, field: str
) -> int:
    """A field of a partition's entry in an OffsetCommit request or response; -1 for none."""
    for topic in body.topics if body is not None else ():
        for entry in topic.partitions:
            if entry.partition_index == partition[1]:
                number: int = getattr(entry, field)
                return number
    return -1


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
