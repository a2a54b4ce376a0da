"""`kcluster status --at`: a moment of the past as the values that the status tables show.

Owns: the moment of a typed time; the status values of a moment.  Never: reads a record
(runs/moment.py), lays it out (status_tables.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kcluster.cli.errors import CommandError
from kcluster.config.files.durations import milliseconds
from kcluster.contract import CONTROLLER_ID
from kcluster.deaths import ProcessState
from kcluster.events.render import plain
from kcluster.events.words import effect_text
from kcluster.json_types import JsonObject
from kcluster.protocol.releases import latest
from kcluster.runs.moment import ClusterMoment, PartitionMoment
from kcluster.runs.record import RunRecord

Addresses = Mapping[int, tuple[str, int, str]]
"""The host, port (0: unknown) and Kafka release of each broker, by id."""


def moment_ms(typed: str, began_ms: int, end_ms: int) -> int:
    """The time that `--at` means: `12s` after the beginning, `-5s` before the end.  CommandError if
    the text is no time, or the time is outside the run."""
    text = typed.strip()
    try:
        distance_ms = milliseconds(text.lstrip("+-"), "a time like 12s, or like -5s before the end")
    except ValueError as error:
        raise CommandError(f"--at {typed}: {error}", 2) from None
    at_ms = end_ms - distance_ms if text.startswith("-") else began_ms + distance_ms
    if not began_ms <= at_ms <= end_ms:
        known = f"{(end_ms - began_ms) / 1000:g} s are recorded"
        raise CommandError(f"--at {typed}: {known}", 2)
    return at_ms


def when_text(moment: ClusterMoment, began_ms: int, end_ms: int) -> str:
    """The words for a moment: `12 s after the beginning, 3 s before the end`."""
    after, before = (moment.at_ms - began_ms) / 1000, (end_ms - moment.at_ms) / 1000
    return f"{after:g} s after the beginning, {before:g} s before the end"


def moment_values(moment: ClusterMoment) -> JsonObject:
    """A moment as values for JSON."""
    values: JsonObject = plain(msgspec.to_builtins(moment))
    return values


def status_values(moment: ClusterMoment, addresses: Addresses) -> JsonObject:
    """A moment with the keys of an answer to a status request."""
    return {
        "controller_id": CONTROLLER_ID,
        "brokers": [
            {
                "id": broker.id,
                "host": host,
                "port": port,
                "kafka_version": release,
                "rack": broker.rack,
                "state": str(broker.state),
                "fenced": broker.fenced,
            }
            for broker in moment.brokers
            for host, port, release in (addresses.get(broker.id, ("", 0, latest().name)),)
        ],
        "partitions": [_partition_values(one, moment) for one in moment.partitions],
        "cuts": [list(link) for link in moment.cuts],
        "sides": [list(side) for side in moment.sides],
        "shapes": [{"links": links, "text": text} for text, links in _shapes(moment).items()],
        "rules": [
            {"name": rule.name, "text": effect_text(rule.effect), "calls": None, "hits": None}
            for rule in moment.rules
        ],
        "clients": {str(node): name for node, name in moment.network_clients.items()},
    }


def _shapes(moment: ClusterMoment) -> dict[str, list[list[int]]]:
    """The impaired links, grouped by their impairments."""
    links: dict[str, list[list[int]]] = {}
    for one in moment.impaired:
        links.setdefault("; ".join(one.texts), []).append(list(one.link))
    return links


def _partition_values(one: PartitionMoment, moment: ClusterMoment) -> JsonObject:
    down = [broker.id for broker in moment.brokers if broker.state is ProcessState.DOWN]
    logs = {log.broker: log for log in one.logs}
    leader = None if one.leader is None else logs.get(one.leader)
    end = None if leader is None else leader.log_end_offset
    return {
        "topic": one.topic,
        "partition": one.partition,
        "leader": one.leader,
        "leader_epoch": one.leader_epoch,
        "replicas": list(one.replicas),
        "isr": list(one.isr),
        "elr": list(one.elr),
        "high_watermark": None if leader is None or one.leader in down else leader.high_watermark,
        "log_end_offset": end,
        "lag": {
            str(broker): max(0, end - (logs[broker].log_end_offset if broker in logs else 0))
            for broker in one.replicas
            if end is not None and broker != one.leader
        },
    }


def addresses_of(record: RunRecord) -> Addresses:
    """The addresses and releases in a run directory, by broker."""
    topology = record.info.topology
    host, release = topology.get("host") or "", topology.get("kafka_version") or latest().name
    return {
        each["id"]: (host, each.get("port") or 0, each.get("kafka_version") or release)
        for each in topology.get("brokers", ())
    }
