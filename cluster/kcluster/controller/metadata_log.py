"""The metadata log, and who of the quorum leads it: what outlives a controller's process.

Owns: the records, the leader epoch, the voters.  Never: applies a record (node.py does), replicates
them.
Kafka: __cluster_metadata and its snapshot, KafkaRaftClient's quorum state; KIP-595.

# DIFFERS: the voters share one log, and the fabric has one controller, whose process is that of
# whoever is active; docs/decisions/005.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcluster.contract import CONTROLLER_ID

if TYPE_CHECKING:
    from kcluster.controller.bootstrap import Bootstrap
    from kcluster.metadata.image import MetadataRecord

VOTERS: Final = (CONTROLLER_ID, CONTROLLER_ID + 1, CONTROLLER_ID + 2)


class MetadataLog:
    """See module.  `epoch`: 0 before anybody has led."""

    __slots__ = ("bootstrap", "epoch", "note_count", "records")

    def __init__(self) -> None:
        self.records: list[MetadataRecord] = []
        self.epoch = 0
        self.note_count = 0
        """Of controllers so far, so that no two of their notes have one name."""
        self.bootstrap: Bootstrap | None = None
        """What the first controller had still to create."""

    @property
    def leader(self) -> int:
        """The voter that is active, or was last."""
        return VOTERS[(self.epoch - 1) % len(VOTERS)]
