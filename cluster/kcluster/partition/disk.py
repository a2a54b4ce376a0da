"""A broker's disk, which outlives its process: the logs, and the traces of the last run.

Owns: the logs of one broker by topic id and partition, and their directories.  Never: decides which
replicas exist (broker/publisher.py).  Kafka: LogManager, log directories, BrokerState files.

A killed process loses nothing: the page cache is the machine's.  A power loss is `lose_unflushed`,
a replaced disk is `wipe`.  The operating system's write-back is `write_back`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kcluster.events.brokers import LostRange
from kcluster.partition.log.log import Log

LogKey = tuple[bytes, int]
"""(topic id, partition)."""

CAPACITY_BYTES: Final = 1 << 40
"""The nominal size in bytes of the one volume that holds all log directories of a broker."""


class Disk:
    """The disk of one broker.  `logs` is in the order of creation."""

    __slots__ = (
        "_dir_of", "_preferred", "_topics", "_unwritten", "broker_epoch", "clean_shutdown", "dirs",
        "is_full", "logs", "runs", "write_back_ms",
    )  # fmt: skip

    def __init__(self, write_back_ms: int = 0) -> None:
        self.write_back_ms = write_back_ms
        """The age at which the operating system writes a log to the disk; 0: never."""
        self.dirs: tuple[str, ...] = ("",)
        """The broker's log directories, at least one; set by `mount` when a broker starts."""
        self._topics: dict[bytes, str] = {}
        """Topic names by topic id."""
        self._dir_of: dict[LogKey, str] = {}
        """The directory of each log that is not in the first directory."""
        self._preferred: dict[LogKey, str] = {}
        """The directory in which a log will be created, by its key."""
        self._unwritten: dict[Log, None] = {}
        """The logs that may have records to be written back."""
        self.logs: dict[LogKey, Log] = {}
        self.broker_epoch = -1
        """The broker epoch of the last run, -1 if there was none; the next registration sends it
        (KIP-966)."""
        self.clean_shutdown = False
        """Whether the last run ended by a controlled shutdown (.kafka_cleanshutdown)."""
        self.is_full = False
        """Whether no space is left; then no broker can run on this disk."""
        self.runs = 0
        """The number of processes that have run on this disk; a replaced disk keeps the count."""

    def __iter__(self) -> Iterator[Log]:
        return iter(self.logs.values())

    def log(self, topic_id: bytes, partition: int) -> Log | None:
        return self.logs.get((topic_id, partition))

    def create(self, topic_id: bytes, partition: int, topic: str = "") -> Log:
        """Return the log of a replica, creating it if necessary.  `topic`: the topic's name, which
        in Kafka is part of the name of the log's directory."""
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
        """Delete a log; True if there was one."""
        self._dir_of.pop((topic_id, partition), None)
        log = self.logs.pop((topic_id, partition), None)
        if log is None:
            return False
        self._unwritten.pop(log, None)
        return True

    # -------------------------------------------------------------------------- log directories

    def mount(self, dirs: tuple[str, ...]) -> None:
        """Set the log directories; logs of a directory that is no longer set move to the first."""
        self.dirs = tuple(dict.fromkeys(dirs))
        self._dir_of = {key: at for key, at in self._dir_of.items() if at in self.dirs[1:]}
        self._preferred = {key: at for key, at in self._preferred.items() if at in self.dirs}

    def dir_of(self, key: LogKey) -> str:
        """The directory in which a log is."""
        return self._dir_of.get(key, self.dirs[0])

    def move(self, key: LogKey, log_dir: str) -> None:
        """Move a log to `log_dir`, one of `dirs`."""
        assert log_dir in self.dirs, log_dir
        if log_dir == self.dirs[0]:
            self._dir_of.pop(key, None)
        else:
            self._dir_of[key] = log_dir

    def prefer(self, key: LogKey, log_dir: str) -> None:
        """Remember that a log that does not exist yet will be created in `log_dir`."""
        self._preferred[key] = log_dir

    def _emptiest(self) -> str:
        """The directory with the fewest logs.  Kafka: LogManager.nextLogDirs."""
        counts = dict.fromkeys(self.dirs, 0)
        for key in self.logs:
            counts[self.dir_of(key)] += 1
        return min(counts, key=counts.__getitem__)

    @property
    def usable_bytes(self) -> int:
        """The free part of CAPACITY_BYTES; 0 if the logs exceed it."""
        return max(0, CAPACITY_BYTES - self.size_bytes)

    @property
    def size_bytes(self) -> int:
        """Bytes of all logs, each replica counted as if it had its own copy."""
        return sum(log.size_bytes for log in self.logs.values())

    def flush(self) -> None:
        """Write everything to the disk, as a clean shutdown does; everything then survives a power
        loss."""
        for log in self.logs.values():
            log.flush()

    def find_unwritten(self) -> None:
        """Look through all logs, once at the start of a process, for records that `write_back` must
        write."""
        self._unwritten = {log: None for log in self.logs.values() if log.has_unflushed}

    def add_unwritten(self, logs: Iterable[Log]) -> None:
        """Have `write_back` look at these logs too, because they have changed."""
        self._unwritten.update(dict.fromkeys(logs))

    def write_back(self, now_ms: int) -> None:
        """Write back each log that has had unwritten records for `write_back_ms`: all of it, as
        Linux does with a file whose oldest dirty page is that old."""
        for log in self._unwritten:
            log.flush_if_older(now_ms, self.write_back_ms)
        self._unwritten = {log: None for log in self._unwritten if log.has_unflushed}

    def lose_unflushed(self) -> tuple[LostRange, ...]:
        """Lose power; return the lost records of each affected log."""
        self.clean_shutdown = False
        lost = []
        for (topic_id, partition), log in self.logs.items():
            count = log.lose_unflushed()
            if count:
                end = log.log_end_offset
                lost.append(LostRange(self._topics.get(topic_id, ""), partition, end, end + count))
        return tuple(lost)

    def wipe(self) -> None:
        """Replace the disk by an empty one."""
        self.logs.clear()
        self._unwritten.clear()
        self._dir_of.clear()
        self._preferred.clear()
        self.broker_epoch = -1
        self.clean_shutdown = False
