"""`kcluster status` as text: brokers, partitions, and the faults in force.

Owns: the columns and lines.  Never: asks the cluster (verbs/status.py does), prints.
Kafka: kafka-topics.sh --describe.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kcluster.cli.table import TextTable
from kcluster.json_types import JsonObject
from kcluster.protocol.names import GROUP_METADATA_TOPIC, has_internal_prefix

LINKS_SHOWN: Final = 6
"""The most links that a line names; the rest are counted."""
DROPPED_FIRST: Final = ("lag", "epoch", "end", "replicas")
"""The columns of partitions that a narrow terminal does without, in this order."""

CERTIFICATE: Final = "certificate"

Status = Mapping[str, Any]
"""The answer to a status request."""


def brokers_table(status: Status) -> TextTable:
    """One row per broker: its state, the numbers of partitions that it leads, and in whose ISR it
    is (users' topics and internal ones), and its Kafka release, unless all brokers run the newest
    known one."""
    from kcluster.protocol.releases import latest

    users, internal = _apart(status["partitions"])
    newest = latest().name
    versions = any(broker["kafka_version"] != newest for broker in status["brokers"])
    rows = []
    for broker in status["brokers"]:
        state = broker["state"]
        if broker["fenced"] and state != "down":
            state += ", fenced"
        rows.append(
            [
                str(broker["id"]),
                f"{broker['host']}:{broker['port']}" if broker["port"] else "-",
                broker["rack"] or "-",
                state,
                _with_internal(str(_led(users, broker)), _led(internal, broker), internal),
                _with_internal(_in_sync(users, broker), _in_sync(internal, broker), internal),
                *([broker["kafka_version"]] if versions else []),
            ]
        )
    headers = ("broker", "address", "rack", "state", "leads", "in sync")
    return TextTable((*headers, "kafka") if versions else headers, rows, ("rack", "address"))


def _apart(partitions: Iterable[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    users: list[JsonObject] = []
    internal: list[JsonObject] = []
    for partition in partitions:
        (internal if has_internal_prefix(partition["topic"]) else users).append(partition)
    return users, internal


def _led(partitions: Sequence[JsonObject], broker: JsonObject) -> int:
    return sum(partition["leader"] == broker["id"] for partition in partitions)


def _in_sync(partitions: Sequence[JsonObject], broker: JsonObject) -> str:
    held = [partition for partition in partitions if broker["id"] in partition["replicas"]]
    return f"{sum(broker['id'] in partition['isr'] for partition in held)}/{len(held)}"


def _with_internal(users: str, internal: object, has_internal: object) -> str:
    """A count of users' partitions and internal ones: `3 (+27 internal)`."""
    return f"{users} (+{internal} internal)" if has_internal else users


def partitions_table(partitions: Iterable[JsonObject]) -> TextTable:
    """One row per partition; a dash if no leader can be asked."""
    rows = []
    for partition in partitions:
        behind = {broker: lag for broker, lag in partition["lag"].items() if lag}
        rows.append(
            [
                f"{partition['topic']}-{partition['partition']}",
                _or_dash(partition["leader"]),
                str(partition["leader_epoch"]),
                ",".join(map(str, partition["replicas"])),
                ",".join(map(str, partition["isr"])) or "-",
                _or_dash(partition["high_watermark"]),
                _or_dash(partition["log_end_offset"]),
                " ".join(f"{broker}:{lag}" for broker, lag in behind.items())
                or ("0" if partition["leader"] is not None else "-"),
            ]
        )
    headers = ("partition", "leader", "epoch", "replicas", "isr", "hw", "end", "lag")
    return TextTable(headers, rows, DROPPED_FIRST)


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def tables_of(status: Status, topic: str | None) -> list[TextTable]:
    """The brokers, and the partitions of `topic` or, if it is None, the partitions of users'
    topics."""
    users, _ = _apart(status["partitions"])
    shown = users if topic is None else status["partitions"]
    tables = [brokers_table(status), *([partitions_table(shown)] if shown else [])]
    if topic is None and status.get("security"):
        tables += [one for one in security_tables(status) if one.rows]
    return tables


def security_tables(status: Status) -> Iterator[TextTable]:
    """Who is logged in where, and what expires."""
    security, now_ms = status["security"], status["at_ms"]
    names = {f"client-{node}": name for node, name in status["clients"].items()}
    logins = [
        [
            names.get(one["client_id"], one["client_id"]) or "-",
            one["principal"],
            str(one["broker"]),
            one["listener"],
            one["mechanism"] or "-",
            str(one["connections"]),
            "-" if one["ends_ms"] is None else f"{(one['ends_ms'] - now_ms) / 1_000:.1f} s",
        ]
        for one in security["logins"]
    ]
    headers = ("client", "principal", "broker", "listener", "mechanism", "connections", "ends in")
    yield TextTable(headers, logins, ("mechanism", "connections", "listener"))
    credentials = [
        [one["owner"], one["kind"], one["name"], one["state"], _end_of(one, now_ms)]
        for one in security["credentials"]
    ]
    yield TextTable(("of", "kind", "name", "state", "until"), credentials, ("kind",))


def _end_of(credential: JsonObject, now_ms: int) -> str:
    """A certificate's end as a date, a token's by the cluster's clock."""
    until_ms = credential["until_ms"]
    if until_ms is None:
        return "-"
    if credential["kind"] == CERTIFICATE:
        return time.strftime("%Y-%m-%d", time.gmtime(until_ms / 1_000))
    return f"{(until_ms - now_ms) / 1_000:.0f} s"


def notices(status: Status, topic: str | None) -> list[str]:
    """The lines about facts that the tables do not show: internal topics, and every fault in
    force."""
    lines = []
    _, internal = _apart(status["partitions"])
    if topic is None and internal:
        count = len(internal)
        lines.append(f"and {count} partitions of internal topics (--topic {GROUP_METADATA_TOPIC})")
    controllers = status.get("controllers") or {}
    if len(controllers) > 1 or "down" in controllers.values():
        states = ", ".join(f"{each} {state}" for each, state in controllers.items())
        lines.append(f"controllers: {states}")
    if len(status["sides"]) > 1:
        sides = " | ".join(_nodes(side, status) for side in status["sides"])
        lines.append(f"the network is split: {sides}")
    if status["cuts"]:
        lines.append(f"cut: {links_text(status['cuts'], status)}")
    lines += [
        f"slow: {links_text(shape['links'], status)}: {shape['text']}" for shape in status["shapes"]
    ]
    for rule in status["rules"]:
        calls = ""  # the number is known only of the present
        if rule["calls"] is not None:
            calls = f"; applied to {rule['hits']:,} of {rule['calls']:,} requests"
        lines.append(f"rule {rule['name']}: {rule['text']}{calls}")
    for unknown in (status.get("security") or {}).get("unknown", ()):
        lines.append(unknown["text"])
    paused = [str(broker["id"]) for broker in status["brokers"] if broker["state"] == "paused"]
    if paused:
        lines.append(f"paused: broker {', '.join(paused)}")
    clock = status.get("clock")  # a status of the past has none
    if clock is not None and clock["paused"]:
        lines.append("the clock is paused: nothing happens (kcluster clock resume)")
    elif clock is not None and clock["speed"] != 1:
        lines.append(f"the clock runs at speed {clock['speed']:g} (kcluster clock speed 1)")
    return lines


def links_text(links: Iterable[Sequence[int]], status: Status) -> str:
    """The links in words: `1-2, 3>controller`, both ways and one way."""
    pairs = [(link[0], link[1]) for link in links]
    known = dict.fromkeys(pairs)
    words = []
    for source, destination in pairs:
        both = (destination, source) in known
        if both and source > destination:
            continue
        dash = "-" if both else ">"
        words.append(f"{_node(source, status)}{dash}{_node(destination, status)}")
    more = f" and {len(words) - LINKS_SHOWN} more" if len(words) > LINKS_SHOWN else ""
    return ", ".join(words[:LINKS_SHOWN]) + more


def _nodes(nodes: Iterable[int], status: Status) -> str:
    return ", ".join(_node(node, status) for node in nodes)


def _node(node: int, status: Status) -> str:
    if node == status["controller_id"]:
        return "controller"
    name = status["clients"].get(str(node))
    return str(node) if name is None else f"client {name}"
