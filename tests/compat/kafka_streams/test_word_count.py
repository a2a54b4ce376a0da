"""A real Kafka Streams 4.3.1 application, exactly_once_v2, under both group protocols, while the
brokers that it depends on are killed.  Every count is written once, in order.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, Queue
from random import Random
from threading import Thread
from typing import Self

import confluent_kafka as ck
import pytest

from kcluster import Cluster, Topology
from kcluster.metadata.placement import coordinator_partition
from kcluster.scenario.perform import do
from tests.compat.kafka_tools.conftest import JVM, LIBS, LONG, TOOLS, missing
from tests.compat.programs.processes import wait_until

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.timeout_s(180),
    pytest.mark.xdist_group("kafka streams"),
    LONG,
]

APPLICATION = Path(__file__).with_name("WordCount.java")
GROUPS = f"{TOOLS}.streams.StreamsGroupCommand"
PARTITIONS = 5
"""Of the internal topics."""
LINES, WORDS_PER_LINE = 350, 5
LIMIT_S = 60


class Running:
    """One process of the application; `states` are those that it has printed."""

    def __init__(
        self, cluster: Cluster, protocol: str, classes: Path, state: Path, threads: int = 2
    ) -> None:
        self.output: list[str] = []
        self._lines: Queue[str] = Queue()
        words = (cluster.bootstrap, f"{protocol}-words", protocol, f"state.dir={state}")
        self.process = subprocess.Popen(
            [
                *JVM,
                "-cp",
                f"{classes}:{LIBS}/*",
                "WordCount",
                *words,
                f"num.stream.threads={threads}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.process.kill()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self._lines.put(line.rstrip())

    def wait_for(self, line: str) -> None:
        ends = time.monotonic() + LIMIT_S
        while line not in self.output:
            try:
                self.output.append(self._lines.get(timeout=max(0, ends - time.monotonic())))
            except Empty:
                raise AssertionError(f"no {line!r} in {self.output}") from None

    def end(self) -> int:
        """Let it leave its group; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(LIMIT_S)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled application."""
    reason = missing()
    if not reason and not any(LIBS.glob("kafka-streams-*.jar")):
        reason = f"no jar of Kafka Streams in {LIBS.name} (make jars fetches it)"
    if reason:
        pytest.skip(reason)
    where = tmp_path_factory.mktemp("classes")
    command = ["javac", "-cp", f"{LIBS}/*", "-d", str(where), str(APPLICATION)]
    subprocess.run(command, check=True, timeout=LIMIT_S)
    return where


CONFIG = {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": PARTITIONS,
    "transaction.state.log.num.partitions": PARTITIONS,
}


def started(profile: str, **config: object) -> Cluster:
    shape = {"partitions": 3, "replication_factor": 3}
    topics = dict.fromkeys(("lines", "counts-classic", "counts-streams"), shape)
    named = {name.replace("_", "."): value for name, value in config.items()}
    return Cluster(Topology.of(brokers=3, topics=topics, config=CONFIG | named, profile=profile))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with started("fast") as running:
        yield running


def coordinator(cluster: Cluster, group: str) -> int:
    return cluster.leader("__consumer_offsets", coordinator_partition(group, PARTITIONS))


def say(cluster: Cluster, at_line: Mapping[int, Callable[[], object]]) -> dict[str, int]:
    """Write the lines, and do something before some of them; how often each word was said."""
    said: dict[str, int] = defaultdict(int)
    random = Random(7)
    producer = ck.Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(LINES):
        at_line.get(number, lambda: None)()
        words = [f"w{random.randrange(10)}" for _ in range(WORDS_PER_LINE)]
        for word in words:
            said[word] += 1
        producer.produce("lines", " ".join(words).encode(), key=str(number).encode())
        producer.poll(0.01)
    assert producer.flush(LIMIT_S) == 0
    return said


def counts(cluster: Cluster, topic: str, total: int) -> dict[str, list[int]]:
    """The committed records of `topic`, by word: `total`, and any that come after."""
    config = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": f"check-{topic}",
        "auto.offset.reset": "earliest",
    }
    consumer = ck.Consumer(config)
    consumer.assign([ck.TopicPartition(topic, one, 0) for one in range(3)])
    found: dict[str, list[int]] = defaultdict(list)
    ends = time.monotonic() + LIMIT_S
    while time.monotonic() < ends:
        record = consumer.poll(1.0)
        if record is None and sum(map(len, found.values())) >= total:
            break
        if record is not None and record.error() is None:
            found[(record.key() or b"").decode()].append(int(record.value() or b""))
    consumer.close()
    return found


def groups(cluster: Cluster, *arguments: str) -> str:
    """Run kafka-streams-groups.sh."""
    command = [*JVM, "-cp", f"{LIBS}/*", GROUPS, "--bootstrap-server", cluster.bootstrap]
    ended = subprocess.run(
        [*command, *arguments], text=True, timeout=LIMIT_S, check=False, capture_output=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_word_count__is_exact_while_leaders_and_coordinators_are_killed(
    cluster: Cluster, classes: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        applications = {
            protocol: stack.enter_context(Running(cluster, protocol, classes, tmp_path / protocol))
            for protocol in ("classic", "streams")
        }
        for application in applications.values():
            application.wait_for("state RUNNING")
        check(cluster, applications)


def check(cluster: Cluster, applications: dict[str, Running]) -> None:
    """Both applications count exactly, whoever dies; then they leave their groups."""
    killed: list[int] = []

    def kill(broker_id: int) -> None:
        killed.append(broker_id)
        cluster.kill(broker_id)

    said = say(
        cluster,
        {
            50: lambda: kill(cluster.leader("lines", 0)),
            120: lambda: cluster.start(killed[-1]),
            180: lambda: kill(coordinator(cluster, "streams-words")),
            250: lambda: cluster.start(killed[-1]),
            300: lambda: kill(cluster.leader("__transaction_state", 0)),
            340: lambda: cluster.start(killed[-1]),
        },
    )
    assert len(killed) == 3
    exact = {word: list(range(1, times + 1)) for word, times in said.items()}
    for protocol in applications:
        assert counts(cluster, f"counts-{protocol}", LINES * WORDS_PER_LINE) == exact, protocol
    described = groups(cluster, "--describe", "--group", "streams-words", "--members")
    assert len(re.findall(r"^streams-words .*ACTIVE: 0:", described, re.MULTILINE)) == 2, described
    for application in applications.values():
        assert application.end() == 0, application.output
    groups(cluster, "--delete", "--group", "streams-words")
    assert "streams-words" not in groups(cluster, "--list")


def is_assigned(cluster: Cluster) -> bool:
    events = [entry for entry in cluster.events() if entry.kind == "group_assigned"]
    return any("streams-words" in str(entry.note.event) for entry in events)


def test_word_count__reads_nothing_after_one_lost_answer(classes: Path, tmp_path: Path) -> None:
    """Kafka's coordinator sends a member its tasks once (incident streams_lost_answer).  The
    application says RUNNING, the member has all tasks, and the lag stays."""
    waits = {
        "group_streams_initial_rebalance_delay_ms": 2_000,
        "group_streams_min_heartbeat_interval_ms": 500,
        "group_streams_heartbeat_interval_ms": 500,
    }
    heartbeats = "StreamsGroupHeartbeat"
    with started("kafka", **waits) as cluster, ExitStack() as stack:
        say(cluster, {})
        do(cluster, "rule", api=heartbeats, delay="1ms")
        application = Running(cluster, "streams", classes, tmp_path, threads=1)
        stack.enter_context(application)
        # The second heartbeat has come, so the first one has its answer.
        wait_until(lambda: cluster.rules()[0].hits >= 2, "2 heartbeats", [], LIMIT_S)
        cluster.clear_rules()
        do(cluster, "rule", api=heartbeats, drop="reply", close=True)
        wait_until(lambda: is_assigned(cluster), "an assignment", [], LIMIT_S)
        lost = cluster.rules()[0].hits
        wait_until(lambda: cluster.rules()[0].hits > lost + 1, "more heartbeats", [], LIMIT_S)
        cluster.clear_rules()
        application.wait_for("state RUNNING")
        for _ in range(5):
            assert counts(cluster, "counts-streams", 0) == {}
        described = groups(cluster, "--describe", "--group", "streams-words", "--members")
        assert re.search(r"ACTIVE: 0:\[0,1,2\]; 1:\[0,1,2\]", described), described
        lags = groups(cluster, "--describe", "--group", "streams-words")
        assert sum(map(int, re.findall(r" lines .* (\d+)$", lags, re.MULTILINE))) == LINES, lags
        assert application.end() == 0, application.output
