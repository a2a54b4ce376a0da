"""Collisions between the names of topics.

Owns: the names that count as taken because '.' and '_' count as equal.  Never: knows topics
(topics.py adds and removes names), or the rules for a name (protocol/names.py). Kafka:
org.apache.kafka.common.internals.Topic, KIP-11.
"""

from __future__ import annotations


class TopicNames:
    """The existing topics' names with '.' or '_', which metric names do not distinguish."""

    __slots__ = ("_by_unified",)

    def __init__(self) -> None:
        self._by_unified: dict[str, dict[str, None]] = {}

    def add(self, name: str) -> None:
        if _has_collision_chars(name):
            self._by_unified.setdefault(name.replace(".", "_"), {})[name] = None

    def remove(self, name: str) -> None:
        unified = name.replace(".", "_")
        names = self._by_unified.get(unified)
        if names is not None:
            names.pop(name, None)
            if not names:
                del self._by_unified[unified]

    def collision(self, name: str) -> str | None:
        """The name of an existing topic that differs from `name` only in '.' and '_'."""
        if not _has_collision_chars(name):
            return None
        return next(iter(self._by_unified.get(name.replace(".", "_"), {})), None)


def _has_collision_chars(name: str) -> bool:
    return "." in name or "_" in name
