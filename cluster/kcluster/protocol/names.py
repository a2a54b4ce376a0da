"""Names of topics: the rules for them, and the names of the internal topics.

Owns: these rules, these names, and which topics are internal.  Never: creates a topic or decides
who may write to it.  Kafka: org.apache.kafka.common.internals.Topic.

There are two tests.  `is_internal` is Kafka's: it holds for exactly the topics that clients see
marked as internal.  `has_internal_prefix` is this project's: reports and workloads leave out every
topic whose name starts with two underscores.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
"""The controllers' log.  Clients never see it as a topic, so INTERNAL_TOPICS does not have it."""

INTERNAL_TOPICS: Final = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)

INTERNAL_PREFIX: Final = "__"

MAX_NAME_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def is_internal(topic: str) -> bool:
    """Whether clients see the topic marked as internal.  Kafka: Topic.isInternal."""
    return topic in INTERNAL_TOPICS


def has_internal_prefix(name: str) -> bool:
    """Whether a topic's name, or a partition's such as `__consumer_offsets-7`, starts with `__`."""
    return name.startswith(INTERNAL_PREFIX)


class NameFault(Enum):
    """The faults that a topic's name can have."""

    EMPTY = auto()
    DOTS = auto()
    LENGTH = auto()
    CHARACTERS = auto()


def name_fault(name: str) -> NameFault | None:
    """The fault that makes this name invalid for a topic; None if it is valid.  Kafka:
    Topic.validate."""
    if not name:
        return NameFault.EMPTY
    if name in (".", ".."):
        return NameFault.DOTS
    if len(name) > MAX_NAME_LENGTH:
        return NameFault.LENGTH
    return None if _LEGAL.fullmatch(name) else NameFault.CHARACTERS


def name_problem(name: str) -> str | None:
    """The fault of a topic's name in Kafka's words; None if there is none."""
    match name_fault(name):
        case None:
            return None
        case NameFault.EMPTY:
            problem = "the empty string is not allowed"
        case NameFault.DOTS:
            problem = f"'{name}' is not allowed"
        case NameFault.LENGTH:
            bound = f"the max allowed length {MAX_NAME_LENGTH}"
            problem = f"the length of '{name}' is longer than {bound}"
        case NameFault.CHARACTERS:
            problem = (
                f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_'"
                " and '-'"
            )
    return f"Topic name is invalid: {problem}"
