"""Every API that a broker lists: a body of defaults, a truncated body, trailing bytes, versions
that are not served.  Generated.  APIs that we do not serve are recorded, too, for later.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack

from kcluster.conform.case import Case
from kcluster.conform.references import Reference
from kcluster.protocol.apis import TELEMETRY, VERSIONS, ApiKey

TOUCHES_OTHERS = {
    ApiKey.ELECT_LEADERS: "its default is an election of everything",
    ApiKey.METADATA: "tells others' topics",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "tells others' topics",
    ApiKey.LIST_GROUPS: "tells others' groups",
    ApiKey.OFFSET_FETCH: "asks for the group without a name, which lives on any broker",
    ApiKey.FIND_COORDINATOR: "asks for the group without a name, which lives on any broker",
    ApiKey.LIST_TRANSACTIONS: "tells others' transactions",
    ApiKey.DESCRIBE_LOG_DIRS: "tells of all disks",
    ApiKey.LIST_CONFIG_RESOURCES: "tells others' topics",
}
"""APIs whose defaults are about the whole cluster, which may be shared."""


def claims(version: int) -> Callable[[bytes], bytes]:
    """A header with another version than the body."""
    return lambda frame: frame[:2] + pack(">h", version) + frame[4:]


def _without_end(frame: bytes) -> bytes:
    return frame[:-1]


def _with_more(frame: bytes) -> bytes:
    return frame + b"\x01\x02"


def cases_of(reference: Reference) -> tuple[Case, ...]:
    """As many as this release lists APIs and versions."""
    found: list[Case] = []
    for api in sorted(map(ApiKey, reference.release.listed)):
        if api in TELEMETRY:
            continue  # listed only with a reporter of metrics, as none here has
        low, high = reference.served(api)
        name = api.name.lower()
        if api not in TOUCHES_OTHERS:
            found.append(Case(f"{name}: defaults", api))
        ends = f"{low},{high}"
        found.append(Case(f"{name}: cut short", api, {}, ends, bend=_without_end))
        if api not in TOUCHES_OTHERS:
            found.append(Case(f"{name}: bytes behind it", api, {}, ends, bend=_with_more))
        found += [  # an unstable one, and the one after the newest
            Case(f"{name}: version {past}", api, {}, str(high), bend=claims(past))
            for past in range(high + 1, VERSIONS[api][1] + 2)
        ]
        if low > 0:
            found.append(
                Case(f"{name}: version {low - 1}", api, {}, str(low), bend=claims(low - 1))
            )
    return (*found, *CASES)


_BROKEN = ApiKey.DESCRIBE_CLUSTER
CASES = (
    Case("no such api", _BROKEN, {}, "0", bend=lambda frame: pack(">h", 999) + frame[2:]),
    Case("api -1", _BROKEN, {}, "0", bend=lambda frame: pack(">h", -1) + frame[2:]),
    Case("leader and isr, gone since 4.0", _BROKEN, {}, "0",
         bend=lambda frame: pack(">h", 4) + frame[2:]),
    Case("vote, the controllers' own", _BROKEN, {}, "0",
         bend=lambda frame: pack(">hh", 52, 0) + frame[4:]),
    Case("broker registration, the controllers' own", _BROKEN, {}, "0",
         bend=lambda frame: pack(">hh", 62, 0) + frame[4:]),
    Case("a frame of nothing", _BROKEN, {}, "0", bend=lambda frame: b""),
    Case("a frame of 3 bytes", _BROKEN, {}, "0", bend=lambda frame: frame[:3]),
    Case("a frame of half a header", _BROKEN, {}, "0", bend=lambda frame: frame[:9]),
    Case("client id longer than the frame", _BROKEN, {}, "0",
         bend=lambda frame: frame[:8] + pack(">h", 9999) + frame[10:]),
    Case("client id of length -5", _BROKEN, {}, "0",
         bend=lambda frame: frame[:8] + pack(">h", -5) + frame[10:]),
    Case("client id that is no utf-8", _BROKEN, {}, "0",
         bend=lambda frame: frame.replace(b"compare", b"comp\xff\xfee")),
    Case("empty client id", _BROKEN, {}, client_id=""),
    Case("no client id", _BROKEN, {}, client_id=None),
)  # fmt: skip
