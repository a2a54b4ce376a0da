"""The values of actions' keys: partitions, words for nodes, releases.

Owns: these kinds of values.  Never: finds a node (operations/targets.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

from kcluster.config.files.fields import Words
from kcluster.config.topology.values import unknown_version
from kcluster.operations.names import partition_name
from kcluster.operations.targets import TARGETS_SHOWN, targets
from kcluster.protocol.releases import find_release


def _release_name(text: str) -> str:
    known = find_release(text.strip())
    if known is None:
        raise ValueError(unknown_version(text))
    return known.name


PARTITION: Final = Words(
    "a partition like orders-0", partition_name, brief="partition such as orders-0"
)
TARGETS: Final = Words(TARGETS_SHOWN, targets, lists=True, brief="targets")
"""The kind of values for nodes: brokers, the controller, clients."""
BROKERS: Final = Words(TARGETS_SHOWN, targets, lists=True, brief="targets (brokers)")
"""The kind of values for brokers, and for the controller if the action allows it."""
RELEASE: Final = Words("a release like 3.9", _release_name, brief="release such as 3.9")
"""The kind of values for a Kafka release, by its name."""
