"""Which partitions coordinators gave to the members of KIP-848 groups, and until when.

Owns: these facts, read from recorded answers and notes after a run.  Never: judges them (checks/).
Kafka: no counterpart; ConsumerGroup.currentPartitionEpoch keeps it while a group runs.

A member holds a partition from the answer that assigns it, until it owns it no more by its own next
word, leaves, or is fenced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from kcluster.broker.node import BrokerNode
from kcluster.clients.ledger import Partition
from kcluster.events.clients import GroupMemberExpired, GroupMemberLeft
from kcluster.evidence.recorder import Recorder
from kcluster.operations.status import controller_image
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of

FENCING = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)


class HeldTwice(Struct, frozen=True):
    """A partition that `holder` had not given up was assigned to `other`."""

    at_ms: int
    broker: int
    group: str
    partition: Partition
    holder: str
    other: str
    since_ms: int
    """Since when `holder` has it."""


class _Fence(Struct):
    """When a member counts as fenced although no answer said so."""

    heard_until_ms: int
    """The end of its session."""
    rebalance_timeout_ms: int = 0
    revokes: dict[Partition, int] = {}
    """What it is to give up, since when."""

    def is_past(self, partition: Partition, now_ms: int) -> bool:
        since_ms = self.revokes.get(partition, now_ms)
        is_slow = 0 < self.rebalance_timeout_ms <= now_ms - since_ms
        return is_slow or now_ms >= self.heard_until_ms


def held_twice(recorder: Recorder) -> Iterator[HeldTwice]:
    """Every partition of a group that was assigned while another member held it."""
    names = controller_image(recorder.dispatcher).topic_names
    session_ms = min(
        (
            process.last_node.config.group_consumer_session_timeout_ms
            for process in recorder.dispatcher.processes.values()
            if isinstance(process.last_node, BrokerNode)
        ),
        default=0,
    )
    departures = [
        (note.at_ms, note.event)
        for note in recorder.notes
        if isinstance(note.event, GroupMemberExpired | GroupMemberLeft)
    ]
    held: dict[tuple[str, str], dict[Partition, int]] = {}
    """By group and member; since when."""
    fences: dict[tuple[str, str], _Fence] = {}
    for at_ms, broker, reply in recorder.answers:
        request, answer = reply.request, reply.body
        if request.api_key != ApiKey.CONSUMER_GROUP_HEARTBEAT or answer is None:
            continue
        while departures and departures[0][0] <= at_ms:
            _, event = departures.pop(0)
            held.pop((event.group, event.member), None)
        body = request.body
        key = (body.group_id, answer.member_id or body.member_id)
        error = error_of(answer.error_code)
        if error in FENCING or body.member_epoch <= 0:
            held.pop(key, None)
        if error or body.member_epoch < 0:
            continue
        own = held.setdefault(key, {})
        fence = fences.setdefault(key, _Fence(at_ms + session_ms))
        fence.heard_until_ms = at_ms + session_ms
        if body.rebalance_timeout_ms >= 0:
            fence.rebalance_timeout_ms = body.rebalance_timeout_ms
        if body.topic_partitions is not None:
            owned = _partitions(body.topic_partitions, names)
            own = held[key] = {one: own.get(one, at_ms) for one in owned}
        if answer.assignment is None:
            continue
        assigned = _partitions(answer.assignment.topic_partitions, names)
        fence.revokes = {one: fence.revokes.get(one, at_ms) for one in own if one not in assigned}
        for partition in assigned:
            if partition not in own:
                own[partition] = at_ms
                for (group, member), others in held.items():
                    is_other = group == key[0] and member != key[1] and partition in others
                    if is_other and not fences[group, member].is_past(partition, at_ms):
                        yield HeldTwice(
                            at_ms, broker, group, partition, member, key[1], others[partition]
                        )


def _partitions(topics: Iterable[Any], names: dict[bytes, str]) -> list[Partition]:
    return [
        (names.get(topic.topic_id, ""), number) for topic in topics for number in topic.partitions
    ]
