"""The rig for tests of the core: a cluster on either driver, and one vocabulary for it.

    rig = Simulated(min_insync_replicas=2)     # three brokers in virtual time, `orders`-0 on all
    acked = rig.produce(b"m1")                 # to the leader, acks=all
    rig.kill(1)
    rig.run_for(10_000)
    assert rig.values(2) == [b"m1"]            # what broker 2's log holds

The words are produce, fetch, ask, line; kill, start, pause, resume, cut, heal, move, elect and the
rest of what a driver does; wait.  On `LiveRig`, `MemoryRig` and `SettledRig` a word returns when
what it says has happened.  On `VirtualRig` and `Simulated` it returns at once, and the test lets
time pass.

Owns: the words.  Never: asserts what a test is about.

`rig/stage.py` adds a recorder and a ledger, `clients/story.py` and `clients/worlds.py` the
project's own clients, `drivers/test_transit.py` the wire of a client, step by step.

These replace a part that this rig runs for real, and stand apart:
- rig/one_broker.py: one broker; the test is the controller, and every other broker
  (broker/coordinator/group_broker.py adds a follower, which holds appends back);
- controller/harness.py: one controller; the test is the brokers;
- clients/producer/scripted.py: brokers whose answers the test writes;
- runtime/net.py: nodes that only keep their input;
- runs/stage.py: a record of a run, written by hand; no cluster.
And this one has a subject for which its words are of no use:
- property/storm.py: a seed draws the cluster, the clients and the faults.
"""

from __future__ import annotations

import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kcluster.clients.wire import Wire
from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID, Event, Note
from kcluster.handle.cluster import Cluster
from kcluster.handle.cluster_verbs import ClusterVerbs
from kcluster.handle.virtual import VirtualDriver
from kcluster.handle.world_cluster import WorldCluster
from kcluster.operations.status import ClusterStatus, PartitionStatus, cluster_status
from kcluster.operations.verbs import Verbs
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import read_records
from tests.rig.byte_worlds import MemorySocket
from tests.rig.lines import ByteLine, VirtualLine
from tests.rig.patience import PATIENCE_S
from tests.rig.requests import ACKS_ALL, batch, fetch_partition, fetch_request, produce_request

E = TypeVar("E", bound=Event)

TOPIC = "orders"
CONTROLLER = CONTROLLER_ID
SESSION_MS = 9_000
LAG_MS = 30_000
LIVE_LIMIT_MS, VIRTUAL_LIMIT_MS = 10_000, 120_000


class Answer:
    """The response to one request: `body` is None until it has come."""

    def __init__(self) -> None:
        self.body: Any = None
        self.disconnected = False
        self.deadline_ms: int | None = None

    def start(self, wire: Wire, now_ms: int) -> None:
        self.wire = wire

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        self.body = body

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        self.disconnected = True

    def on_tick(self, now_ms: int) -> None:
        raise AssertionError("it has no deadline")

    def has_come(self) -> bool:
        return self.body is not None

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
        """The response about the one partition produced to, or fetched."""
        topic = self.body.responses[0]
        return (getattr(topic, "partition_responses", None) or topic.partitions)[0]


