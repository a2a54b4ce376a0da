"""Brokers in virtual time: frames come in over connections in memory, a thousand a second.

Owns: the steps, the cluster that takes them, what must hold after them: every broker is up and
answers, and the run's record can be judged, saved and explained.
Never: makes up a frame (frames.py does).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.checks.verdict import judge
from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.controller.node import ControllerNode
from kcluster.drivers.memory.stream import StreamEnd
from kcluster.evidence.sampling import SamplingRecorder
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.releases import releases
from kcluster.runs.directory import read_run
from kcluster.runs.explain import explain
from tests.fuzz.episodes import Budget, Failure, Watch, packed, shorter, unpacked
from tests.fuzz.frames import made_up_frame
from tests.fuzz.values import COMPACTED, TOPIC, MadeUp
from tests.rig.cluster import MemoryRig
from tests.rig.lines import CLOSED, SILENT

REQUESTS: Final = 150
CONNECT_MS: Final = 1
"""A new connection is up by then; what is written before is lost."""
LANES: Final = 12
"""Connections to a broker.  Some are stuck behind a request that waits for long."""
RELEASES: Final = ("", "", "", "", "0.11", "1.1", "2.3", "2.8", "3.2", "3.9", "4.0")
"""Of all brokers; "": the newest."""


class Began(Struct, tag="began", omit_defaults=True):
    """The cluster starts; without this step, it is the newest release."""

    release: str = ""


class Sent(Struct, tag="sent", omit_defaults=True):
    """Bytes on a connection (as `packed` writes them); it is opened if it is not open."""

    broker: int
    lane: int
    bytes: str
    wait_ms: int = 0
    """How much time passes afterwards."""

    def smaller(self) -> Iterator[Sent]:
        """Without the wait, and with fewer bytes."""
        if self.wait_ms:
            yield replace(self, wait_ms=0)
        data = unpacked(self.bytes)
        for size in shorter(len(data)):
            yield replace(self, bytes=packed(data[:size]))


class Closed(Struct, tag="closed"):
    """The client closes a connection."""

    broker: int
    lane: int


Step = Began | Sent | Closed


def topology(release: str) -> Topology:
    """Three brokers, a topic of two partitions, a compacted one."""
    topics: dict[str, dict[str, Any]] = {
        TOPIC: {"partitions": 2, "replication_factor": 3},
        COMPACTED: {"replication_factor": 3, "config": {"cleanup.policy": "compact"}},
    }
    keys = {"kafka_version": release} if release else {}
    return Topology.of(brokers=3, topics=topics, profile="fast", **keys)


@cache
def topic_ids() -> tuple[bytes, ...]:
    """The ids of the topics, the same in each episode."""
    rig = MemoryRig(topology(""))
    return tuple(dict.fromkeys(topic_id for topic_id, _ in rig.plan.disks[1].logs))


class Brokers:
    """The target."""

    name = "brokers"
    step = Step

    def __init__(self, requests: int = REQUESTS) -> None:
        self.requests = requests

    def draw(self, rng: Random) -> list[Step]:
        """Requests for three brokers."""
        release = rng.choice(RELEASES)
        found = releases()[release or max(releases(), key=lambda name: releases()[name].number)]
        made_up = MadeUp(rng, topic_ids(), old_formats=bool(release))
        steps: list[Step] = [Began(release)]
        for _ in range(self.requests):
            broker, lane = rng.randint(1, 3), rng.randrange(LANES)
            frame = made_up_frame(made_up, found)
            steps.append(Sent(broker, lane, packed(frame), rng.choice((0, 0, 0, 1, 600))))
            if rng.random() < 0.2:
                steps.append(Closed(broker, rng.randrange(LANES)))
        return steps

    def play(self, steps: Sequence[Step]) -> Failure | None:
        """Do them to a fresh cluster, and look at it."""
        first = steps[0] if steps else None
        watch = Watch()
        with watch:
            release = first.release if isinstance(first, Began) else ""
            cluster = FuzzedCluster(topology(release))
            for step in steps:
                with cluster.budget:
                    cluster.do(step)
                if cluster.budget.over is not None:
                    return cluster.budget.over
            return cluster.problem()
        return watch.failure


class FuzzedCluster:
    """A cluster with both kinds of recorders, which sees what strangers send."""

    def __init__(self, topology: Topology) -> None:
        self.rig = MemoryRig(topology)
        self.sampled = SamplingRecorder(self.rig.driver.dispatcher, self.rig.plan)
        self.lanes: dict[tuple[int, int], StreamEnd] = {}
        self.connections = 0
        self.budget = Budget(self.partitions)

    def do(self, step: Step) -> None:
        """One step, and what follows from it."""
        if isinstance(step, Closed):
            end = self.lanes.pop((step.broker, step.lane), None)
            if end is not None:
                end.close()
        elif isinstance(step, Sent):
            self.send(step)

    def partitions(self) -> int:
        """How many there are, as far as the controller is up."""
        node = self.rig.driver.dispatcher.processes[CONTROLLER_ID].node
        topics = node.image.topics if isinstance(node, ControllerNode) else {}
        return sum(len(topic.partitions) for topic in topics.values())

    def send(self, step: Sent) -> None:
        """Write the bytes; if the broker does not read them at once, what is left is dropped."""
        self.write(self.line(step.broker, step.lane), unpacked(step.bytes))
        self.pass_ms(step.wait_ms)

    def line(self, broker: int, lane: int) -> StreamEnd:
        """The connection of a lane; a new one if the broker has closed it."""
        key = broker, lane
        end = self.lanes.get(key)
        if end is None or (end.is_readable and not self.drained(end)):
            end = self.lanes[key] = self.opened(broker, lane)
            self.pass_ms(CONNECT_MS)
        self.pass_ms(0)
        return end

    def write(self, end: StreamEnd, data: bytes) -> None:
        """Write what the broker reads at once."""
        left = memoryview(data)
        while len(left) and end.is_writable:
            try:
                left = left[end.write(left) :]
            except OSError:
                break
            self.pass_ms(0)

    def opened(self, broker: int, lane: int) -> StreamEnd:
        """A new connection for a lane, from an address of its own, by which its requests are
        known."""
        self.connections += 1
        local = f"127.1.{self.connections >> 8}.{self.connections & 255}", 0
        return self.rig.driver.connect(*self.address(broker, lane), local=local)

    def address(self, broker: int, lane: int) -> tuple[str, int]:
        """Where the bytes of a lane are sent."""
        return self.rig.plan.addresses[broker]

    def drained(self, end: StreamEnd) -> bool:
        """Read what has come; whether the broker has left the connection open."""
        while end.is_readable:
            try:
                if not end.read(1 << 20):
                    return False
            except OSError:
                return False
        return True

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass."""
        driver = self.rig.driver
        driver.advance(driver.now_us + duration_ms * 1000, lambda: False)

    def problem(self) -> Failure | None:
        """What is wrong now."""
        down = [one.id for one in self.rig.status().brokers if one.state != "up"]
        if down:
            return Failure("down", f"brokers {down}")
        for broker in (1, 2, 3):
            line = self.rig.line(broker)
            line.send(ApiKey.API_VERSIONS, 0, m.ApiVersionsRequest())
            if line.outcome() in (CLOSED, SILENT):
                return Failure("no answer", f"broker {broker} does not answer ApiVersions")
            line.close()
        with self.budget:
            self.rig.verdict()
            self.sampled.check_last_step()
            judge(self.sampled, Ledger(), healed=True)
        with tempfile.TemporaryDirectory() as parent, self.budget:
            record, problems = read_run(self.rig.save(parent))
            explain(record, "")
        if problems:
            return Failure("unreadable record", "\n".join(problems))
        return self.budget.over
