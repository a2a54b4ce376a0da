"""The work of `kcluster status --at`: the status at a moment of the past.

Owns: finding the moment of a cluster or of a run directory.  Never: makes it
(cli/moment_status.py), prints it.
Kafka: no counterpart.
"""

from __future__ import annotations

import sys

import msgspec

from kcluster.cli.errors import CommandError
from kcluster.cli.moment_status import (
    addresses_of,
    moment_ms,
    moment_values,
    status_values,
    when_text,
)
from kcluster.cli.remote import Remote
from kcluster.json_types import JsonObject
from kcluster.runs.directory import RunError, read_run
from kcluster.runs.moment import ClusterMoment, moment_of


def past_of_cluster(remote: Remote, at: str, topic: str | None) -> JsonObject:
    """The status at a moment of the past; `moment` has all known facts about it, `when` a line with
    its time."""
    now, began_ms = remote.get(), remote.get("clock")["began_ms"]
    at_ms = moment_ms(at, began_ms, now["at_ms"])
    values = remote.get("at", {"ms": at_ms})
    moment = msgspec.convert(values, ClusterMoment)
    addresses = {
        broker["id"]: (broker["host"], broker["port"], broker["kafka_version"])
        for broker in now["brokers"]
    }
    status = status_values(moment, addresses)
    _only(status, topic)
    return {
        "name": remote.name,
        "bootstrap": now["bootstrap"],
        "when": when_text(moment, began_ms, now["at_ms"]),
        "moment": values,
        **status,
    }


def past_of_run(directory: str, at: str, topic: str | None) -> JsonObject:
    """The status at a moment of a run directory, with the keys of a present status."""
    try:
        record, problems = read_run(directory)
    except RunError as error:
        raise CommandError(str(error), 2) from None
    for problem in problems:
        print(f"kcluster: {problem}; the rest is used", file=sys.stderr)
    began_ms, ended_ms = record.info.began_ms, record.info.ended_ms
    moment = moment_of(record, moment_ms(at, began_ms, ended_ms))
    values = status_values(moment, addresses_of(record))
    _only(values, topic)
    return {
        "name": record.info.name,
        "bootstrap": "",
        "when": when_text(moment, began_ms, ended_ms),
        "moment": moment_values(moment),
        **values,
    }


def _only(values: JsonObject, topic: str | None) -> None:
    """Keep only the partitions of this topic, if one is given; CommandError if it did not exist."""
    if topic is None:
        return
    values["partitions"] = [one for one in values["partitions"] if one["topic"] == topic]
    if not values["partitions"]:
        raise CommandError(f"--topic {topic}: there was no such topic", 2)
