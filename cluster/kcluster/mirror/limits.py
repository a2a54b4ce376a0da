"""What cannot be done to a real Kafka from outside, and why.

Owns: the limits, with their reasons.  Never: refuses anything itself (verbs.py does; a scenario is
refused before it starts: scenario/play/on_kafka.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.operations.errors import ClusterError


class KafkaLimit(Struct, frozen=True):
    """Something that a real Kafka does not allow from outside.  `what`: a noun; `why`: a clause."""

    what: str
    why: str

    @property
    def text(self) -> str:
        """The refusal, in one line."""
        return f"{self.what} cannot be done to a real Kafka: {self.why}"


class RefusedOnKafka(ClusterError):
    """The error for an operation that a real Kafka does not allow from outside."""

    def __init__(self, limit: KafkaLimit) -> None:
        super().__init__(limit.text)
        self.limit = limit


_ADDRESS: Final = "its listeners are fixed when its process starts"
_THE_BROKER: Final = "only the broker itself can"
_DISK: Final = "its directories are on this machine's disk"

POWER_LOSS: Final = KafkaLimit(
    "a power loss", "this machine's page cache survives the process, so no record would be lost"
)
UPGRADE: Final = KafkaLimit("an upgrade", "all nodes run one installation")
NEW_ADDRESS: Final = KafkaLimit("a new address", _ADDRESS)
ADVERTISED: Final = KafkaLimit("a new advertised address", _ADDRESS)
NEW_BROKER: Final = KafkaLimit("adding a broker", "the processes are those of the topology")
FULL_DISK: Final = KafkaLimit("filling a disk", _DISK)
SLOW_DISK: Final = KafkaLimit("a slow disk", _DISK)
CERTIFICATE: Final = KafkaLimit("replacing a certificate", "its keystores are files")
SESSIONS: Final = KafkaLimit("ending sessions", _THE_BROKER)
TOKENS: Final = KafkaLimit("expiring tokens", _THE_BROKER)
NODE_RULE: Final = KafkaLimit(
    "a rule between nodes", "nodes talk to each other without a proxy between them"
)
UNSEEN_EVENT: Final = KafkaLimit("waiting for this event", "only the brokers themselves report it")


def no_rule(no_proxy: str) -> KafkaLimit:
    """The limit of rules where no proxy can be before the brokers."""
    return KafkaLimit("a rule", f"it needs a proxy before the brokers; {no_proxy}")
