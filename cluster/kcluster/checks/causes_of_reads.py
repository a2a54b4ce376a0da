"""Why a consumer skipped, went back or never saw a record, and why a commit was forgotten.

Owns: the chains of what consumers and groups met.  Never: guesses: each link is a note, an answer
or a client's own word.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.broker.coordinator.placement import coordinator_partition
from kcluster.clients.ledger import Partition, ReadRecord
from kcluster.events.brokers import BrokerDown, RecordsLost
from kcluster.events.partitions import LeaderChange, LogTruncated, PartitionEvent
from kcluster.evidence.history import Anomaly, Link, shown
from kcluster.evidence.lookups import Facts, between, link
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.names import GROUP_METADATA_TOPIC

MAX_READS: Final = 4


def reads_story(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The reads around the place, what the consumer was told between them, and what became of
    the partition meanwhile."""
    partition = anomaly.partition
    reads = [
        read
        for read in facts.ledger.reads
        if read.partition == partition and anomaly.client in ("", read.consumer)
    ]
    if anomaly.name == "unseen":
        yield from _around(facts, anomaly, reads)
        return
    before = next((read for read in reads if read.offset == anomaly.other), None)
    after = next((read for read in reads if read.at_ms == anomaly.at_ms), None)
    if before is None or after is None:
        return
    yield from _given(facts, before)
    yield from _given(facts, after)
    yield from _told(facts, anomaly.client, before.at_ms, after.at_ms)
    yield from _changes(facts, partition, before.at_ms, after.at_ms)


def _around(facts: Facts, anomaly: Anomaly, reads: list[ReadRecord]) -> Iterator[Link]:
    """Who read just before and just behind what nobody has read."""
    send = facts.send(anomaly.partition, anomaly.values[0])
    if send is not None:
        yield Link(max(send.ended_ms, send.sent_ms), f"{shown(send.value)} was acked")
    below = [read for read in reads if read.offset < anomaly.first]
    above = [read for read in reads if read.offset > anomaly.last]
    if below:
        last = max(below, key=lambda read: read.offset)
        yield from _given(facts, last)
        if not above:
            yield from _told(facts, last.consumer, last.at_ms, facts.recorder.dispatcher.now_ms)
    if above:
        first = min(above, key=lambda read: read.offset)
        restarted = ", a position it chose itself" if first.restarted else ""
        yield from _given(facts, first, restarted)
        if below:
            yield from _told(facts, first.consumer, last.at_ms, first.at_ms)
            yield from _changes(facts, anomaly.partition, last.at_ms, first.at_ms)
    for group, partition, offset, is_commit in facts.ledger.commits:
        if partition == anomaly.partition and is_commit and offset > anomaly.first:
            at_ms = _commit_ms(facts, group, partition, offset)
            yield Link(at_ms, f"group {group} committed {offset}")
            return


def _given(facts: Facts, read: ReadRecord, how: str = "") -> Iterator[Link]:
    broker = ""
    for answer in facts.recorder.partition_answers(
        ApiKey.FETCH, lambda entry: read.at_ms - 5_000 <= entry[0] <= read.at_ms
    ):
        if answer.partition == read.partition and answer.first <= read.offset <= answer.last:
            broker = f" by broker {answer.broker}"
    yield Link(read.at_ms, f"{read.consumer} was given offset {read.offset}{broker}{how}")


def _told(facts: Facts, client: str, from_ms: int, to_ms: int) -> Iterator[Link]:
    told = [
        entry
        for entry in facts.ledger.told
        if entry.client == client and from_ms <= entry.at_ms <= to_ms
    ]
    for entry in told[:MAX_READS]:
        yield Link(entry.at_ms, f"{client} was told {entry.error} for its {entry.api}")


def _changes(facts: Facts, partition: Partition, from_ms: int, to_ms: int) -> Iterator[Link]:
    changes = facts.of_partition(partition, PartitionEvent)
    notes = [note for note, event in changes if isinstance(event, LeaderChange | LogTruncated)]
    for note in between(notes, from_ms, to_ms):
        yield from facts.with_causes(note)


# ------------------------------------------------------------------------------------- commits


def committed_back(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The commit's ack, what became of the group's partition of __consumer_offsets, and the
    older answer."""
    group = anomaly.client
    committed_ms = _commit_ms(facts, group, anomaly.partition, anomaly.other)
    told_ms = facts.recorder.dispatcher.now_ms
    for at_ms, broker, reply in facts.recorder.answers:
        body = reply.request.body
        if reply.request.api_key == ApiKey.OFFSET_COMMIT and body.group_id == group:
            if at_ms == committed_ms:
                text = f"broker {broker} acked the commit of {anomaly.other} by group {group}"
                yield Link(at_ms, text)
        elif (
            reply.request.api_key == ApiKey.OFFSET_FETCH
            and at_ms > committed_ms
            and _told_offset(reply.body, group, anomaly.partition) == anomaly.first
        ):
            told_ms = at_ms
            yield Link(at_ms, f"broker {broker} told group {group} offset {anomaly.first}")
            break
    count = sum(ground.topic == GROUP_METADATA_TOPIC for ground in facts.recorder.grounds.values())
    if count:
        home = (GROUP_METADATA_TOPIC, coordinator_partition(group, count))
        yield from _changes(facts, home, committed_ms, told_ms)
        for note in between(facts.notes, committed_ms, told_ms):
            if isinstance(note.event, RecordsLost | BrokerDown):
                yield link(note)


def _commit_ms(facts: Facts, group: str, partition: Partition, offset: int) -> int:
    """When that commit was answered; the last such."""
    found = 0
    for at_ms, _, reply in facts.recorder.answers:
        request = reply.request
        if request.api_key != ApiKey.OFFSET_COMMIT or request.body.group_id != group:
            continue
        for topic in request.body.topics:
            for wanted in topic.partitions:
                if wanted.partition_index == partition[1] and wanted.committed_offset == offset:
                    found = at_ms
    return found


def _told_offset(body: object, group: str, partition: Partition) -> int:
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
