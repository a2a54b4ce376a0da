"""The timers of one group: the sessions of its members, and its phases.

Owns: their keys, ("group", id, "member", member id), ("group", id, timer, member id) and ("group",
id, phase).  Never: knows the effect of a timer.  Kafka: CoordinatorTimer, as GroupMetadataManager
uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kcluster.timers import Timers


class GroupTimers:
    """A view of the broker's timers: setting one again moves it, and cancelling a missing one is no
    error."""

    def __init__(self, timers: Timers, group_id: str) -> None:
        self._timers = timers
        self._group_id = group_id

    def start_session(
        self, member_id: str, ends_ms: int, on_expired: Callable[[str, int], None]
    ) -> None:
        """Call `on_expired(member_id, now_ms)` at `ends_ms`, unless the session is started
        again."""
        key = ("group", self._group_id, "member", member_id)
        self._timers.set(key, ends_ms, lambda now_ms: on_expired(member_id, now_ms))

    def end_session(self, member_id: str) -> None:
        self._timers.cancel(("group", self._group_id, "member", member_id))

    def end_sessions(self, member_ids: Iterable[str]) -> None:
        for member_id in member_ids:
            self.end_session(member_id)

    def start_of_member(
        self, timer: str, member_id: str, ends_ms: int, on_end: Callable[[int], None]
    ) -> None:
        """A timer of a member besides its session."""
        self._timers.set(("group", self._group_id, timer, member_id), ends_ms, on_end)

    def has_of_member(self, timer: str, member_id: str) -> bool:
        return ("group", self._group_id, timer, member_id) in self._timers

    def end_of_member(self, timer: str, member_id: str) -> None:
        self._timers.cancel(("group", self._group_id, timer, member_id))

    def start_phase(self, phase: str, ends_ms: int, on_end: Callable[[int], None]) -> None:
        self._timers.set(("group", self._group_id, phase), ends_ms, on_end)

    def has_phase(self, phase: str) -> bool:
        return ("group", self._group_id, phase) in self._timers

    def end_phase(self, phase: str) -> None:
        self._timers.cancel(("group", self._group_id, phase))
