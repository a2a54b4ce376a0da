"""Three brokers in virtual time, and a transactional producer whose requests the test sends.

    rig = TransactionRig()
    producer = rig.producer("t")           # V1; rig.producer("t", v2=True)
    producer.init(); producer.add(); producer.write(b"m1"); producer.end(commit=True)
    assert rig.read() == [b"m1"]           # what a read_committed consumer sees

Owns: those words.  Never: asserts what a test is about.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kcluster.broker.coordinator.interface import ignore_outcome
from kcluster.broker.node import BrokerNode
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kcluster.protocol.records.records import parse_batches, read_records
from tests.rig.cluster import TOPIC, Simulated
from tests.rig.requests import batch, fetch_partition, fetch_request, produce_request

GROUP = "g"


class TransactionRig(Simulated):
    """Of the brokers `ids` the first leads `orders`, the second coordinates all transactions, the
    third all groups."""

    def __init__(self, ids: tuple[int, int, int] = (1, 2, 3), **more: Any) -> None:
        super().__init__(**{"brokers": [{"id": each} for each in ids], "replicas": ids, **more})
        one, two, three = ids
        self.assign_topic(TRANSACTION_STATE_TOPIC, [[two, one, three]])
        self.assign_topic(GROUP_METADATA_TOPIC, [[three, one, two]])
        self.run_for(1_000)

    @property
    def coordinator(self) -> int:
        """The broker that coordinates transactions."""
        return self.leader_of(TRANSACTION_STATE_TOPIC)

    @property
    def topic_id(self) -> bytes:
        """Of `orders`."""
        node = self.dispatcher.processes[self.coordinator].node
        assert isinstance(node, BrokerNode)
        return node.image.topics[TOPIC].topic_id

    @property
    def group_coordinator(self) -> int:
        return self.leader_of(GROUP_METADATA_TOPIC)

    def producer(self, transactional_id: str = "t", v2: bool = False) -> RawProducer:
        return RawProducer(self, transactional_id, v2)

    def fetched(self, isolation: int = 1, offset: int = 0) -> Any:
        """The one partition of a Fetch response."""
        body = fetch_request(TOPIC, fetch_partition(0, offset), max_wait_ms=0)
        body.isolation_level = isolation
        return self.ask_and_wait(self.leader_id, ApiKey.FETCH, 12, body).responses[0].partitions[0]

    def read(self) -> list[bytes | None]:
        """What a read_committed consumer sees: committed records below the last stable offset."""
        data = self.fetched()
        begun = sorted(data.aborted_transactions, key=lambda one: -one.first_offset)
        aborted = set()
        values = []
        for one in _batches(data.records):
            while begun and begun[-1].first_offset <= one.base_offset:
                aborted.add(begun.pop().producer_id)
            is_aborted = one.is_transactional and one.producer_id in aborted
            if one.is_control and is_aborted:
                aborted.remove(one.producer_id)
            elif not one.is_control and not is_aborted:
                values += [record.value for record in read_records(one)]
        return values

    def end_all_transactions(self) -> None:
        """Abort what is open in `orders`, also what no coordinator knows of."""
        body = m.DescribeProducersRequest(
            topics=[m.DescribeProducersRequest.TopicRequest(TOPIC, [0])]
        )
        answer = self.ask_and_wait(self.leader_id, ApiKey.DESCRIBE_PRODUCERS, 0, body)
        for one in answer.topics[0].partitions[0].active_producers:
            if one.current_txn_start_offset < 0:
                continue
            marker = m.WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                transaction_result=False,
                topics=[m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(TOPIC, [0])],
                coordinator_epoch=one.coordinator_epoch,
            )
            markers = m.WriteTxnMarkersRequest(markers=[marker])
            self.ask_and_wait(self.leader_id, ApiKey.WRITE_TXN_MARKERS, 1, markers)

    def age(self, producer: RawProducer, epoch: int) -> None:
        """Make `epoch` the producer's, as after as many transactions."""
        node = self.dispatcher.processes[self.coordinator].node
        assert isinstance(node, BrokerNode)
        (shard,) = node.transactions.shards.values()
        known = shard.transactions[producer.transactional_id]
        aged = replace(known, producer_epoch=epoch)
        record = shard.record_of(producer.transactional_id, aged)
        shard.append([record], ignore_outcome, self.now_ms)
        producer.epoch = epoch
        self.wait(lambda: not shard.pending)

    def described(self, transactional_id: str = "t") -> Any:
        body = m.DescribeTransactionsRequest(transactional_ids=[transactional_id])
        answer = self.ask_and_wait(self.coordinator, ApiKey.DESCRIBE_TRANSACTIONS, 0, body)
        return answer.transaction_states[0]

    def state_of(self, transactional_id: str = "t") -> str:
        """The transaction's state, or the error."""
        found = self.described(transactional_id)
        return found.transaction_state or ErrorCode(found.error_code).name

    def committed_offset(self, require_stable: bool = True) -> int | str:
        """The group's offset of `orders`-0, or the error."""
        topic = m.OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
        body = m.OffsetFetchRequest(groups=[group], require_stable=require_stable)
        answer = self.ask_and_wait(self.group_coordinator, ApiKey.OFFSET_FETCH, 8, body).groups[0]
        partition = answer.topics[0].partitions[0]
        if partition.error_code:
            return ErrorCode(partition.error_code).name
        offset: int = partition.committed_offset
        return offset