class Rig(ABC):
    """The words that both drivers' rigs share.

    The driver gives `status()`, the verbs (kill, start, pause, cut, heal, ...), `now_ms`, `notes`.
    """

    now_ms: Any
    notes: Any
    status: Callable[[], ClusterStatus]
    verbs: Verbs

    # ------------------------------------------------------------------- what a driver adds

    @abstractmethod
    def ask(self, broker: int, api_key: ApiKey, version: int, body: Any) -> Answer:
        """Send one request on a connection of its own."""

    @abstractmethod
    def line(self, broker: int) -> Any:
        """A connection to a broker."""

    @abstractmethod
    def wait(
        self, condition: Callable[[], bool], what: str = "", limit_ms: int | None = None
    ) -> None:
        """Return when `condition()` holds; fail when the time is over."""

    @abstractmethod
    def finish(self) -> None:
        """Stop the cluster."""

    # ------------------------------------------------------------------------------ asking

    def produce(
        self,
        *values: bytes,
        to: int | None = None,
        acks: int = ACKS_ALL,
        timeout_ms: int = 30_000,
        version: int = 9,
        **header: Any,
    ) -> Answer:
        """Produce one batch to `to`, or to the leader."""
        records = batch(*values, **({"timestamp_ms": self.now_ms} | header))
        body = produce_request(TOPIC, 0, records, acks=acks, timeout_ms=timeout_ms)
        return self.ask(to or self.leader_id, ApiKey.PRODUCE, version, body)

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
        partition = fetch_partition(
            0,
            offset,
            current_leader_epoch=epoch,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=max_bytes,
        )
        body = fetch_request(TOPIC, partition, max_wait_ms=wait_ms, min_bytes=min_bytes)
        return self.ask(to or self.leader_id, ApiKey.FETCH, version, body)

    def delete_records(self, before: int) -> Answer:
        """Delete the records before an offset."""
        partition = m.DeleteRecordsRequest.DeleteRecordsPartition(0, before)
        topic = m.DeleteRecordsRequest.DeleteRecordsTopic(TOPIC, [partition])
        body = m.DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)
        return self.ask(self.leader_id, ApiKey.DELETE_RECORDS, 2, body)

    # ----------------------------------------------------------------------------- looking

    def partition(self, topic: str = TOPIC, partition: int = 0) -> PartitionStatus:
        """A partition as the controller sees it."""
        return next(
            status
            for status in self.status().partitions
            if (status.topic, status.partition) == (topic, partition)
        )

    @property
    def state(self) -> PartitionStatus:
        """`orders`-0 as the controller sees it."""
        return self.partition()

    @property
    def leader_id(self) -> int:
        """The leader of `orders`-0."""
        return self.leader_of(TOPIC)

    def leader_of(self, topic: str) -> int:
        """The leader of a topic's first partition."""
        leader = self.partition(topic).leader
        assert leader is not None, f"{topic}-0 is offline"
        return leader

    @property
    def isr(self) -> list[int]:
        return sorted(self.state.isr)

    def edges(self) -> set[tuple[int, int]]:
        """The links that are not as they were built."""
        graph = self.verbs.network.graph()
        nodes = [node for node in graph if node <= CONTROLLER_ID]
        whole = {(a, b) for a in nodes for b in nodes if a != b}
        shaped = {(a, b) for a, b, shapes in graph.edges(data="shapes") if shapes}
        return (whole - set(graph.edges)) | shaped

    def notes_of(self, wanted: type[Event]) -> list[Note]:
        """The notes about events of a type so far."""
        return [note for note in self.notes if isinstance(note.event, wanted)]

    def events_of(self, wanted: type[E]) -> list[E]:
        """The events of a type so far."""
        return [note.event for note in self.notes if isinstance(note.event, wanted)]

    # ----------------------------------------------------------------------------- waiting

    def wait_for_isr(self, *members: int) -> None:
        self.wait(lambda: self.isr == sorted(members), f"ISR {members}")


class ByteRig(Rig, ClusterVerbs):
    """A cluster that is asked in bytes."""

    @property
    def notes(self) -> list[Note]:
        return [entry.note for entry in self.events()]

    @property
    def now_ms(self) -> int:
        return self.driver.now_ms()

    def ask(self, broker: int, api_key: ApiKey, version: int, body: Any) -> Answer:
        """Send one request on a connection of its own; the answer has come."""
        line, answer = self.line(broker), Answer()
        try:
            line.send(api_key, version, body)
            answer.body = line.outcome()
        finally:
            line.close()
        assert not isinstance(answer.body, str), answer.body
        return answer

    def wait(
        self, condition: Callable[[], bool], what: str = "", limit_ms: int | None = None
    ) -> None:
        """Return when `condition()` holds, which the driver's thread looks at."""
        self.wait_until(condition, (limit_ms or LIVE_LIMIT_MS) / 1000, f"no {what}")


class LiveRig(ByteRig, Cluster):
    """A live cluster, asked over TCP."""

    def __init__(self, topology: Topology, seed: int = 1) -> None:
        Cluster.__init__(self, topology, seed=seed)
        self.open()

    def line(self, broker: int) -> ByteLine:
        return ByteLine(socket.create_connection(self.plan.addresses[broker], timeout=PATIENCE_S))

    def status(self) -> ClusterStatus:
        """The state at this moment, also for a condition in the driver's thread."""
        if threading.get_ident() == self.driver.thread_id:
            return cluster_status(self.plan, self.driver.dispatcher)
        return Cluster.status(self)

    def finish(self) -> None:
        """Stop the cluster; a bug of the simulator is an error."""
        self.__exit__(None, None, None)


class MemoryRig(ByteRig, WorldCluster):
    """A cluster in virtual time, asked in bytes."""

    def __init__(self, topology: Topology, seed: int = 1) -> None:
        WorldCluster.__init__(self, topology, seed)
        self.open()

    def line(self, broker: int) -> ByteLine:
        return ByteLine(MemorySocket(self.driver, self.plan.addresses[broker], 5))

    def status(self) -> ClusterStatus:
        """The state at this moment, also for a condition."""
        return cluster_status(self.plan, self.driver.dispatcher)

    def finish(self) -> None:
        """Nothing runs by itself in virtual time."""


