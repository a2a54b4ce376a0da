"""The settings that allow an anomaly, by the words a verdict uses for them.

Owns: each setting's text, in this place only: it is matched by scenarios, the audit and charts.
Never: decides which one applies.  Kafka: the names of its configs, where a config is meant.
"""

from __future__ import annotations

from typing import Final, NewType

Setting = NewType("Setting", str)

NO_SETTING: Final = Setting("")
"""Nothing allows it: the anomaly is a bug."""
UNCLEAN: Final = Setting("unclean.leader.election.enable=true")
UNCLEAN_REQUESTED: Final = Setting("an unclean election requested by the operator")
DISK_LOST: Final = Setting("a disk lost")
UNFLUSHED: Final = Setting("power lost before a flush")
NOT_IDEMPOTENT: Final = Setting("enable.idempotence=false")
ACKS_PREFIX: Final = "acks="
ACKS_ALL: Final = -1


def acks_setting(acks: int) -> Setting:
    """`acks=0` or `acks=1`; acks=all allows nothing."""
    return NO_SETTING if acks == ACKS_ALL else Setting(f"{ACKS_PREFIX}{acks}")


def retry_setting(is_idempotent: bool) -> Setting:
    """What allows a retry to append a batch twice, or behind a later one."""
    return NO_SETTING if is_idempotent else NOT_IDEMPOTENT
