"""Follows the metadata log of a real Kafka, as an observer of its quorum.

Owns: the search for the active controller, the fetches, the order of batches.  Never: applies a
record (its `on_records` does), votes, counts as a replica of the log.  Kafka: KafkaRaftClient as an
observer; KIP-595, KIP-630.

A controller that is not active answers with the leader that it knows.  Only records below the high
watermark are passed on, so nothing here is ever taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Final

import gevent

from kcluster.mirror.connection import Address, InnerLogin, KafkaConnection, NoAnswer
from kcluster.mirror.metadata_records import KafkaRecord, read_batch
from kcluster.mirror.metadata_state import MetadataState
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.records.batches import parse_batches

METADATA_TOPIC_ID: Final = bytes(15) + b"\1"
"""The topic id of __cluster_metadata.  Kafka: Uuid.METADATA_TOPIC_ID."""
FETCH_VERSION: Final = 17
MAX_WAIT_MS: Final = 500
"""Kafka: KafkaRaftClient.MAX_FETCH_WAIT_MS."""
MAX_BYTES: Final = 8 << 20
RETRY_S: Final = 0.1
ANSWER_LIMIT_S: Final = 3.0
"""The time after which a controller that does not answer is taken for gone."""
_SEARCHING: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


class MetadataLogLost(Exception):
    """The error for a log that cannot be followed any further."""


class MetadataTail:
    """Reads the log from its start, in a greenlet.  `controllers`: the addresses of the quorum, by
    id; `on_records`: called with the records of each batch, in order."""

    def __init__(
        self,
        controllers: Mapping[int, Address],
        state: MetadataState,
        on_records: Callable[[Sequence[KafkaRecord]], None],
        login: InnerLogin | None = None,
    ) -> None:
        self._controllers = dict(controllers)
        self._state = state
        self._on_records = on_records
        self._connections = {
            each: KafkaConnection(address, login) for each, address in controllers.items()
        }
        self._order = cycle(self._controllers)
        self._leader = next(self._order)
        self._epoch = 0
        """The quorum's epoch, as far as it is known."""

    @property
    def leader(self) -> int:
        """The controller from which the log is read."""
        return self._leader

    def run(self) -> None:
        """Follow the log until the greenlet is killed."""
        try:
            while True:
                if not self._fetch():
                    gevent.sleep(RETRY_S)
        finally:
            for connection in self._connections.values():
                connection.close()

    def _fetch(self) -> bool:
        """Fetch once; False if the next fetch should wait a little."""
        state = self._state
        fetch = m.FetchRequest
        partition = fetch.FetchPartition(
            partition=0,
            current_leader_epoch=self._epoch,
            fetch_offset=state.next_offset,
            last_fetched_epoch=state.last_epoch,
            partition_max_bytes=MAX_BYTES,
        )
        topic = fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
        request = fetch(max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=MAX_BYTES, topics=[topic])
        try:
            answer = self._connections[self._leader].ask(
                ApiKey.FETCH, FETCH_VERSION, request, ANSWER_LIMIT_S
            )
        except NoAnswer:
            self._leader = next(self._order)
            return False
        assert isinstance(answer, m.FetchResponse), answer
        if not answer.responses:
            self._leader = next(self._order)
            return False
        return self._take(answer.responses[0].partitions[0])

    def _take(self, found: m.FetchResponse.PartitionData) -> bool:
        leader = found.current_leader
        self._epoch = max(self._epoch, leader.leader_epoch)
        if found.error_code:
            if found.error_code not in _SEARCHING:
                raise MetadataLogLost(f"the metadata log: {error_of(found.error_code).name}")
            is_known = leader.leader_id in self._controllers and leader.leader_id != self._leader
            self._leader = leader.leader_id if is_known else self._leader
            if not is_known and found.error_code != ErrorCode.FENCED_LEADER_EPOCH:
                self._leader = next(self._order)
            return is_known
        if found.snapshot_id.end_offset >= 0:
            raise MetadataLogLost("the metadata log was compacted before it was read")
        state = self._state
        assert found.diverging_epoch.end_offset < 0, found.diverging_epoch
        for batch in parse_batches(found.records or b""):
            if batch.last_offset >= found.high_watermark:
                break
            if batch.base_offset >= state.next_offset:
                records = list(read_batch(batch))
                if records:
                    self._on_records(records)
                state.next_offset, state.last_epoch = batch.last_offset + 1, batch.leader_epoch
        return True
