"""The conditions of a real Kafka: those of a simulated cluster, and an error for a start that has
failed.

Owns: which condition a process that has ended by itself makes impossible.  Never: waits.
Kafka: KafkaServer's fatal errors, after which its JVM exits.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcluster.operations.errors import ClusterError
from kcluster.operations.settled import Settled
from kcluster.runtime.dispatch import Dispatcher


class KafkaSettled(Settled):
    """Conditions on a real Kafka.  `ended`: why a node has ended by itself, by its id; a start of
    the node removes it."""

    def __init__(self, dispatcher: Dispatcher, ended: Mapping[int, str]) -> None:
        super().__init__(dispatcher)
        self._ended = ended

    def has_started(self) -> bool:
        for reason in self._ended.values():
            raise ClusterError(reason)
        return super().has_started()

    def has_come_up(self, broker_id: int) -> bool:
        if broker_id in self._ended:
            raise ClusterError(self._ended[broker_id])
        return super().has_come_up(broker_id)
