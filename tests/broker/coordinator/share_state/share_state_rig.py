"""Three brokers in virtual time, one of which coordinates all share state.

Owns: `ShareStateRig`, which calls a broker's persister as a share-partition leader does, and sends
the raw requests.  Never: asserts what a test is about.
"""

from __future__ import annotations

from typing import Any

from kcluster.broker.coordinator.share_state.share_state_shard import ShareStateShard
from kcluster.broker.coordinator.share_state.state import ReadState, SharePartition, StateBatch
from kcluster.broker.node import BrokerNode
from kcluster.protocol import messages as m
from kcluster.protocol.apis import VERSIONS, ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import SHARE_GROUP_STATE_TOPIC
from tests.rig.cluster import TOPIC, Simulated

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


class ShareStateRig(Simulated):
    """Broker 1 leads `orders`, 2 coordinates with 1 as its follower."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.assign_topic(SHARE_GROUP_STATE_TOPIC, [[2, 1]])
        self.run_for(1_000)

    @property
    def topic_id(self) -> bytes:
        found: bytes = self.verbs.partition(TOPIC, 0).topic_id
        return found

    @property
    def share_partition(self) -> SharePartition:
        return SharePartition("g", self.topic_id, 0)

    @property
    def coordinator(self) -> int:
        return self.partition(SHARE_GROUP_STATE_TOPIC).leader or -1

    def node(self, broker: int) -> BrokerNode:
        node = self.dispatcher.processes[broker].node
        assert isinstance(node, BrokerNode), f"broker {broker} is down"
        return node

    @property
    def shard(self) -> ShareStateShard:
        return self.node(self.coordinator).share_state.shards[0]

    @property
    def stored(self) -> Any:
        """The stored state of the share partition `orders`-0 of group g."""
        return self.shard.states.state(self.share_partition)

    @property
    def log_start(self) -> int:
        replica = self.shard.replica
        assert replica is not None
        return replica.log.log_start_offset

    # ------------------------------------------------------------------ raw requests, one row

    def initialize(self, state_epoch: int = 1, start_offset: int = -1, **more: Any) -> str:
        kind = m.InitializeShareGroupStateRequest
        row = kind.PartitionData(more.pop("partition", 0), state_epoch, start_offset)
        body = kind("g", [kind.InitializeStateData(more.pop("topic_id", self.topic_id), [row])])
        return _error(self._row(ApiKey.INITIALIZE_SHARE_GROUP_STATE, body))

    def read(self, leader_epoch: int | None = None) -> Any:
        """(state epoch, start offset, batches), or the error's name.  By default by the leader
        that has read or written last."""
        if leader_epoch is None:
            known = self.shard.states.entries.get(self.share_partition)
            leader_epoch = 0 if known is None else known.leader_epoch
        kind = m.ReadShareGroupStateRequest
        body = kind("g", [kind.ReadStateData(self.topic_id, [kind.PartitionData(0, leader_epoch)])])
        row = self._row(ApiKey.READ_SHARE_GROUP_STATE, body)
        if row.error_code:
            return _error(row)
        batches = [
            (one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
            for one in row.state_batches
        ]
        return row.state_epoch, row.start_offset, batches

    def write(
        self,
        *batches: tuple[int, int, int, int],
        start: int = -1,
        leader_epoch: int = 0,
        state_epoch: int = 1,
        complete: int = -1,
    ) -> str:
        kind = m.WriteShareGroupStateRequest
        row = kind.PartitionData(
            partition=0,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=complete,
            state_batches=[kind.StateBatch(*batch) for batch in batches],
        )
        body = kind("g", [kind.WriteStateData(self.topic_id, [row])])
        return _error(self._row(ApiKey.WRITE_SHARE_GROUP_STATE, body))

    def delete(self) -> str:
        kind = m.DeleteShareGroupStateRequest
        body = kind("g", [kind.DeleteStateData(self.topic_id, [kind.PartitionData(0)])])
        return _error(self._row(ApiKey.DELETE_SHARE_GROUP_STATE, body))

    def summary(self) -> tuple[int, int, int, int]:
        """(state epoch, leader epoch, start offset, records that need no further delivery)."""
        kind = m.ReadShareGroupStateSummaryRequest
        body = kind("g", [kind.ReadStateSummaryData(self.topic_id, [kind.PartitionData(0, -1)])])
        row = self._row(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, body)
        return row.state_epoch, row.leader_epoch, row.start_offset, row.delivery_complete_count

    def _row(self, api: ApiKey, body: Any) -> Any:
        answer = self.ask_and_wait(self.coordinator, api, VERSIONS[api][1], body)
        return answer.results[0].partitions[0]


def _error(row: Any) -> str:
    return ErrorCode(row.error_code).name


class Persisting:
    """One broker's persister, and what it has called back with."""

    def __init__(self, rig: ShareStateRig, broker: int = 1) -> None:
        self._rig = rig
        self._persister = rig.node(broker).persister
        self.answers: list[Any] = []

    def read(self, leader_epoch: int) -> None:
        def on_read(state: ReadState | ErrorCode, _now_ms: int) -> None:
            self.answers.append(state)

        rig = self._rig
        self._persister.read(rig.share_partition, leader_epoch, on_read, rig.now_ms)

    def write(
        self, *batches: tuple[int, int, int, int], start: int = -1, leader_epoch: int = 0
    ) -> None:
        rig = self._rig
        self._persister.write(
            rig.share_partition,
            1,
            leader_epoch,
            start,
            -1,
            [StateBatch(*batch) for batch in batches],
            lambda error, _now_ms: self.answers.append(error.name),
            rig.now_ms,
        )
