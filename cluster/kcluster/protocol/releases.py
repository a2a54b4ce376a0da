"""Kafka's releases: the APIs and versions that the brokers of each release list, and the errors
that they know.

Owns: the table releases.txt, and the names by which a user may refer to a release.  Never: knows
which APIs our broker has handlers for (broker/versions.py).
Kafka: ApiKeys and Errors of each release; tools/read_versions.py reads them from the jars.

    0 PRODUCE  0.11 0-3  1.0 0-5  2.0 0-6

that is: API key, name, then pairs of a release and the versions listed from that release on; `-`:
no version from then on.  Up to 3.2 these are the versions of a ZooKeeper broker, from 3.3 on those
of a KRaft broker (KIP-833). 0.11 is the oldest release because earlier brokers did not store format
v2 (KIP-98), the only format of logs here.
"""

from __future__ import annotations

from functools import cache
from typing import Final, final

from kcluster.packaged import packaged_text
from kcluster.protocol.codec.schema import Versions

FIRST_KRAFT: Final = (3, 3)

_METADATA_VERSIONS: Final = {
    (3, 3): 7, (3, 4): 8, (3, 5): 11, (3, 6): 14, (3, 7): 19, (3, 8): 20, (3, 9): 21, (4, 0): 25,
    (4, 1): 27, (4, 2): 29, (4, 3): 30, (4, 4): 33,
}  # fmt: skip
"""Release -> its highest level of the feature metadata.version (KIP-778).  Kafka:
MetadataVersion."""


@final
class Release:
    """One release, such as `2.8`, in the state of its last patch.

    `listed`: API key -> versions that its brokers list.  `highest_error`: its greatest error code.
    `metadata_version`: 0 for releases without that feature.
    """

    __slots__ = ("highest_error", "listed", "metadata_version", "name", "number")

    def __init__(
        self, name: str, number: tuple[int, int], listed: dict[int, Versions], highest_error: int
    ) -> None:
        self.name = name
        self.number = number
        self.listed = listed
        self.highest_error = highest_error
        self.metadata_version = _METADATA_VERSIONS.get(number, 0)

    def __repr__(self) -> str:
        return f"<Kafka {self.name}>"

    @property
    def is_kraft(self) -> bool:
        """Whether its brokers forward to a separate controller; otherwise one broker is the
        controller."""
        return self.number >= FIRST_KRAFT


@cache
def releases() -> dict[str, Release]:
    """Name -> release, oldest first."""
    rows = [
        [cell.split() for cell in line.split("  ")]
        for line in packaged_text("protocol/releases.txt").splitlines()
        if not line.startswith("#")
    ]
    names = rows[0][0][1:]
    numbers = {name: _number(name) for name in names}
    errors: dict[str, str] = {}
    listed: dict[str, dict[int, Versions]] = {name: {} for name in names}
    for head, *changes in rows[1:]:
        since = dict(changes)
        value = "-"
        for name in names:
            value = since.get(name, value)
            if head == ["errors"]:
                errors[name] = value
            elif value != "-":
                low, _, high = value.partition("-")
                listed[name][int(head[0])] = int(low), int(high)
    return {name: Release(name, numbers[name], listed[name], int(errors[name])) for name in names}


@cache
def latest() -> Release:
    """The release that a cluster simulates by default."""
    return list(releases().values())[-1]


def find_release(text: str) -> Release | None:
    """The release that `text` names: `2.8`, or one of its patches, `2.8.2`; None if `text` names
    none."""
    known = releases()
    parts = text.split(".")
    # Before 1.0, a release had three numbers and a patch four.
    for length in (3, 2) if parts[0] == "0" else (2,):
        release = known.get(".".join(parts[:length]))
        rest = parts[length:]
        if release is not None and len(rest) <= 2 and all(_is_number(part) for part in rest):
            return release
    return None


def _number(name: str) -> tuple[int, int]:
    major, _, minor = name.partition(".")
    return int(major), int(minor)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 3
