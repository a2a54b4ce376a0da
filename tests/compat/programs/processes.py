"""Other people's programs as processes on a cluster that is broken beneath them.

Owns: a process and what it prints, the kills that follow its progress, the count at the end.
Never: knows a program.

Progress is read from the brokers' logs, so it is the same for each program; each kill comes when
the program has done its share, so nothing here waits for a time to pass.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import confluent_kafka as ck

from kcluster.handle.cluster import Cluster
from kcluster.metadata.placement import coordinator_partition
from kcluster.protocol.names import TRANSACTION_STATE_TOPIC
from tests.foreign_clients.real_clients import confluent_settings, confluent_values, until
from tests.rig.patience import PATIENCE_S

LINES_SHOWN = 40
_MOMENT = threading.Event()
"""Never set: between two looks at a log."""


class Program:
    """A process: `with Program(["java", …]) as program: …`; it is killed at the end if it still
    runs.  `lines`: what it printed, as it comes."""

    def __init__(
        self, command: Sequence[str | Path], cwd: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env=environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # it ends with all processes that it has started
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self.lines.append(line.rstrip())

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    @property
    def tail(self) -> str:
        """The last lines it printed."""
        return "\n".join(self.lines[-LINES_SHOWN:])

    @property
    def runs(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ask it to end, as Ctrl-C does."""
        self._process.terminate()

    def wait(self, limit_s: float, codes: Iterable[int] = (0,)) -> None:
        """Wait until it ends, with one of these exit codes."""
        try:
            code = self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {limit_s:g} s:\n{self.tail}") from None
        self._reader.join()
        assert code in codes, f"exit code {code}:\n{self.tail}"


def wait_until(
    condition: Callable[[], bool], what: str, programs: Sequence[Program], limit_s: float = 150
) -> None:
    """Wait until the condition holds, while all programs run."""
    deadline = time.monotonic() + limit_s
    while not condition():
        for program in programs:
            assert program.runs, f"ended before {what}:\n{program.tail}"
        shown = "\n".join(program.tail for program in programs)
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}\n{shown}"
        _MOMENT.wait(0.005)


def has_reached(cluster: Cluster, topic: str, partitions: int, count: int) -> bool:
    return ends(cluster, topic, partitions) >= count


def ends(cluster: Cluster, topic: str, partitions: int) -> int:
    """How many offsets the partitions' longest logs have in sum, with markers."""
    return sum(
        max(log.log_end_offset for log in cluster.logs(topic, partition).replicas)
        for partition in range(partitions)
    )


def transaction_coordinator(cluster: Cluster, transactional_id: str) -> str:
    """The word for the broker that coordinates a transactional id."""
    count = sum(one.topic == TRANSACTION_STATE_TOPIC for one in cluster.status().partitions)
    return f"leader({TRANSACTION_STATE_TOPIC}-{coordinator_partition(transactional_id, count)})"


def break_along(
    cluster: Cluster,
    programs: Sequence[Program],
    topic: str,
    partitions: int,
    kills: Sequence[tuple[int, str]],
    *,
    limit_s: float = 60,
) -> None:
    """Kill each broker that is named, and start it again, when `topic` has reached as many offsets.
    The programs must reach that while they run."""
    for count, nodes in kills:
        wait_until(
            partial(has_reached, cluster, topic, partitions, count),
            f"{count} of {topic}",
            programs,
            limit_s,
        )
        word = transaction_coordinator(cluster, nodes[4:]) if nodes.startswith("txn ") else nodes
        cluster.start(cluster.kill(word))


def wait_committed(
    cluster: Cluster, group: str, topic: str, partitions: int, count: int, *, limit_s: float = 150
) -> None:
    """Wait until the group has committed as many offsets of the topic's partitions in sum."""
    settings = confluent_settings(cluster.bootstrap, group_id=group, enable_auto_commit=False)
    consumer = ck.Consumer(settings)
    asked = [ck.TopicPartition(topic, partition) for partition in range(partitions)]

    def total() -> int:
        try:
            return sum(max(one.offset, 0) for one in consumer.committed(asked, 2))
        except ck.KafkaException:
            return 0  # the coordinator is about to move

    try:
        until(
            lambda: total() >= count or _MOMENT.wait(0.05), f"{count} offsets of {group}", limit_s
        )
    finally:
        consumer.close()


def fill(bootstrap: str, topic: str, count: int, partitions: int = 1) -> None:
    """Numbers as values, evenly over the partitions."""
    producer = ck.Producer(confluent_settings(bootstrap, linger_ms=5, batch_num_messages=20))
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=number % partitions)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def committed_values(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    """The values that a read_committed consumer sees, to the end of each partition."""
    return confluent_values(bootstrap, topic, partitions=partitions, limit_s=30)


def check_exactly_once(bootstrap: str, topic: str, partitions: int, count: int) -> None:
    """The committed values are the numbers below `count`, each once."""
    seen = Counter(int(value) for value in committed_values(bootstrap, topic, partitions))
    lost = sorted(set(range(count)) - set(seen))
    twice = sorted(number for number, times in seen.items() if times > 1)
    assert not lost, f"{len(lost)} of {count} lost: {lost[:10]}"
    assert not twice, f"{len(twice)} of {count} twice: {twice[:10]}"
    assert len(seen) == count
