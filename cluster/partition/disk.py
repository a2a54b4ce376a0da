"""What survives a broker's process: its logs, and what the last run left behind.

Owns: the logs of one broker by topic id and partition.  Never: outlives `wipe`; decides which
replicas there should be (broker/node.py).  Kafka: LogManager, log directory, BrokerState files.

Process killed: nothing is lost, the page cache is the machine's.  Power lost: `lose_unflushed`.
Disk replaced: `wipe`.
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster.partition.log import Log

LogKey = tuple[bytes, int]
"""(topic id, partition)."""


class Disk:
    """See module.  `logs` keeps the order of creation."""

    __slots__ = ("broker_epoch", "clean_shutdown", "logs", "runs")

    def __init__(self) -> None:
        self.logs: dict[LogKey, Log] = {}
        self.broker_epoch = -1
        """Of the last run, -1 for none: sent in the next registration (KIP-966)."""
        self.clean_shutdown = False
        """Whether the last run ended by a controlled shutdown (.kafka_cleanshutdown)."""
        self.runs = 0
        """How many processes have run on it; goes on counting when the disk is replaced."""

    def __iter__(self) -> Iterator[Log]:
        return iter(self.logs.values())

    def log(self, topic_id: bytes, partition: int) -> Log | None:
        return self.logs.get((topic_id, partition))

    def create(self, topic_id: bytes, partition: int) -> Log:
        """Return the log of that replica, created if it is not there."""
        key = (topic_id, partition)
        log = self.logs.get(key)
        if log is None:
            log = self.logs[key] = Log(topic_id, partition)
        return log

    def remove(self, topic_id: bytes, partition: int) -> bool:
        """Delete a log; whether there was one."""
        return self.logs.pop((topic_id, partition), None) is not None

    @property
    def size_bytes(self) -> int:
        """Bytes of all logs, each replica counted as if it had its own copy."""
        return sum(log.size_bytes for log in self.logs.values())

    def flush(self) -> None:
        """Everything written so far survives a power loss: a clean shutdown does this."""
        for log in self.logs.values():
            log.flush()

    def lose_unflushed(self) -> int:
        """Power was lost; return how many records are gone, over all logs."""
        self.clean_shutdown = False
        return sum(log.lose_unflushed() for log in self.logs.values())

    def wipe(self) -> None:
        """The disk was replaced by an empty one."""
        self.logs.clear()
        self.broker_epoch = -1
        self.clean_shutdown = False
