"""What a real Kafka says of open transactions: those in the logs, and those of coordinators.

Owns: the questions (DescribeProducers, ListTransactions, DescribeTransactions), and which of the
transactions in a log no coordinator will end.  Never: ends one.
Kafka: kafka-transactions find-hanging (KIP-664).

Logs and coordinators cannot be asked at one moment.  A transaction counts as hanging only if it was
open in its log both before and after the coordinators did not know it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from kcluster.evidence.history import OpenTransaction
from kcluster.mirror.connection import NoAnswer
from kcluster.mirror.logs import Partition, by_topic
from kcluster.mirror.requests import NodeRequests
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

UNFINISHED: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
"""The states of a transaction that its coordinator will end.  Kafka: TransactionState."""
_NO_LONGER: Final = (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
InLog = tuple[Partition, int, int]
"""A transaction that is open in a log: (partition, producer id, first offset)."""
Owned = tuple[Partition, int]
"""A partition of a transaction that its coordinator will end, and its producer id."""


class TransactionWatch:
    """The open transactions of a cluster, as of the last two looks."""

    def __init__(self) -> None:
        self._before: frozenset[InLog] = frozenset()
        self._now: frozenset[InLog] = frozenset()
        self._owned: frozenset[Owned] | None = None
        self._between: frozenset[Owned] | None = None
        """What the coordinators knew between the two looks at the logs; None: not all of them
        answered."""

    def ask(
        self, brokers: Sequence[tuple[NodeRequests, Sequence[Partition]]], *, are_all: bool
    ) -> None:
        """Ask brokers, each with the partitions that it leads, about their logs, and then about the
        transactions that they coordinate.  `are_all`: whether these are all brokers."""
        in_logs: list[InLog] = []
        owned: list[Owned] | None = [] if are_all else None
        for node, led in brokers:
            with suppress(NoAnswer):
                in_logs += read_open(node, led)
        for node, _ in brokers:
            try:
                here = read_owned(node)
            except NoAnswer:
                here = None
            owned = None if here is None or owned is None else [*owned, *here]
        self.take(in_logs, owned)

    def take(self, in_logs: Iterable[InLog], owned: Iterable[Owned] | None) -> None:
        """Take what the leaders say of their logs, and what the coordinators say after that; None:
        not all of them answered."""
        self._before, self._now = self._now, frozenset(in_logs)
        self._between, self._owned = self._owned, None if owned is None else frozenset(owned)

    def open_in(self, partition: Partition) -> list[OpenTransaction]:
        """The transactions that are open in a partition, in order of their first offsets."""
        found = sorted((one for one in self._now if one[0] == partition), key=lambda one: one[2])
        return [OpenTransaction(one[1], one[2], not self._hangs(one)) for one in found]

    def _hangs(self, one: InLog) -> bool:
        known = self._between
        return known is not None and one in self._before and (one[0], one[1]) not in known


def read_open(node: NodeRequests, led: Sequence[Partition]) -> list[InLog]:
    """The transactions that are open in the logs that a broker leads; NoAnswer without an
    answer."""
    ask = m.DescribeProducersRequest
    topics = [ask.TopicRequest(name, numbers) for name, numbers in by_topic(led).items()]
    answer = node.ask(ask(topics=topics), m.DescribeProducersResponse)
    return [
        ((topic.name, found.partition_index), each.producer_id, each.current_txn_start_offset)
        for topic in answer.topics
        for found in topic.partitions
        for each in found.active_producers
        if each.current_txn_start_offset >= 0
    ]


def read_owned(node: NodeRequests) -> list[Owned] | None:
    """The transactions that a broker coordinates and will end; None if it does not know yet.
    NoAnswer without an answer."""
    ask = m.ListTransactionsRequest(state_filters=list(UNFINISHED), producer_id_filters=[])
    listed = node.ask(ask, m.ListTransactionsResponse)
    if listed.error_code:
        return None
    ids = [each.transactional_id for each in listed.transaction_states]
    if not ids:
        return []
    described = node.ask(
        m.DescribeTransactionsRequest(transactional_ids=ids), m.DescribeTransactionsResponse
    )
    if any(each.error_code not in _NO_LONGER for each in described.transaction_states):
        return None
    return [
        ((topic.topic, number), each.producer_id)
        for each in described.transaction_states
        for topic in each.topics
        for number in topic.partitions
    ]
