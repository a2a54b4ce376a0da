"""One seed, one storm: a cluster, clients, actions at random times, then repair, then the verdict.

python -m tests.property.storm 17             one seed, with everything known of a failure
python -m tests.property.storm 1-5000         many; failing seeds are printed at once
python -m tests.property.storm 17 --trace     with every note
"""

from __future__ import annotations

import sys
from random import Random
from typing import Any, ClassVar

from msgspec import Struct

from kcluster.checks.anomalies import Anomaly
from kcluster.checks.verdict import LATE_VIRTUAL_MS, Verdict, judge
from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.deaths import ProcessState
from kcluster.events.partitions import LeaderChange
from kcluster.evidence.recorder import Recorder
from kcluster.handle.virtual import VirtualDriver
from kcluster.operations.errors import ClusterError
from kcluster.partition.log.log import Log
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.records import read_records
from tests.property.clients import Asker, Consumer, Producer

TOPIC = "orders"
PARTITIONS = 2
HEAL_LIMIT_MS = 120_000
TOPIC_RESOURCE = 2
SET = 0
OF_LOSS = (
    "committed-lost", "committed-differs", "truncated-committed", "ack-before-commit",
    "read-uncommitted", "watermark-above-isr",
)  # fmt: skip
"""Violations that a loss of records brings with it."""
SEEN_OF_LOSS = ("lost-write", "inconsistent-offsets", "poll-skip", "unseen")
"""Anomalies that it brings with it."""
BY_CLIENTS = ("acks=0", "acks=1", "enable.idempotence=false")
"""What clients ask for themselves."""


class Plan(Struct, frozen=True):
    """The cluster and the storm that a seed draws."""

    brokers: int
    replication_factor: int
    min_isr: int
    latency_ms: int
    unclean: bool
    elr: bool
    flush_messages: int | None
    actions: int
    ways_to_die: tuple[str, ...]

    @classmethod
    def drawn(cls, rng: Random) -> Plan:
        brokers = rng.choice((3, 3, 4, 5))
        factor = rng.choice((2, 3, 3))
        return cls(
            brokers,
            factor,
            rng.randint(1, min(2, factor)),
            rng.choice((0, 0, 1, 3, 10, 50)),
            unclean=rng.random() < 0.15,
            elr=rng.random() < 0.85,
            flush_messages=rng.choice((None, None, 1, 5)),
            actions=rng.choice((6, 12, 24)),
            ways_to_die=rng.choice(
                (
                    ("kill",),
                    ("kill", "clean"),
                    ("kill", "clean", "power"),
                    ("kill", "clean", "power", "wipe"),
                )
            ),
        )

    @property
    def may_lose_quietly(self) -> bool:
        """Without ELR the last member of an ISR leads again, whatever happened to its disk."""
        return not self.elr and bool({"power", "wipe"} & set(self.ways_to_die))


