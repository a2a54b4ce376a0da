"""Operations on the groups of the cluster behind the proxy, as an administrator may perform them.

Owns: finding a group's coordinator, and the connections to it.  Never: decides which requests make
a member leave (operations/group_calls.py), touches a client's connection.
Kafka: Admin.removeMembersFromConsumerGroup, kafka-consumer-groups, kafka-share-groups.

Everything here waits in the calling greenlet, for OPERATION_TIMEOUT_S at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

import gevent

from kcluster.contract import Event
from kcluster.events.clients import GroupDeleted, OffsetSpec, PartitionOffset, RebalanceRequested
from kcluster.operations.group_calls import (
    Calls,
    GroupCallRefused,
    GroupMember,
    delete,
    evict,
    evicted,
    offsets_reset,
    rebalance,
    reset,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.messages import Message
from kcluster.proxy.addresses import Address
from kcluster.proxy.upstream import Upstream, UpstreamError

OPERATION_TIMEOUT_S: Final = 10.0
COORDINATOR_WITHIN_S: Final = 5.0
RETRY_BACKOFF_S: Final = 0.1
"""Kafka's default of retry.backoff.ms."""
_NOT_YET: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
_GROUP_KEY: Final = 0
"""FindCoordinator's key_type of a group."""


class ProxiedGroups:
    """The groups of the cluster behind a proxy.  `note`: called with an event per operation."""

    def __init__(self, upstream: Upstream, note: Callable[[Event], None]) -> None:
        self._upstream = upstream
        self._note = note

    def evict(self, group: str, name: str) -> None:
        """Make members leave a group in their name.  `name`: a member's id, static id or client id,
        or `all`.  GroupCallRefused or UpstreamError with the reason if they do not."""

        def note(chosen: Sequence[GroupMember]) -> None:
            self._note(evicted(group, name, chosen))

        self._perform(group, evict(group, name, note))

    def rebalance(self, group: str) -> None:
        """Make a group rebalance, by a member that joins and leaves at once.  GroupCallRefused or
        UpstreamError with the reason if it does not."""
        self._perform(group, rebalance(group, f"rebalance-{time.time_ns()}"))
        self._note(RebalanceRequested(group))

    def delete_group(self, group: str) -> None:
        """Delete a group with its offsets.  GroupCallRefused or UpstreamError with the reason if it
        is not deleted."""
        self._perform(group, delete(group, lambda: self._note(GroupDeleted(group))))

    def reset_offsets(
        self, group: str, topic: str, partition: int | None, to: OffsetSpec | int
    ) -> None:
        """Give a group other offsets of a topic.  `partition` None: of all its partitions; `to`: an
        end of the log, or an offset.  GroupCallRefused or UpstreamError with the reason if it
        does not get them."""

        def note(offsets: tuple[PartitionOffset, ...]) -> None:
            self._note(offsets_reset(group, topic, partition, to, offsets))

        self._perform(group, reset(group, topic, partition, to, note))

    def _perform(self, group: str, calls: Calls) -> None:
        """Send these calls, each when the previous one was answered."""
        late = UpstreamError(f"group {group}: no answer within {OPERATION_TIMEOUT_S:g} s")
        with gevent.Timeout(OPERATION_TIMEOUT_S, late), ExitStack() as connections:
            place = self._coordinator(group)
            coordinator = connections.enter_context(self._upstream.open(place))
            answer: Message | None = None
            while True:
                try:
                    call = calls.send(answer)
                except StopIteration:
                    return
                if call.broker is not None:
                    with self._upstream.open(self._upstream.brokers()[call.broker]) as broker:
                        answer = broker.ask(call.request)
                    continue
                if call.is_awaited:
                    answer = coordinator.ask(call.request)
                    continue
                answer = None
                connections.enter_context(self._upstream.open(place)).send(call.request)

    def _coordinator(self, group: str) -> Address:
        """The address of the group's coordinator, once there is one: the first look at any group
        makes the cluster create its topic of offsets."""
        # From version 4 on the request names several groups, before it one.
        request = m.FindCoordinatorRequest(group, _GROUP_KEY, [group])
        ends_s = time.monotonic() + COORDINATOR_WITHIN_S
        with self._upstream.open() as server:
            while True:
                answer = server.ask(request)
                assert isinstance(answer, m.FindCoordinatorResponse)
                found = answer.coordinators[0] if answer.coordinators else answer
                if not found.error_code:
                    return found.host, found.port
                error = error_of(found.error_code)
                if error not in _NOT_YET or time.monotonic() >= ends_s:
                    text = found.error_message or error.text
                    raise GroupCallRefused(f"group {group}: {error.name}: {text}")
                gevent.sleep(RETRY_BACKOFF_S)
