"""Words for events of topics, configs and features.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from kcluster.events.topics import (
    ConfigChanged,
    FeatureChanged,
    PartitionsAdded,
    ResourceType,
    TopicCreated,
    TopicDeleted,
)
from kcluster.events.words.base import counted, text_of


@text_of.register
def _(event: TopicCreated) -> str:
    return (
        f"topic {event.topic} created: {counted(event.partition_count, 'partition')},"
        f" replication factor {event.replication_factor}"
    )


@text_of.register
def _(event: TopicDeleted) -> str:
    return f"topic {event.topic} deleted"


@text_of.register
def _(event: PartitionsAdded) -> str:
    return f"topic {event.topic}: {event.old_partition_count} -> {event.partition_count} partitions"


@text_of.register
def _(event: ConfigChanged) -> str:
    is_password = event.resource_type is ResourceType.USER
    shown = ", ".join(
        f"{config} removed"
        if value is None
        else f"new password by {config}"
        if is_password
        else f"{config}={value}"
        for config, value in event.configs.items()
    )
    of = "quotas of " if event.resource_type is ResourceType.QUOTA else ""
    return f"{of}{event.subject}: {shown}"


@text_of.register
def _(event: FeatureChanged) -> str:
    return f"{event.feature} changed from level {event.old_level} to {event.new_level}"
