"""What survives a broker's process: its logs, and what the last run left behind.

Owns: the logs of one broker by topic id and partition.  Never: outlives `wipe`; decides which
replicas there should be (broker/node.py).  Kafka: LogManager, log directory, BrokerState files.

Process killed: nothing is lost, the page cache is the machine's.  Power lost: `lose_unflushed`.
Disk replaced: `wipe`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.events.brokers import LostRange
from kcluster.partition.log.log import Log

LogKey = tuple[bytes, int]
"""(topic id, partition)."""

CAPACITY_BYTES: Final = 1 << 40
"""What a simulated volume says it holds; all log directories of a broker are on one."""


class Disk:
    """See module.  `logs` keeps the order of creation."""

    __slots__ = (
        "_dir_of", "_preferred", "_topics", "broker_epoch", "clean_shutdown", "dirs", "is_full",
        "logs", "runs",
    )  # fmt: skip

    def __init__(self) -> None:
        self.dirs: tuple[str, ...] = ("",)
        """Its log directories, at least one; a broker names them when it starts."""
        self._topics: dict[bytes, str] = {}
        """Names by id."""
        self._dir_of: dict[LogKey, str] = {}
        """Of logs that are not in the first."""
        self._preferred: dict[LogKey, str] = {}
        """Where a log is to be when it is created."""
        self.logs: dict[LogKey, Log] = {}
        self.broker_epoch = -1
        """Of the last run, -1 for none: sent in the next registration (KIP-966)."""
        self.clean_shutdown = False
        """Whether the last run ended by a controlled shutdown (.kafka_cleanshutdown)."""
        self.is_full = False
        """No space is left: no broker can run on it."""
        self.runs = 0
        """How many processes have run on it; goes on counting when the disk is replaced."""

    def __iter__(self) -> Iterator[Log]:
        return iter(self.logs.values())

    def log(self, topic_id: bytes, partition: int) -> Log | None:
        return self.logs.get((topic_id, partition))

    def create(self, topic_id: bytes, partition: int, topic: str = "") -> Log:
        """Return the log of that replica, created if it is not there.  `topic`: its name, as that
        of the log's directory has it in Kafka."""
        key = (topic_id, partition)
        if topic:
            self._topics[topic_id] = topic
        log = self.logs.get(key)
        if log is None:
            if len(self.dirs) > 1:
                preferred = key in self._preferred
                self.move(key, self._preferred.pop(key) if preferred else self._emptiest())
            log = self.logs[key] = Log(topic_id, partition)
        return log

    def remove(self, topic_id: bytes, partition: int) -> bool:
        """Delete a log; whether there was one."""
        self._dir_of.pop((topic_id, partition), None)
        return self.logs.pop((topic_id, partition), None) is not None

    # ------------------------------------------------------------------- log directories

    def mount(self, dirs: tuple[str, ...]) -> None:
        """Its log directories are `dirs` from now on; logs of others are in the first."""
        self.dirs = tuple(dict.fromkeys(dirs))
        self._dir_of = {key: at for key, at in self._dir_of.items() if at in self.dirs[1:]}
        self._preferred = {key: at for key, at in self._preferred.items() if at in self.dirs}

    def dir_of(self, key: LogKey) -> str:
        """The directory that a log is in."""
        return self._dir_of.get(key, self.dirs[0])

    def move(self, key: LogKey, log_dir: str) -> None:
        """Have a log in `log_dir`, one of `dirs`."""
        assert log_dir in self.dirs, log_dir
        if log_dir == self.dirs[0]:
            self._dir_of.pop(key, None)
        else:
            self._dir_of[key] = log_dir

    def prefer(self, key: LogKey, log_dir: str) -> None:
        """A log that is not here is to be created in `log_dir`."""
        self._preferred[key] = log_dir

    def _emptiest(self) -> str:
        """With the fewest logs, the first of these.  Kafka: LogManager.nextLogDirs."""
        counts = dict.fromkeys(self.dirs, 0)
        for key in self.logs:
            counts[self.dir_of(key)] += 1
        return min(counts, key=counts.__getitem__)

    @property
    def usable_bytes(self) -> int:
        """What is left of CAPACITY_BYTES; the logs never really run out of it."""
        return max(0, CAPACITY_BYTES - self.size_bytes)

    @property
    def size_bytes(self) -> int:
        """Bytes of all logs, each replica counted as if it had its own copy."""
        return sum(log.size_bytes for log in self.logs.values())

    def flush(self) -> None:
        """Everything written so far survives a power loss: a clean shutdown does this."""
        for log in self.logs.values():
            log.flush()

    def lose_unflushed(self) -> tuple[LostRange, ...]:
        """Power was lost; return what is gone of each log that lost something."""
        self.clean_shutdown = False
        lost = []
        for (topic_id, partition), log in self.logs.items():
            count = log.lose_unflushed()
            if count:
                end = log.log_end_offset
                lost.append(LostRange(self._topics.get(topic_id, ""), partition, end, end + count))
        return tuple(lost)

    def wipe(self) -> None:
        """The disk was replaced by an empty one."""
        self.logs.clear()
        self._dir_of.clear()
        self._preferred.clear()
        self.broker_epoch = -1
        self.clean_shutdown = False
