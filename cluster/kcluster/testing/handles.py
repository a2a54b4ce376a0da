"""The clusters of the fixtures: a live one that records itself, and one in virtual time.

Owns: these handles, reading a mark's arguments as a topology.  Never: knows pytest's hooks.
Kafka: ClusterInstance of ClusterTestExtensions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from kcluster.checks.verdict import LATE_VIRTUAL_MS, Verdict, judge
from kcluster.clients.ledger import Ledger
from kcluster.config.files.problems import unknown
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import from_python
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import TopicSpec
from kcluster.contract import Note
from kcluster.drivers.virtual import VirtualDriver
from kcluster.evidence.recorder import Recorder
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.runs.build_record import record_of
from kcluster.runs.directory import write_run
from kcluster.runs.record import RunInfo
from kcluster.scenario.language.fields import read_struct
from kcluster.scenario.language.loader import ScenarioError, action_of
from kcluster.scenario.language.model import ConsumerSpec, ProducerSpec
from kcluster.scenario.perform import do
from kcluster.scenario.play.runner import repair_all
from kcluster.scenario.play.virtual import VirtualStage
from kcluster.scenario.play.workload import make_consumers, make_producer
from kcluster.scenario.report import notes_lines
from kcluster.version import __version__

TOPOLOGY_KEYS: Final = (
    "brokers",
    "topics",
    "profile",
    "config",
    "network",
    "kafka_version",
    "name",
)
KEYS: Final = ("topology", "seed", *TOPOLOGY_KEYS)
DEFAULT_SEED: Final = 1
REPAIR_LIMIT_S: Final = 30.0
_NUMBERS = itertools.count(1)


def arguments_of(mark: Any, default_profile: str) -> tuple[Topology, int]:
    """The topology and seed of a mark; TypeError, with the nearest word, for wrong arguments."""
    keys: dict[str, Any] = {} if mark is None else dict(mark.kwargs)
    for key in keys:
        if key not in KEYS:
            raise TypeError(f"kafka_cluster({key}=...): {unknown('argument', key, KEYS)}")
    if mark is not None and mark.args:
        raise TypeError("kafka_cluster(...) takes keyword arguments, such as brokers=3")
    seed = int(keys.pop("seed", DEFAULT_SEED))
    topology = keys.pop("topology", None)
    if isinstance(topology, Topology):
        if keys:
            raise TypeError(f"kafka_cluster: {next(iter(keys))} is part of the topology given")
        return topology, seed
    if isinstance(topology, Mapping):
        return Topology.of(**{"profile": default_profile, **topology, **keys}), seed
    if topology is not None:
        return Topology.load(topology, **keys), seed
    return Topology.of(**{"brokers": 3, "profile": default_profile, **keys}), seed


class _Recorded:
    """What both handles report about their run."""

    recorder: Recorder
    ledger: Ledger
    test: str
    seed: int

    @property
    def _began_ms(self) -> int:
        """The time of the first note."""
        notes = self.recorder.notes
        return notes[0].at_ms if notes else self.recorder.began_ms

    def _info(self, clock: str) -> RunInfo:
        now_ms = self.recorder.dispatcher.now_ms
        return RunInfo(
            self.test,
            clock,
            self.seed,
            self._began_ms,
            now_ms,
            version=__version__,
            replay=f"pytest -k '{self.test}'",
        )

    def _story(self, verdict: Verdict, notes: list[Note], clock: str, parent: Path) -> list[str]:
        info = self._info(clock)
        info.passed = False
        record = record_of(info, self.recorder, self.ledger, verdict)
        directory = write_run(parent, record)
        return [
            *notes_lines(notes, self._began_ms),
            "",
            *verdict.lines(),
            f"seed: {self.seed} (@pytest.mark.kafka_cluster(seed={self.seed}))",
            f"replay: {info.replay}",
            f"run directory: {directory}  (kcluster explain {directory})",
        ]


class TestedCluster(Cluster, _Recorded):
    """A live Cluster that records what happens, for `verdict()` and the report of a failed test."""

    __test__ = False

    def __init__(self, topology: Topology, seed: int, test: str) -> None:
        super().__init__(topology, seed=seed)
        self.test = test
        self.ledger = Ledger()
        self.recorder = Recorder(self.driver.dispatcher, self.plan)

    def verdict(self) -> Verdict:
        """The verdict on every record so far, from what the brokers saw of their clients."""
        return self.call(
            lambda: judge(self.recorder, self.ledger, healed=True, began_ms=self._began_ms)
        )

    def do(self, verb: str, short: Any = None, **keys: Any) -> Callable[[], None]:
        """Perform an action of scenario files; returns the function that undoes it."""
        return do(self, verb, short, **keys)

    def new_topic(
        self, name: str = "", partitions: int = 1, replication_factor: int = 0, **config: Any
    ) -> str:
        """Create a topic with a unique name; returns the name when all brokers know the topic.
        Configs are keywords with underscores: `min_insync_replicas=2`."""
        chosen = name or f"topic-{next(_NUMBERS)}"
        spec = TopicSpec(
            chosen,
            partitions,
            replication_factor or -1,
            config={key.replace("_", "."): str(value) for key, value in config.items()},
        )
        ended: Future[str] = Future()
        self.call(lambda: self.verbs.admin.create_topic(spec, ended.set_result))
        refusal = self._result(ended, REPAIR_LIMIT_S, "the controller did not answer")
        if refusal:
            raise ClusterError(f"{chosen}: {refusal}")
        self._wait(
            self.verbs.settled.has_applied_all,
            REPAIR_LIMIT_S,
            "not all brokers know the new leader",
        )
        return chosen

    def repair(self) -> None:
        """Undo every fault: links, rules, disks, pauses, deaths.  Returns when all replicas are in
        sync."""
        problems = self.call(lambda: repair_all(self.verbs, self.plan))
        if problems:
            raise ClusterError("; ".join(problems))
        failure = "not all replicas are in sync again"
        self._wait(self.verbs.settled.all_in_sync, REPAIR_LIMIT_S, failure)

    def story(self, parent: Path) -> list[str]:
        """The report of a failed test: timeline, verdict, seed, run directory."""
        verdict = self.verdict()
        return self.call(lambda: self._story(verdict, self.recorder.notes, "live", parent))


class VirtualCluster(VirtualDriver, _Recorded):
    """A started VirtualDriver that records itself, with clients and actions of scenario files."""

    __test__ = False

    def __init__(self, topology: Topology, seed: int, test: str) -> None:
        super().__init__(topology, seed)
        self.test = test
        self.seed = seed
        self.ledger = Ledger()
        self.recorder = Recorder(self.dispatcher, self.plan)
        self._stage = VirtualStage(self, seed, self.ledger)
        self._stage.start()

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

    def verdict(self) -> Verdict:
        """The verdict on every record so far."""
        return judge(
            self.recorder,
            self.ledger,
            healed=self._stage.is_whole(),
            began_ms=self._began_ms,
            clients=self._stage.client_ids(),
            late_ms=LATE_VIRTUAL_MS,
        )

    def story(self, parent: Path) -> list[str]:
        """The report of a failed test: timeline, verdict, seed, run directory."""
        return self._story(self.verdict(), self.notes, "virtual", parent)


def _spec(struct: Any, keys: dict[str, Any]) -> Any:
    reading = TreeReader("")
    spec = read_struct(reading, from_python(keys), "", struct, "key of a client")
    if spec is None:
        raise ScenarioError(reading.problems)
    return spec