class Storm:
    """One run; `problems` are the lines of its verdict, empty if all is well."""

    REPLAYED_BY: ClassVar[str] = "tests.property.storm"
    """The module to run; as a script this one is `__main__`."""

    def __init__(self, seed: int, plan: Plan | None = None) -> None:
        self.seed = seed
        self.rng = Random(f"storm {seed}")
        self.plan = plan or Plan.drawn(self.rng)
        self.ledger = Ledger()
        self.problems: list[str] = []
        self.driver = self._build()
        self.watch = Recorder(self.driver.dispatcher, self.driver.plan)
        self.deleted_before = dict.fromkeys(range(PARTITIONS), 0)
        self.heal_limit_ms = HEAL_LIMIT_MS
        self.verdict: Verdict | None = None

    def _build(self) -> VirtualDriver:
        plan = self.plan
        config: dict[str, Any] = {"min.insync.replicas": plan.min_isr}
        if plan.unclean:
            config["unclean.leader.election.enable"] = True
        if plan.flush_messages:
            config["flush.messages"] = plan.flush_messages
        broker_config: dict[str, Any] = {
            "broker.session.timeout.ms": 3_000,
            "broker.heartbeat.interval.ms": 700,
            "replica.lag.time.max.ms": 4_000,
            "replica.high.watermark.checkpoint.interval.ms": 1_000,
            "leader.imbalance.check.interval.seconds": 5,
            "eligible.leader.replicas.version": int(plan.elr),
        }
        topology = Topology.of(
            brokers=[{"id": 1 + i, "port": 9_092 + i} for i in range(plan.brokers)],
            topics={
                TOPIC: {
                    "partitions": PARTITIONS,
                    "replication_factor": plan.replication_factor,
                    "config": config,
                }
            },
            config=broker_config,
            network={"default_latency_ms": plan.latency_ms},
        )
        driver = VirtualDriver(topology, self.seed)
        return driver

    # ------------------------------------------------------------------------------ running

    def run(self) -> list[str]:
        """Run everything; returns `problems`."""
        driver = self.driver
        driver.open()
        driver.run_for(2_000)
        self._add_clients()
        for _ in range(self.plan.actions):
            driver.run_for(self.rng.choice((1, 1, 20, 100, 500, 1_000, 3_000)))
            try:
                self._act()
            except ClusterError:
                continue  # not possible just now
        self._calm()
        self._judge()
        return self.problems

    def _add_clients(self) -> None:
        driver, plan = self.driver, self.plan
        self.producers = []
        kinds = [(-1, 1000), (-1, 1001), (-1, -1), (self.rng.choice((0, 1)), -1)]
        for number, (acks, producer_id) in enumerate(kinds):
            name = f"{'i' if producer_id >= 0 else 'p'}{number}"
            every_ms = self.rng.choice((100, 300, 900))
            self.producers.append(
                Producer(
                    self.ledger,
                    name,
                    TOPIC,
                    number % PARTITIONS,
                    acks,
                    producer_id,
                    every_ms,
                    plan.brokers,
                )
            )
        self.consumers = [
            Consumer(self.ledger, f"c{number}", TOPIC, number % PARTITIONS, number >= PARTITIONS)
            for number in range(2 * PARTITIONS)
        ]
        clients: list[Producer | Consumer] = [*self.producers, *self.consumers]
        self.client_ids = {client.name: driver.add_client(client).client_id for client in clients}
        self.operator = Asker()
        driver.add_client(self.operator)

    def _act(self) -> None:
        rng, driver = self.rng, self.driver
        broker = 1 + rng.randrange(self.plan.brokers)
        partition = rng.randrange(PARTITIONS)
        match rng.choice(
            (
                "kill",
                "kill",
                "start",
                "start",
                "start",
                "pause",
                "resume",
                "resume",
                "cut",
                "cut",
                "heal",
                "move",
                "move",
                "elect",
                "delete",
                "min_isr",
                "latency",
                "restart",
            )
        ):
            case "kill":
                driver.kill(broker, rng.choice(self.plan.ways_to_die))
            case "restart":
                driver.kill(broker, rng.choice([w for w in self.plan.ways_to_die if w != "clean"]))
                driver.start(broker)
            case "start":
                for other in range(1, self.plan.brokers + 1):
                    if driver.dispatcher.processes[other].state is ProcessState.DOWN:
                        driver.start(other)
                        break
            case "pause":
                driver.pause(broker)
            case "resume":
                driver.resume(broker)
            case "cut":
                others = [*range(1, self.plan.brokers + 1), CONTROLLER_ID]
                others += list(driver.clients)
                others.remove(broker)
                other = rng.choice(others)
                a, b = (broker, other) if rng.random() < 0.5 else (other, broker)
                driver.cut(a, b, one_way=rng.random() < 0.5)
            case "heal":
                driver.heal()
            case "move":
                driver.move(TOPIC, partition, broker)
            case "elect":
                driver.verbs.elect(TOPIC, partition, False, lambda _: None)
            case "delete":
                self._delete_records(partition)
            case "min_isr":
                self._set_min_isr(broker)
            case "latency":
                latency = rng.choice((0, 1, 5, 20, 50, 300))
                for other in range(1, self.plan.brokers + 1):
                    if other != broker:
                        driver.plan.fabric.set_latency(broker, other, latency, one_way=True)

    def _delete_records(self, partition: int) -> None:
        registration = self.driver.verbs.partition(TOPIC, partition)
        observed = self.watch.invariants.partitions.get((registration.topic_id, partition))
        if observed is None or registration.leader < 0:
            return
        before = observed.committed.end * self.rng.randrange(1, 5) // 5
        self.deleted_before[partition] = max(self.deleted_before[partition], before)
        wanted = m.DeleteRecordsRequest.DeleteRecordsPartition(partition, before)
        topic = m.DeleteRecordsRequest.DeleteRecordsTopic(TOPIC, [wanted])
        body = m.DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)
        self.operator.ask(registration.leader, ApiKey.DELETE_RECORDS, 2, body)

    def _set_min_isr(self, broker: int) -> None:
        value = str(self.rng.randint(1, 2))
        config = m.IncrementalAlterConfigsRequest.AlterableConfig("min.insync.replicas", SET, value)
        resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
            TOPIC_RESOURCE, TOPIC, [config]
        )
        body = m.IncrementalAlterConfigsRequest(resources=[resource])
        self.operator.ask(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)

    # --------------------------------------------------------------------------- afterwards

    def _calm(self) -> None:
        driver = self.driver
        for process in driver.dispatcher.processes.values():
            if process.state is ProcessState.PAUSED:
                driver.resume(process.node_id)
        driver.heal()
        driver.run_for(5_000)
        self._look_for_dead_leaders()
        for process in driver.dispatcher.processes.values():
            if process.state is ProcessState.DOWN:
                driver.start(process.node_id)
        for producer in self.producers:
            producer.close()
        driver.run_for(20_000)
        for registration, _ in self._replicas():
            eligible = {*registration.isr, *registration.elr} & {*registration.replicas}
            if registration.leader < 0 and not eligible:
                # Only an operator who accepts the loss can help (KIP-966).
                driver.verbs.elect(TOPIC, registration.partition, True, lambda _: None)
        if not driver.run_until_condition(self._is_healed, self.heal_limit_ms):
            self._problem("does-not-heal", self._state())
        final = self.driver.now_ms
        for producer in self.producers:
            producer._make(driver.now_ms)
            producer._work(driver.now_ms)
            producer.deadline_ms = producer.deadline_ms or driver.now_ms
        driver.run_until_condition(lambda: not any(p.pending for p in self.producers), 20_000)
        for consumer in self.consumers:
            consumer.close()
        driver.run_for(6_000)
        for producer in self.producers:
            if producer.pending:
                self._problem("cannot-write", f"{producer.name} since {final} ms")
        if not self._is_healed():
            self._problem("does-not-settle", self._state())
        self.watch.check_last_step()

    def _look_for_dead_leaders(self) -> None:
        """Sessions have ended by now: no broker that is down may still be a leader."""
        for registration, _ in self._replicas():
            process = self.driver.dispatcher.processes.get(registration.leader)
            if process is not None and process.state is ProcessState.DOWN:
                self._problem("dead-leader", f"{TOPIC}-{registration.partition}: {registration}")

    def _replicas(self) -> list[tuple[Any, dict[int, Any]]]:
        """(registration, replicas by broker) of each partition."""
        image = self.driver.verbs.settled.image
        found = []
        for registration in image.topics[TOPIC].partitions:
            replicas = {}
            for broker in registration.replicas:
                node: Any = self.driver.dispatcher.processes[broker].node
                if node is not None:
                    key = (registration.topic_id, registration.partition)
                    replica = node.replicas.get(*key)
                    if replica is not None:
                        replicas[broker] = replica
            found.append((registration, replicas))
        return found

    def _is_healed(self) -> bool:
        for registration, replicas in self._replicas():
            if len(registration.isr) < len(registration.replicas) or registration.leader < 0:
                return False
            if len(replicas) < len(registration.replicas):
                return False
            ends = {(r.log.log_end_offset, r.high_watermark) for r in replicas.values()}
            if len(ends) > 1 or any(end != watermark for end, watermark in ends):
                return False
        return True

    def _state(self) -> str:
        return "; ".join(
            f"{registration} {list(replicas.values())}"
            for registration, replicas in self._replicas()
        )

    def _problem(self, name: str, text: str) -> None:
        self.problems.append(f"{name}: {text}")

    def _judge(self) -> None:
        excused = self.plan.may_lose_quietly
        verdict = self.verdict = judge(
            self.watch, self.ledger, clients=self.client_ids, late_ms=LATE_VIRTUAL_MS
        )
        self.problems += [
            str(found) for found in verdict.violations if not (excused and found.name in OF_LOSS)
        ]
        for registration, _ in self._replicas():
            partition = registration.partition
            key = (registration.topic_id, partition)
            logs = [self.driver.plan.disks[broker].logs[key] for broker in registration.replicas]
            contents = [_contents(log) for log in logs]
            start = max(log.log_start_offset for log in logs)
            retained = [[entry for entry in content if entry[0] >= start] for content in contents]
            if any(entries != retained[0] for entries in retained[1:]):
                self._problem("replicas-differ", f"{TOPIC}-{partition}: {logs}")
            if start > self.deleted_before[partition]:
                self._problem("start-leapt", f"{start} > {self.deleted_before[partition]}: {logs}")
        for found in verdict.anomalies:
            if found.allowed in BY_CLIENTS or self._may_lose(found):
                continue
            self.problems += [str(found), *(f"    {link.text}" for link in found.chain)]
        for producer in self.producers:
            if producer.epoch_bumps and not (excused or self._was_unclean(producer.partition)):
                at_ms, text = producer.epoch_bumps[0]
                self._problem("sequence-lost", f"{producer.name} at {at_ms} ms: {text}")

    def _may_lose(self, found: Anomaly) -> bool:
        """Whether the settings allow losses, and this violation is one."""
        lossy = self.plan.may_lose_quietly or self._was_unclean(found.partition[1])
        return lossy and found.name in SEEN_OF_LOSS

    def _was_unclean(self, partition: int) -> bool:
        return any(
            isinstance(note.event, LeaderChange)
            and note.event.topic == TOPIC
            and note.event.partition == partition
            and not note.event.clean
            for note in self.driver.notes
        )

    def report(self) -> str:
        """Everything that helps to understand a failure."""
        lines = self.driver.trace_lines(40)
        return "\n".join(
            (
                *lines,
                "",
                f"seed {self.seed}: {self.plan}",
                *self.problems[:12],
                f"replay: python -m {self.REPLAYED_BY} {self.seed}",
            )
        )


def _contents(log: Log) -> list[tuple[int, bytes | None]]:
    return [
        (record.offset, record.value)
        for batch in log.batches_from(log.log_start_offset)
        for record in read_records(batch)
        if record.offset >= log.log_start_offset
    ]


def main(argv: list[str], kind: type[Storm] = Storm) -> int:
    first, _, last = argv[0].partition("-")
    failed = 0
    for seed in range(int(first), int(last or first) + 1):
        storm = kind(seed)
        try:
            storm.run()
        except AssertionError as error:
            storm.problems.append(f"crash: {error!r:.300}")
            if not last:
                print("\n".join(storm.driver.trace_lines(40)))
                raise
        if "--trace" in argv:
            print("\n".join(storm.driver.trace_lines()))
        if storm.problems:
            failed += 1
            print(f"{seed}: {storm.problems[0][:230]}" if last else storm.report(), flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
