"""Three brokers in virtual time, and the verbs of the replication tests.

t = Simulated(min_insync_replicas=2)
acked = t.produce(b"m1")          # to the leader, acks=all; acked.error once it is answered
t.kill(1); t.run_for(10_000)
assert t.values(2) == [b"m1"]     # what broker 2's log holds
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from kcluster.broker.node import BrokerNode
from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID, Event, Note
from kcluster.drivers.virtual import VirtualDriver
from kcluster.drivers.wires.virtual import ClientWire
from kcluster.operations.status import PartitionStatus
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import Record, build_batch, read_records

E = TypeVar("E", bound=Event)

TOPIC = "orders"
ACKS_ALL = -1
CONTROLLER = CONTROLLER_ID
SESSION_MS = 9_000
LAG_MS = 30_000


class Answer:
    """What one request came to: `body` is None until it is answered."""

    def __init__(self) -> None:
        self.body: Any = None
        self.disconnected = False
        self.deadline_ms = None

    def start(self, wire: ClientWire, now_ms: int) -> None:
        self.wire = wire

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        self.body = body

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        self.disconnected = True

    def on_tick(self, now_ms: int) -> None:
        raise AssertionError("it has no deadline")

    @property
    def error(self) -> str | None:
        """The name of the error of the one partition asked for; None while unanswered."""
        if self.body is None:
            return None
        topics = self.body.responses if hasattr(self.body, "responses") else self.body.topics
        if not topics:
            return ErrorCode(getattr(self.body, "error_code", 0)).name
        partition = getattr(topics[0], "partition_responses", None) or topics[0].partitions
        return ErrorCode(partition[0].error_code).name

    @property
    def partition(self) -> Any:
        """The fetched partition."""
        return self.body.responses[0].partitions[0]


class Simulated(VirtualDriver):
    """A cluster with one topic, `orders`, of one partition on brokers 1, 2, 3; 1 leads."""

    def __init__(
        self,
        brokers: int = 3,
        replicas: tuple[int, ...] = (1, 2, 3),
        seed: int = 1,
        latency_ms: float = 0,
        of_brokers: Mapping[str, Any] | None = None,
        **configs: Any,
    ) -> None:
        topic_config = {name.replace("_", "."): value for name, value in configs.items()}
        topology = Topology.of(
            brokers=brokers,
            topics={TOPIC: {"assignment": [list(replicas)], "config": topic_config}},
            config={"auto.leader.rebalance.enable": False, **(of_brokers or {})},
            network={"default_latency_ms": latency_ms},
        )
        super().__init__(topology, seed)
        self.open()
        self.run_for(1_000)

    # ------------------------------------------------------------------------- asking

    def ask(self, broker: int, api_key: ApiKey, version: int, body: Any) -> Answer:
        """Send one request on a connection of its own."""
        answer = Answer()
        self.add_client(answer)
        answer.wire.send(broker, api_key, version, body)
        self.run_for(0)
        return answer

    def produce(
        self,
        *values: bytes,
        to: int | None = None,
        acks: int = ACKS_ALL,
        timeout_ms: int = 30_000,
        **batch: Any,
    ) -> Answer:
        """Produce one batch to `to`, or to the leader."""
        records = [Record(i, self.now_ms, None, value, ()) for i, value in enumerate(values)]
        data = m.ProduceRequest.PartitionProduceData(0, memoryview(build_batch(records, **batch)))
        body = m.ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[m.ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        return self.ask(to or self.leader, ApiKey.PRODUCE, 9, body)

    def fetch(
        self,
        offset: int,
        to: int | None = None,
        epoch: int = -1,
        version: int = 12,
        wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        last_epoch: int = -1,
    ) -> Answer:
        """Fetch as a consumer."""
        partition = m.FetchRequest.FetchPartition(
            partition=0,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=max_bytes,
        )
        body = m.FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            topics=[m.FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])],
        )
        return self.ask(to or self.leader, ApiKey.FETCH, version, body)

    def ask_produce_v10_to(self, broker: int) -> Any:
        """The partition's answer to a Produce that understands hints (KIP-951)."""
        data = m.ProduceRequest.PartitionProduceData(
            0, memoryview(build_batch([Record(0, 0, None, b"v", ())]))
        )
        body = m.ProduceRequest(
            acks=1,
            timeout_ms=100,
            topic_data=[m.ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        answer = self.ask(broker, ApiKey.PRODUCE, 10, body)
        return answer.body.responses[0].partition_responses[0]

    def create_topic(self, name: str, assignment: list[list[int]]) -> Answer:
        """Create a topic; `assignment[i]`: the replicas of partition i."""
        wanted = [
            m.CreateTopicsRequest.CreatableReplicaAssignment(index, replicas)
            for index, replicas in enumerate(assignment)
        ]
        topic = m.CreateTopicsRequest.CreatableTopic(name, -1, -1, wanted)
        return self.ask(1, ApiKey.CREATE_TOPICS, 5, m.CreateTopicsRequest([topic], 5_000))

    def delete_records(self, before: int) -> Answer:
        """Delete what lies before an offset."""
        partition = m.DeleteRecordsRequest.DeleteRecordsPartition(0, before)
        topic = m.DeleteRecordsRequest.DeleteRecordsTopic(TOPIC, [partition])
        body = m.DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)
        return self.ask(self.leader, ApiKey.DELETE_RECORDS, 2, body)

    def delete_topic(self, via: int) -> Answer:
        """Delete the topic by asking a broker."""
        body = m.DeleteTopicsRequest(
            topics=[m.DeleteTopicsRequest.DeleteTopicState(name=TOPIC)], timeout_ms=5_000
        )
        return self.ask(via, ApiKey.DELETE_TOPICS, 6, body)

    # ------------------------------------------------------------------------ looking

    @property
    def state(self) -> PartitionStatus:
        """The partition as the controller sees it."""
        return next(p for p in self.status().partitions if p.topic == TOPIC)

    @property
    def leader(self) -> int:
        leader = self.state.leader
        assert leader is not None, "the partition is offline"
        return leader

    @property
    def isr(self) -> list[int]:
        return sorted(self.state.isr)

    def replica(self, broker: int) -> Replica:
        """A live broker's replica."""
        node = self.dispatcher.processes[broker].node
        assert isinstance(node, BrokerNode), f"broker {broker} is down"
        found = node.replicas.find(TOPIC, 0)
        assert isinstance(found, Replica), found
        return found

    def values(self, broker: int) -> list[bytes | None]:
        """The values in a broker's log, in order of offset; the broker may be down."""
        log = self.plan.disks[broker].logs[self.verbs.partition(TOPIC, 0).topic_id, 0]
        batches = log.read(log.log_start_offset, 1 << 30, log.log_end_offset, True)
        return [record.value for batch in batches for record in read_records(batch)]

    def notes_of(self, wanted: type[Event]) -> list[Note]:
        """The notes about events of a type so far."""
        return [note for note in self.notes if isinstance(note.event, wanted)]

    def events(self, wanted: type[E]) -> list[E]:
        """The events of a type so far."""
        return [note.event for note in self.notes if isinstance(note.event, wanted)]

    # ------------------------------------------------------------------------- doing

    def cut_off(self, broker: int) -> None:
        """Cut a broker from the controller and all other brokers; clients still reach it."""
        for other in self.dispatcher.processes:
            if other != broker:
                self.cut(broker, other)

    def until(self, condition: Any, limit_ms: int = 120_000) -> None:
        """Run until `condition()` holds."""
        assert self.run_until_condition(condition, limit_ms), "\n".join(self.trace_lines(20))
