"""The rig in virtual time with the project's own producers and consumers, and one ledger.

Owns: Story.  Never: asserts what a test is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kcluster.clients.consumer.consumer import Consumer
from kcluster.clients.consumer.settings import ConsumerPlan, ConsumerSettings
from kcluster.clients.ledger import Ledger, ReadRecord
from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.settings import ProducerPlan, ProducerSettings
from kcluster.config.topology.model import Topology
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.rig.cluster import TOPIC, VirtualRig


class Story:
    """Times are in ms since the cluster became ready."""

    def __init__(
        self,
        seed: int = 1,
        brokers: Any = 3,
        config: Any = None,
        topology: Any = None,
        **topic: Any,
    ) -> None:
        spec = {"partitions": 1, "replication_factor": 3} | topic
        settings: dict[str, Any] = {"group.initial.rebalance.delay.ms": 0} | (config or {})
        made = Topology.of(
            brokers=brokers, topics={TOPIC: spec}, config=settings, **(topology or {})
        )
        self.driver = VirtualRig(made, seed)
        self.driver.open()
        assert self.driver.run_until_condition(self.driver.verbs.settled.all_serving, 60_000)
        self.began_ms: int = self.driver.now_ms
        self.ledger = Ledger()
        self.client_ids: dict[str, int] = {}

    # ------------------------------------------------------------------------------ clients

    def producer(self, name: str = "p", settings: Any = None, **plan: Any) -> Producer:
        values: dict[str, Any] = {"topics": (TOPIC,), "rate_per_s": 100.0} | plan
        producer = Producer(
            name, self.ledger, ProducerPlan(**values), ProducerSettings(**(settings or {}))
        )
        self._add(name, producer)
        return producer

    def consumer(
        self, name: str = "c", *, group: str = "g", plan: Any = None, **settings: Any
    ) -> Consumer:
        """`plan`: changes of a plan that subscribes to TOPIC, or assigns partitions."""
        configs = {"group_id": group, "auto_offset_reset": "earliest"} | settings
        values = plan or {}
        if "partitions" not in values:
            values = {"topics": (TOPIC,)} | values
        consumer = Consumer(name, self.ledger, ConsumerPlan(**values), ConsumerSettings(**configs))
        self._add(name, consumer)
        return consumer

    def _add(self, name: str, client: Any) -> None:
        self.client_ids[name] = self.driver.add_client(client).client_id

    def ask(self, broker_id: int, api_key: ApiKey, version: int, body: Any) -> Any:
        answer = self.driver.ask(broker_id, api_key, version, body)
        assert self.until(lambda: answer.body is not None)
        return answer.body

    # -------------------------------------------------------------------------------- time

    @property
    def now_ms(self) -> int:
        return int(self.driver.now_ms) - self.began_ms

    def until(self, condition: Callable[[], bool], limit_ms: int = 60_000) -> bool:
        return self.driver.run_until_condition(condition, limit_ms)

    def run(self, duration_ms: int) -> None:
        self.driver.run_for(duration_ms)

    # ------------------------------------------------------------------------------ the log

    @property
    def leader(self) -> int:
        found: int = self.driver.verbs.leader(TOPIC, 0)
        return found

    def coordinator(self, group: str = "g") -> int:
        body = m.FindCoordinatorRequest(coordinator_keys=[group])
        (coordinator,) = self.ask(self.leader, ApiKey.FIND_COORDINATOR, 4, body).coordinators
        return int(coordinator.node_id)

    def delete_before(self, offset: int) -> None:
        """DeleteRecords: move the log start offset to `offset`."""
        answer = self.driver.delete_records(offset)
        assert self.until(lambda: answer.error == "NONE")

    # ---------------------------------------------------------------------------- the ledger

    def reads(self, name: str | None = None) -> list[ReadRecord]:
        return [read for read in self.ledger.reads if name in (None, read.consumer)]

    def offsets(self, name: str | None = None, partition: int = 0) -> list[int]:
        return [read.offset for read in self.reads(name) if read.partition == (TOPIC, partition)]

    def errors(self, name: str) -> list[tuple[str, str]]:
        """(API, error) of a client, each once, in order."""
        errors = [(error.api, error.error) for error in self.ledger.errors if error.client == name]
        return list(dict.fromkeys(errors))

    def committed(self, is_commit: bool = True) -> list[int]:
        """Offsets of orders-0 that were committed, or fetched."""
        return [
            one.offset
            for one in self.ledger.commits
            if one.partition == (TOPIC, 0) and one.is_commit is is_commit
        ]
