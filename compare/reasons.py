"""Why an answer differs on purpose.

Owns: the table.  Never: hides a bug: what has no good reason is fixed.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Reason(Struct, frozen=True):
    """Explains differences of some cases (`family: case`) at some paths; both are globs."""

    area: str
    text: str
    cases: tuple[str, ...]
    paths: tuple[str, ...] = ("*",)


def apis(*keys: int) -> tuple[str, ...]:
    """Paths of some APIs in ApiVersions."""
    return tuple(f"answer.api_keys.{key}" for key in keys)


VERSIONS = ("metadata: versions*", "wire: api_versions*")

REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "quorum",
        "one controller that no broker is, and that has no listener: brokers are observers",
        ("quorum: quorum*",),
        ("*current_voters*", "*observers*", "*nodes*"),
    ),
    Reason(
        "APIs",
        "Transactions are not served.",
        VERSIONS,
        apis(24, 25, 26, 27, 28),
    ),
    Reason(
        "APIs",
        "Groups of KIP-848, share groups and groups of Kafka Streams are not served.",
        VERSIONS,
        apis(68, 69, 76, 77, 78, 79, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92),
    ),
    Reason(
        "bytes",
        "A string that is not UTF-8 closes the connection; Kafka puts replacement characters, so"
        " that two clients may come to have one name.",
        ("wire: client id that is no utf-8",),
    ),
    Reason(
        "produce",
        "Null records are INVALID_RECORD. Kafka never answers them, and nothing behind them on the"
        " connection.",
        ("produce: no records",),
    ),
    Reason(
        "produce",
        "Records are opened only where something depends on them, so a batch that says that it is"
        " compressed, and is not, is taken; its consumers find out.",
        ("produce: codec, but not compressed",),
    ),
    Reason(
        "groups",
        "What a consumer subscribes to is not read before somebody asks for it. Where it cannot be"
        " read Kafka's coordinator fails within and never answers JoinGroup.",
        ("groups: join: no subscription",),
    ),
)
