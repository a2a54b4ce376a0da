"""The clusters of the fixtures: a live one, and one whose only clients are the project's own.

Owns: these two handles.  Never: knows pytest's hooks.
Kafka: ClusterInstance of ClusterTestExtensions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kcluster.actions.base import repair_all
from kcluster.checks.verdict import LATE_VIRTUAL_MS, Verdict, judge
from kcluster.clients.ledger import Ledger
from kcluster.config.files.fields import read_struct
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import from_python
from kcluster.config.topology.model import Topology
from kcluster.evidence.outside import FROM_THE_START
from kcluster.evidence.recorder import Recorder
from kcluster.handle.cluster import Cluster
from kcluster.handle.since import since_ms_of
from kcluster.handle.virtual import VirtualDriver
from kcluster.operations.errors import ClusterError
from kcluster.operations.status import NoteEntry
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.model import ConsumerSpec, ProducerSpec
from kcluster.scenario.perform import do
from kcluster.scenario.play.virtual import VirtualStage
from kcluster.scenario.play.workload import access_of_spec, make_consumers, make_producer
from kcluster.testing.callers import notes_its_callers
from kcluster.testing.reported import ReportedRun
from kcluster.testing.verbs import TestVerbs


@notes_its_callers
class TestedCluster(TestVerbs, Cluster):
    """A live Cluster that records everything for `verdict()` and for the report of a failed
    test."""

    def __init__(self, topology: Topology, seed: int, test: str) -> None:
        self._begin_report()
        super().__init__(topology, seed=seed, log=self._on_connection_line, record=False)
        self.test = test
        self.record.record_with(Recorder(self.dispatcher, self.plan))

    def open(self, timeout_s: float | None = None) -> None:
        """Start the cluster; deaths of threads are noted until it is closed."""
        super().open(timeout_s)
        self.deaths.attach()

    def close(self) -> None:
        """Stop the cluster."""
        self.deaths.detach()
        super().close()


@notes_its_callers
class VirtualCluster(ReportedRun, VirtualDriver):
    """A started VirtualDriver that records itself, with clients and actions of scenario files."""

    __test__ = False

    def __init__(self, topology: Topology, seed: int, test: str) -> None:
        self._begin_report()
        super().__init__(topology, seed)
        self.test = test
        self.seed = seed
        self.ledger = Ledger()
        self._recorder = Recorder(self.dispatcher, self.plan)
        self._scene = self._stage = VirtualStage(self, seed, self.ledger)
        self._scene.start()
        self._numbers = itertools.count(1)

    @property
    def recorder(self) -> Recorder:
        """The recorder of this cluster."""
        return self._recorder

    def producer(self, topic: str, **keys: object) -> Any:
        """Start a producer, with the keys of scenario files: `producer("orders", rate="50/s")`."""
        spec = _spec(
            ProducerSpec, {"name": f"producer-{next(self._numbers)}", "topic": topic, **keys}
        )
        client = make_producer(spec, self.plan.topology.profile, self.ledger)
        self._scene.add_client(client.name, client, access_of_spec(spec, self.plan.topology))
        return client

    def consumer(self, **keys: object) -> Any:
        """Start a consumer: `consumer(topics="orders", group="billing")`."""
        spec = _spec(ConsumerSpec, {"name": f"consumer-{next(self._numbers)}", **keys})
        (client,) = make_consumers(spec, self.plan.topology.profile, self.ledger)
        self._scene.add_client(client.name, client, access_of_spec(spec, self.plan.topology))
        return client

    def do(self, verb: str, short: object = None, **keys: object) -> Callable[[], None]:
        """Perform an action of scenario files; returns the function that undoes it."""
        return do(self, verb, short, **keys)

    def repair(self, limit_ms: int = 120_000) -> None:
        """Undo every fault, and let time pass until all replicas are in sync."""
        problems = repair_all(self.verbs)
        self.time.settle()
        if problems or not self.run_until_condition(self._scene.is_whole, limit_ms):
            raise ClusterError("; ".join(problems) or "not all replicas are in sync again")

    def clock_ms(self) -> int:
        """Virtual time."""
        return self.now_ms

    def _moment_ms(self, since: str | int | None) -> int | None:
        if since is None:
            return None
        notes = self.recorder.notes
        entries = [NoteEntry(number, note) for number, note in enumerate(notes, 1)]
        return since_ms_of(since, self.now_ms, entries)

    def mark(self) -> str:
        """Name this moment, for `verdict(since=...)`."""
        return f"@{self.now_ms}"

    def _judge(self, since_ms: int | None = None) -> Verdict:
        return judge(
            self.recorder,
            self.ledger,
            healed=self._scene.is_whole(),
            began_ms=self.recorder.first_ms,
            clients=self._stage.client_ids(),
            since_ms=FROM_THE_START if since_ms is None else since_ms,
            late_ms=LATE_VIRTUAL_MS,
        )

    def story(self, parent: Path) -> list[str]:
        """The report of a failed test: timeline, verdict, seed, run directory."""
        return self._story("virtual", parent)


def _spec(struct: Any, keys: dict[str, object]) -> Any:
    reading = TreeReader("")
    spec = read_struct(reading, from_python(keys), "", struct, "key of a client")
    if spec is None:
        raise ScenarioError(reading.problems)
    return spec
