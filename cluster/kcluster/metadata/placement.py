"""The partition of an internal topic, and so the broker, that coordinates a key.

Owns: that function.  Never: knows the topic, or the meaning of the key.
Kafka: GroupCoordinatorService.partitionFor, TransactionStateManager.partitionFor, Utils.abs.
"""

from __future__ import annotations

from typing import Final

from kcluster.protocol.java import java_hash_code

_SMALLEST_INT32: Final = -(1 << 31)


def coordinator_partition(key: str, partition_count: int) -> int:
    """The partition for a group id or a transactional id, of a topic with `partition_count`."""
    code = java_hash_code(key)
    return (0 if code == _SMALLEST_INT32 else abs(code)) % partition_count
