"""Versions of APIs in ApiVersions answers: clients get only those that the proxy can read.

Owns: this cap.  Never: caps an API for a user (faults/ does, as a rule's effect).
Kafka: ApiVersionsResponse.controllerApiVersions; KIP-511.

Otherwise a client of a newer cluster could send a version in which the proxy cannot find the
addresses that it must replace, and would go past it.
"""

from __future__ import annotations

from typing import Final

from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS

MAX_ANSWERS: Final = 64


class PlainAnswers:
    """ApiVersions answers that were found to need no change: every client asks first of all."""

    def __init__(self) -> None:
        self._answers: set[bytes] = set()

    def add(self, answer: memoryview) -> None:
        """Remember an answer, without its correlation id."""
        if len(self._answers) < MAX_ANSWERS:
            self._answers.add(bytes(answer))

    def __contains__(self, answer: memoryview) -> bool:
        return bytes(answer) in self._answers


def capped(answer: m.ApiVersionsResponse) -> bool:
    """Leave out unknown APIs and versions, in place; returns whether there were any."""
    kept = []
    is_changed = False
    for line in answer.api_keys:
        known = APIS.get(line.api_key)
        if known is None or line.min_version > known.all_versions[1]:
            is_changed = True
            continue
        if line.max_version > known.all_versions[1]:
            line.max_version = known.all_versions[1]
            is_changed = True
        kept.append(line)
    answer.api_keys = kept
    return is_changed


def make_too_new(frame: memoryview) -> None:
    """Change the version of an ApiVersions request that the proxy cannot read, in place, to one
    that no broker knows: the broker then answers in version 0, with its own versions."""
    frame[2:4] = b"\x7f\xff"