def _batches(records: Any) -> Any:
    return records if isinstance(records, list) else parse_batches(records)


class RawProducer:
    """Its words return the names of errors."""

    def __init__(self, rig: TransactionRig, transactional_id: str, v2: bool) -> None:
        self.rig = rig
        self.transactional_id = transactional_id
        self.v2 = v2
        self.producer_id = self.epoch = -1
        self.sequence = 0
        self.timeout_ms = 60_000

    def as_of(
        self, epoch: int | None = None, producer_id: int | None = None, sequence: int = 0
    ) -> RawProducer:
        """The same producer with another epoch, id or sequence; it changes by itself."""
        other = RawProducer(self.rig, self.transactional_id, self.v2)
        other.producer_id = self.producer_id if producer_id is None else producer_id
        other.epoch = self.epoch if epoch is None else epoch
        other.sequence = sequence
        return other

    def init(self, keep: bool = False) -> str:
        """InitProducerId, repeated while transactions are being ended; `keep`: as KIP-360."""
        for _ in range(100):
            body = m.InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self.timeout_ms,
                producer_id=self.producer_id if keep else -1,
                producer_epoch=self.epoch if keep else -1,
            )
            answer = self.rig.ask_and_wait(self.rig.coordinator, ApiKey.INIT_PRODUCER_ID, 4, body)
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
            self.rig.run_for(20)
        if answer.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequence = 0
        return ErrorCode(answer.error_code).name

    def add(self, topic: str = TOPIC, version: int = 3) -> str:
        """AddPartitionsToTxn."""
        body = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(topic, [0])],
        )
        answer = self.rig.ask_and_wait(
            self.rig.coordinator, ApiKey.ADD_PARTITIONS_TO_TXN, version, body
        )
        result = answer.results_by_topic_v3_and_below[0].results_by_partition[0]
        return ErrorCode(result.partition_error_code).name

    def write(self, *values: bytes, version: int | None = None) -> str:
        """Produce one transactional batch to `orders`-0."""
        records = batch(
            *values,
            timestamp_ms=self.rig.now_ms,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        body = produce_request(TOPIC, 0, records)
        body.transactional_id = self.transactional_id
        version = version or (12 if self.v2 else 9)
        answer = self.rig.ask_and_wait(self.rig.leader_id, ApiKey.PRODUCE, version, body)
        error = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        if error is ErrorCode.NONE:
            self.sequence += len(values)
        return error.name

    def end(self, commit: bool = True, version: int | None = None) -> str:
        """EndTxn; its markers may still be on their way."""
        body = self.end_request(commit)
        version = version or (5 if self.v2 else 3)
        answer = self.rig.ask_and_wait(self.rig.coordinator, ApiKey.END_TXN, version, body)
        self.rig.run_for(100)
        if answer.error_code == ErrorCode.NONE and self.v2:
            if (self.producer_id, self.epoch) != (answer.producer_id, answer.producer_epoch):
                self.sequence = 0
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return ErrorCode(answer.error_code).name

    def end_request(self, commit: bool) -> Any:
        return m.EndTxnRequest(self.transactional_id, self.producer_id, self.epoch, commit)

    def add_offsets(self) -> str:
        body = m.AddOffsetsToTxnRequest(self.transactional_id, self.producer_id, self.epoch, GROUP)
        answer = self.rig.ask_and_wait(self.rig.coordinator, ApiKey.ADD_OFFSETS_TO_TXN, 3, body)
        return ErrorCode(answer.error_code).name

    def commit_offset(
        self,
        offset: int,
        version: int | None = None,
        generation_id: int = -1,
        topic_id: bytes | None = None,
        **member: Any,
    ) -> str:
        """TxnOffsetCommit of `orders`-0."""
        body = self.offset_request(offset, generation_id, topic_id, **member)
        version = version or (6 if self.v2 else 3)
        broker = self.rig.group_coordinator
        answer = self.rig.ask_and_wait(broker, ApiKey.TXN_OFFSET_COMMIT, version, body)
        return ErrorCode(answer.topics[0].partitions[0].error_code).name

    def offset_request(
        self, offset: int, generation_id: int = -1, topic_id: bytes | None = None, **member: Any
    ) -> Any:
        partition = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(0, offset, -1, None)
        Topic = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        return m.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=GROUP,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id_or_member_epoch=generation_id,
            **{"member_id": "", "group_instance_id": None, **member},
            topics=[Topic(TOPIC, topic_id or self.rig.topic_id, [partition])],
        )