class VirtualRig(Rig, VirtualDriver):
    """A cluster in virtual time, which passes when the test says so."""

    def __init__(self, topology: Topology, seed: int = 1) -> None:
        VirtualDriver.__init__(self, topology, seed)

    def ask(self, broker: int, api_key: ApiKey, version: int, body: Any) -> Answer:
        """Send one request on a connection of its own; the answer may still be to come."""
        answer = Answer()
        self.add_client(answer)
        answer.wire.send(broker, api_key, version, body)
        self.run_for(0)
        return answer

    def ask_and_wait(self, broker: int, api_key: ApiKey, version: int, body: Any) -> Any:
        """Send a request; its answer, after as much time as it takes."""
        answer = self.ask(broker, api_key, version, body)
        if answer.body is None:
            self.wait(answer.has_come, f"answer to {api_key.name}")
        return answer.body

    def assign_topic(self, name: str, assignment: list[list[int]]) -> Answer:
        """Create a topic; `assignment[i]`: the replicas of partition i."""
        wanted = [
            m.CreateTopicsRequest.CreatableReplicaAssignment(index, replicas)
            for index, replicas in enumerate(assignment)
        ]
        topic = m.CreateTopicsRequest.CreatableTopic(name, -1, -1, wanted)
        return self.ask(1, ApiKey.CREATE_TOPICS, 5, m.CreateTopicsRequest([topic], 5_000))

    def delete_orders(self, via: int) -> Answer:
        """Delete `orders` by asking a broker."""
        body = m.DeleteTopicsRequest(
            topics=[m.DeleteTopicsRequest.DeleteTopicState(name=TOPIC)], timeout_ms=5_000
        )
        return self.ask(via, ApiKey.DELETE_TOPICS, 6, body)

    def line(self, broker: int) -> VirtualLine:
        return VirtualLine(self, broker)

    def wait(
        self, condition: Callable[[], bool], what: str = "", limit_ms: int | None = None
    ) -> None:
        """Let time pass until `condition()` holds."""
        if not self.run_until_condition(condition, limit_ms or VIRTUAL_LIMIT_MS):
            raise AssertionError("\n".join([f"no {what}", *self.trace_lines(20)]))

    def finish(self) -> None:
        """Nothing runs by itself in virtual time."""

    def replica(self, broker: int) -> Replica:
        """A live broker's replica."""
        node = self.dispatcher.broker(broker)
        assert node is not None, f"broker {broker} is down"
        found = node.replicas.find(TOPIC, 0)
        assert isinstance(found, Replica), found
        return found

    def values(self, broker: int) -> list[bytes | None]:
        """The values in a broker's log, in order of offset; the broker may be down."""
        log = self.plan.disks[broker].logs[self.verbs.partition(TOPIC, 0).topic_id, 0]
        batches = log.read(log.log_start_offset, 1 << 30, log.log_end_offset, True)
        return [record.value for one in batches for record in read_records(one)]

    def cut_off(self, broker: int) -> None:
        """Cut a broker from the controller and all other brokers; clients still reach it."""
        for other in self.dispatcher.processes:
            if other != broker:
                self.cut(broker, other)


class SettledRig(VirtualRig):
    """In virtual time, with words that return as those of a live cluster do: when it has settled.

    For tests that run on both drivers.
    """

    waits = True

    def __init__(self, topology: Topology, seed: int = 1) -> None:
        super().__init__(topology, seed)
        self.open()
        self.wait(self.verbs.settled.all_serving, "start")

    def ask(self, broker: int, api_key: ApiKey, version: int, body: Any) -> Answer:
        answer = super().ask(broker, api_key, version, body)
        self.wait(answer.has_come, "answer")
        return answer

    def wait(
        self, condition: Callable[[], bool], what: str = "", limit_ms: int | None = None
    ) -> None:
        super().wait(condition, what, limit_ms or LIVE_LIMIT_MS)


class Simulated(VirtualRig):
    """A cluster with one topic, `orders`, of one partition on brokers 1, 2, 3; 1 leads."""

    def __init__(
        self,
        brokers: int | Sequence[Mapping[str, Any]] = 3,
        replicas: tuple[int, ...] = (1, 2, 3),
        seed: int = 1,
        latency_ms: float = 0,
        of_brokers: Mapping[str, Any] | None = None,
        features: Mapping[str, int] | None = None,
        era: str | None = None,
        **configs: Any,
    ) -> None:
        topic_config = {name.replace("_", "."): value for name, value in configs.items()}
        topology = Topology.of(
            brokers=brokers,
            topics={TOPIC: {"assignment": [list(replicas)], "config": topic_config}},
            config={"auto.leader.rebalance.enable": False, **(of_brokers or {})},
            features=features,
            era=era,
            network={"default_latency_ms": latency_ms},
        )
        super().__init__(topology, seed)
        self.open()
        self.run_for(1_000)
