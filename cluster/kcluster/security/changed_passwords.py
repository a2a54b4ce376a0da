"""The passwords that actions have given to users of a running cluster.

Owns: these passwords, in memory only.  Never: shows one, decides whether it is still in force (the
metadata does).  Kafka: no counterpart; an administrator's notes.
"""

from __future__ import annotations

from typing import final


@final
class ChangedPasswords:
    """The passwords of one cluster's users that its topology does not have; in no repr."""

    def __init__(self) -> None:
        self._given: dict[str, dict[str, None]] = {}

    def give(self, user: str, password: str) -> None:
        """Take note of a user's new password."""
        given = self._given.setdefault(user, {})
        given.pop(password, None)
        given[password] = None

    def of(self, user: str) -> tuple[str, ...]:
        """The passwords that a user was given, newest first: the newest is most often in force, and
        each comparison with a credential takes a millisecond of computing."""
        return tuple(reversed(self._given.get(user, {})))
