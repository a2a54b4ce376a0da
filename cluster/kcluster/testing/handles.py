"""The clusters of the fixtures: a live one that records itself, and one in virtual time.

Owns: these handles, reading a mark's arguments as a topology, the facts for a ledger of processing.
Never: knows pytest's hooks.
Kafka: ClusterInstance of ClusterTestExtensions.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from kcluster.checks.processing import AnyProblem, Processed
from kcluster.checks.verdict import LATE_VIRTUAL_MS, Verdict, judge
from kcluster.clients.ledger import Ledger
from kcluster.config.files.problems import nearest, show, unknown
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import from_python
from kcluster.config.kafka.spelling import config_name
from kcluster.config.kafka.topic import TOPIC_CONFIGS
from kcluster.config.topology.model import Topology
from kcluster.drivers.virtual import VirtualDriver
from kcluster.evidence.recorder import Recorder
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.runs.build_record import add_processing, record_of
from kcluster.runs.directory import write_run
from kcluster.runs.record import RunInfo
from kcluster.scenario.language.fields import read_struct
from kcluster.scenario.language.loader import ScenarioError, action_of
from kcluster.scenario.language.model import ConsumerSpec, ProducerSpec
from kcluster.scenario.perform import do
from kcluster.scenario.play.runner import repair_all
from kcluster.scenario.play.virtual import VirtualStage
from kcluster.scenario.play.workload import make_consumers, make_producer
from kcluster.scenario.started import clients_started, stop_client
from kcluster.testing.callers import CallingLine, notes_its_callers
from kcluster.testing.processed import ProcessedLedger, check_topic, judged_processing
from kcluster.testing.story import client_lines, problem_lines, story_lines
from kcluster.version import __version__

T = TypeVar("T")

TOPOLOGY_KEYS: Final = (
    "brokers",
    "topics",
    "profile",
    "config",
    "features",
    "network",
    "kafka_version",
    "write_back",
    "name",
)
KEYS: Final = ("topology", "seed", *TOPOLOGY_KEYS)
DEFAULT_SEED: Final = 1
REPAIR_LIMIT_S: Final = 30.0
_NUMBERS = itertools.count(1)


class MarkError(ValueError):
    """A mark's arguments are wrong; str() is one line."""


def arguments_of(mark: Any, default_profile: str) -> tuple[Topology, int]:
    """The topology and seed of a mark; MarkError or TopologyError, with the nearest right name, for
    wrong arguments."""
    keys: dict[str, Any] = {} if mark is None else dict(mark.kwargs)
    for key in keys:
        if key not in KEYS:
            raise MarkError(f"{key}: {unknown('argument', key, KEYS)}")
    if mark is not None and mark.args:
        raise MarkError("takes keyword arguments, such as brokers=3")
    seed = keys.pop("seed", DEFAULT_SEED)
    if not isinstance(seed, int):
        raise MarkError(f"seed: {show(seed)} is not a whole number")
    topology = keys.pop("topology", None)
    if isinstance(topology, Topology):
        if keys:
            raise MarkError(f"{next(iter(keys))}: part of the topology given")
        return topology, seed
    if isinstance(topology, Mapping):
        values = {"profile": default_profile, **topology, **keys}
        return Topology.of(**values), seed
    if topology is not None:
        if not isinstance(topology, str | os.PathLike):
            raise MarkError(f"topology: {show(topology)} is neither a file nor a topology")
        return Topology.load(topology, **keys), seed
    values = {"brokers": 3, "profile": default_profile, **keys}
    return Topology.of(**values), seed


