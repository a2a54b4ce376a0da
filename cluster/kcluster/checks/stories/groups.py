"""The loss of a group's state: its coordinator's log began without it.

Owns: the choice of the group's record that matters.  Never: guesses: each link is a note. Kafka: no
counterpart.
"""

from __future__ import annotations

from kcluster.broker.coordinator.group_log import LogRecord, OffsetRecord
from kcluster.broker.coordinator.group_records import decode_batch
from kcluster.checks.chain.links import Link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.losses import losses
from kcluster.clients.ledger import Partition
from kcluster.events.partitions import BecameLeader
from kcluster.evidence.group_history import group_home
from kcluster.evidence.lookups import Facts


def group_losses(
    facts: Facts, group: str, written_ms: int, until_ms: int, committed: Partition | None = None
) -> tuple[list[Link], Setting]:
    """The events that removed a group's last record written until `written_ms`, and the setting
    that allowed them; none if each leader until `until_ms` had the record.  `committed`: the last
    commit for this partition."""
    home = group_home(facts.recorder, group)
    if home is None:
        return [], Setting.NONE
    for observed in facts.recorder.of_partition(home):
        for append in reversed(observed.appends):
            if append.at_ms > written_ms:
                continue
            if any(_is_of(record, group, committed) for record in decode_batch(append.batch)):
                began_without = any(
                    began.leader_epoch > append.epoch
                    and began.start_offset <= append.base_offset
                    and note.at_ms <= until_ms
                    for note, began in facts.of_partition(
                        (observed.topic, observed.partition), BecameLeader
                    )
                )
                if not began_without:
                    break
                links, allowed = losses(facts, observed, append, append.base_offset)
                return [one for one in links if one.at_ms <= until_ms], allowed
    return [], Setting.NONE


def _is_of(record: LogRecord, group: str, committed: Partition | None) -> bool:
    if committed is None:
        return record.group_id == group
    return isinstance(record, OffsetRecord) and record.key == (group, *committed)
