"""What changed in the answers of Apache Kafka from one release to the next, in words.

Owns: the table.  Never: has a change that no recorded answer shows (what_changed.py finds them).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Change(Struct, frozen=True):
    """Explains the changed answers of some cases (`family: case`) at some paths; both are globs.
    Without a text, a table of the page shows it."""

    area: str
    text: str
    cases: tuple[str, ...]
    paths: tuple[str, ...] = ("*",)


_NEW_CONFIGS = (
    "*.errors.deadletterqueue.*", "*.max.decompressed.message.bytes", "*.remote.copy.lag.*",
    "*.group.streams.*", "*.streams.assignor.name", "*.streams.rack.aware.assignment.tags",
    "*.sasl.oauthbearer.allow.unverified.*", "*.group.*.assignor.offload.enable",
)  # fmt: skip

CHANGES: Final[tuple[Change, ...]] = (
    Change(
        "tables",
        "",
        ("metadata: versions*", "wire: api_versions: *"),
        ("*.api_keys*", "*.supported_features*", "*.finalized_features*"),
    ),
    Change("tables", "", ("*",), _NEW_CONFIGS),
    Change(
        "Produce",
        "Of a compressed batch that is stored as it came, the length of each record is checked: a"
        " negative one, or one above max.decompressed.message.bytes, is INVALID_RECORD. 4.3 appends"
        " such a batch, and its consumers get the error.",
        ("produce: records, *: length *",),
    ),
    Change(
        "Configs and quotas",
        "An unknown operation on a broker's logger is INVALID_REQUEST, no longer"
        " UNKNOWN_SERVER_ERROR.",
        ("alter_configs: logger: operation 9",),
    ),
    Change(
        "Configs and quotas",
        "A quota must be a finite number. 4.3 takes NaN, and an infinite request_percentage.",
        ("quotas: quotas, * nan", "quotas: quotas, * inf"),
    ),
    Change(
        "Groups",
        "JoinGroup with a subscription that cannot be decoded is answered. 4.3 never responds to"
        " it.",
        ("groups: join: no subscription",),
    ),
    Change(
        "Groups",
        "A consumer that joins a classic group whose member has a malformed assignment gets"
        " GROUP_ID_NOT_FOUND, no longer UNKNOWN_SERVER_ERROR.",
        ("group_kinds: classic, a member: joins as a consumer",),
    ),
    Change(
        "Share groups",
        "ShareFetch of an unknown topic id alone opens the session and is UNKNOWN_TOPIC_ID for the"
        " topic, no longer UNKNOWN_SERVER_ERROR for the request.",
        ("share: fetch: unknown topic",),
    ),
    Change(
        "Streams groups",
        "Heartbeats have the interval in which clients report their tasks' offsets,"
        " `task_offset_interval_ms`: 60,000 by default. 4.3 sends 0.",
        ("*",),
        ("*.task_offset_interval_ms", "*.acceptable_recovery_lag*"),
    ),
)
