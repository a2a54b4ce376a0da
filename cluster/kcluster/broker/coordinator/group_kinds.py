"""The kinds of groups: the class to which each group record in the log belongs.

Owns: that table, the list of kinds with classic members, and the kind of a group that no member has
joined.  Never: knows the behaviour of a kind.  Kafka: GroupMetadataManager.replay (one method per
record type).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.consumer.classic_side import ConsumerGroupClassicSide
from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.group import ClassicSide, Group
from kcluster.broker.coordinator.group_log import ClassicGroupRecord, GroupRecord
from kcluster.broker.coordinator.interface import GroupHome
from kcluster.broker.coordinator.modern.records import CONSUMER, SHARE, STREAMS
from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.broker.coordinator.streams.group import StreamsGroup

KIND_OF_RECORD: Final[Mapping[type[GroupRecord], type[Group]]] = {
    ClassicGroupRecord: ClassicGroup,
    **dict.fromkeys(CONSUMER.all, ConsumerGroup),
    **dict.fromkeys(STREAMS.all, StreamsGroup),
    **dict.fromkeys(SHARE.all, ShareGroup),
}

CLASSIC_SIDE: Final[Mapping[type[Group], Callable[[Any], ClassicSide]]] = {
    ClassicGroup: lambda group: group,
    ConsumerGroup: ConsumerGroupClassicSide,
}
"""The classic members' interface of the kinds that may have such members."""

WITHOUT_MEMBERS: Final[Callable[[str, GroupHome], Group]] = ClassicGroup
"""The kind of a group that only has offsets, by an admin or a consumer of assigned partitions."""