class _Recorded(ABC):
    """What both handles report about their run."""

    ledger: Ledger
    test: str
    seed: int

    def _begin_report(self) -> None:
        self.last_verdict: Verdict | None = None
        """What was last returned for the test to assert."""
        self.calling_lines: list[CallingLine] = []
        self.threads_inside: set[int] = set()
        self.connection_lines: list[tuple[int, str]] = []
        """Connections that brokers closed or refused: (at_ms, line)."""
        self._ledgers: list[ProcessedLedger] = []

    @abstractmethod
    def clock_ms(self) -> int:
        """The cluster's time at this moment."""

    @abstractmethod
    def _judge(self) -> Verdict:
        """The verdict, in the thread of the nodes."""

    def _between_steps(self, function: Callable[[], T]) -> T:
        """Call a function while no node runs."""
        return function()

    def verdict(self) -> Verdict:
        """The verdict on every record so far; outside clients as the brokers saw them.  True if
        valid; what applications did with their records is not judged (`processed` does)."""
        self.last_verdict = self._between_steps(self._judge)
        return self.last_verdict

    def processed(self, topic: str, group: str = "") -> ProcessedLedger:
        """A ledger for what the application processes of `topic`: `add` each record, then `check`.
        `group`: whose commits explain problems, by default those of all groups that read it.  In
        virtual time the built-in consumers have processed what they have read."""
        ledger = ProcessedLedger(
            topic, group, self.clock_ms, lambda: self.recorder.first_ms, self._problems_of
        )
        self._ledgers.append(ledger)
        return ledger

    def _problems_of(self, ledger: ProcessedLedger) -> list[AnyProblem]:
        problems = self._between_steps(lambda: self._judged_processing(ledger)[1])
        assert self.recorder.judged is not None, "just judged"
        topics = list(dict.fromkeys(topic for topic, _ in self.recorder.judged.logs))
        check_topic(ledger.topic, topics, nearest(ledger.topic, topics))
        return problems

    def _judged_processing(
        self, ledger: ProcessedLedger
    ) -> tuple[list[Processed], list[AnyProblem]]:
        """What was processed, and the problems."""
        self._judge()
        reported = [*ledger.entries(), *self._processed_inside(ledger.topic)]
        return judged_processing(self.recorder, reported, ledger.topic, ledger.group)

    def _processed_inside(self, topic: str) -> list[Processed]:
        """What the built-in consumers read: their application does nothing else."""
        return [
            Processed(read.at_ms, read.partition, read.offset, read.consumer)
            for read in self.ledger.reads
            if read.partition[0] == topic
        ]

    @property
    @abstractmethod
    def recorder(self) -> Recorder:
        """What records this cluster."""

    def _info(self, clock: str) -> RunInfo:
        now_ms = self.recorder.dispatcher.now_ms
        return RunInfo(
            self.test,
            clock,
            self.seed,
            self.recorder.first_ms,
            now_ms,
            version=__version__,
            replay=f"pytest -k '{self.test}'",
        )

    def _story(self, clock: str, parent: Path) -> list[str]:
        verdict = self._judge()
        info = self._info(clock)
        info.passed = False
        record = record_of(info, self.recorder, self.ledger, verdict)
        for ledger in self._ledgers:
            add_processing(record, *self._judged_processing(ledger))
        directory = write_run(parent, record)
        return [
            *story_lines(self.recorder, self.calling_lines, self.recorder.first_ms),
            "",
            *verdict.lines(),
            *problem_lines(record),
            *client_lines(self.recorder, self.connection_lines, self.recorder.first_ms),
            f"seed: {self.seed} (@pytest.mark.kafka_cluster(seed={self.seed}))",
            f"replay: {info.replay}",
            f"run directory: {directory}  (kcluster explain {directory})",
        ]


