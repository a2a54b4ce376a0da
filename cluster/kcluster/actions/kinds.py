"""What the keys of actions hold: partitions, and words for nodes.

Owns: these kinds of values.  Never: finds a node (operations/targets.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

from kcluster.config.files.fields import Words
from kcluster.operations.names import partition_name
from kcluster.operations.targets import TARGETS_SHOWN, targets

PARTITION: Final = Words(
    "a partition like orders-0", partition_name, brief="partition such as orders-0"
)
TARGETS: Final = Words(TARGETS_SHOWN, targets, lists=True, brief="targets")
"""Nodes: brokers, the controller, clients."""
BROKERS: Final = Words(TARGETS_SHOWN, targets, lists=True, brief="targets (brokers)")
"""Brokers, and the controller where the action says so."""