@notes_its_callers
class TestedCluster(_Recorded, Cluster):
    """A live Cluster that records what happens, for `verdict()` and the report of a failed test."""

    __test__ = False

    def __init__(self, topology: Topology, seed: int, test: str) -> None:
        self._begin_report()
        super().__init__(topology, seed=seed, log=self._on_connection_line, record=False)
        self.test = test
        self.ledger = Ledger()
        self._recorder = Recorder(self.driver.dispatcher, self.plan)

    def clock_ms(self) -> int:
        """The cluster's time at this moment."""
        return self.driver.clock_ms()

    def _on_connection_line(self, line: str) -> None:
        self.connection_lines.append((self.clock_ms(), line))

    def _between_steps(self, function: Callable[[], T]) -> T:
        return self.call(function)

    @property
    def recorder(self) -> Recorder:
        """The recorder of every step; a Cluster's own looks on less often."""
        assert self._recorder is not None, "attached by __init__"
        return self._recorder

    def _judge(self) -> Verdict:
        return judge(self.recorder, self.ledger, healed=True, began_ms=self.recorder.first_ms)

    def do(self, verb: str, short: Any = None, **keys: Any) -> Callable[[], None]:
        """Perform an action of scenario files; returns the function that undoes it."""
        return do(self, verb, short, **keys)

    def new_topic(
        self,
        name: str = "",
        partitions: int = 1,
        replication_factor: int = 0,
        config: Mapping[str, Any] | None = None,
        **configs: Any,
    ) -> str:
        """Create a topic with a unique name; returns the name when all brokers know the topic.
        Configs are keywords with underscores, `min_insync_replicas=2`, or a mapping `config`, with
        underscores or with Kafka's dots."""
        chosen = name or f"topic-{next(_NUMBERS)}"
        named = {
            config_name(key, TOPIC_CONFIGS): str(value)
            for key, value in {**(config or {}), **configs}.items()
        }
        self.create_topic(chosen, partitions, replication_factor or None, named)
        return chosen

    def repair(self) -> None:
        """Undo every fault: links, rules, disks, pauses, deaths.  Clients that were started stop,
        and the clock runs as the machine's.  Returns when all replicas are in sync."""
        self.set_speed(1)
        self.resume_clock()
        for client in clients_started(self):
            if client.is_running:
                stop_client(self, client.name)
        problems = self.call(lambda: repair_all(self.verbs, self.plan))
        if problems:
            raise ClusterError("; ".join(problems))
        failure = "not all replicas are in sync again"
        self._wait(self.verbs.settled.all_in_sync, REPAIR_LIMIT_S, failure)

    def story(self, parent: Path) -> list[str]:
        """The report of a failed test: timeline, verdict, seed, run directory."""
        return self.call(lambda: self._story("live", parent))


@notes_its_callers
class VirtualCluster(_Recorded, VirtualDriver):
    """A started VirtualDriver that records itself, with clients and actions of scenario files."""

    __test__ = False

    def __init__(self, topology: Topology, seed: int, test: str) -> None:
        self._begin_report()
        super().__init__(topology, seed)
        self.test = test
        self.seed = seed
        self.ledger = Ledger()
        self._recorder = Recorder(self.dispatcher, self.plan)
        self._stage = VirtualStage(self, seed, self.ledger)
        self._stage.start()

    @property
    def recorder(self) -> Recorder:
        """What records this cluster."""
        return self._recorder

    def producer(self, topic: str, **keys: Any) -> Any:
        """Start a producer, with the keys of scenario files: `producer("orders", rate="50/s")`."""
        spec = _spec(ProducerSpec, {"name": f"producer-{next(_NUMBERS)}", "topic": topic, **keys})
        client = make_producer(spec, self.plan.topology.profile, self.ledger)
        self._stage.add_client(client.name, client)
        return client

    def consumer(self, **keys: Any) -> Any:
        """Start a consumer: `consumer(topics="orders", group="billing")`."""
        spec = _spec(ConsumerSpec, {"name": f"consumer-{next(_NUMBERS)}", **keys})
        (client,) = make_consumers(spec, self.plan.topology.profile, self.ledger)
        self._stage.add_client(client.name, client)
        return client

    def do(self, verb: str, short: Any = None, **keys: Any) -> Callable[[], None]:
        """Perform an action of scenario files; returns the function that undoes it."""
        undo = action_of(verb, short, keys).action.do(self._stage)
        self.time.settle()
        if self._stage.problems:
            raise ClusterError(self._stage.problems.pop())
        return undo or (lambda: None)

    def repair(self, limit_ms: int = 120_000) -> None:
        """Undo every fault, and let time pass until all replicas are in sync."""
        problems = repair_all(self.verbs, self.plan)
        self.time.settle()
        if problems or not self.run_until_condition(self._stage.is_whole, limit_ms):
            raise ClusterError("; ".join(problems) or "not all replicas are in sync again")

    def clock_ms(self) -> int:
        """Virtual time."""
        return self.now_ms

    def _judge(self) -> Verdict:
        return judge(
            self.recorder,
            self.ledger,
            healed=self._stage.is_whole(),
            began_ms=self.recorder.first_ms,
            clients=self._stage.client_ids(),
            late_ms=LATE_VIRTUAL_MS,
        )

    def story(self, parent: Path) -> list[str]:
        """The report of a failed test: timeline, verdict, seed, run directory."""
        return self._story("virtual", parent)


def _spec(struct: Any, keys: dict[str, Any]) -> Any:
    reading = TreeReader("")
    spec = read_struct(reading, from_python(keys), "", struct, "key of a client")
    if spec is None:
        raise ScenarioError(reading.problems)
    return spec
