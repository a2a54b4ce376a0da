"""The words that the shell completes after a verb: brokers, partitions and topics of the running
cluster.

Owns: the words that are offered.  Never: reports a problem: without a cluster nothing is offered.
Kafka: none; click writes the shell's side.
"""

from __future__ import annotations

from typing import Final

import click

from kcluster.cli.errors import CommandError
from kcluster.json_types import JsonObject

TIMEOUT_S: Final = 2.0


def complete_targets(ctx: click.Context, param: click.Parameter, typed: str) -> list[str]:
    """Ids of brokers, and `leader(orders-0)`.  After a comma a further target is completed."""
    status = _status(ctx)
    if not status:
        return []
    before, comma, last = typed.rpartition(",")
    ids = [str(broker["id"]) for broker in status.get("brokers", ())]
    words = [f"leader({name})" for name in _partitions(status)]
    return [
        f"{before}{comma}{word}" for word in (*ids, *words, "all", "down") if word.startswith(last)
    ]


def complete_partitions(ctx: click.Context, param: click.Parameter, typed: str) -> list[str]:
    """Partitions in the form `orders-0`."""
    return [name for name in _partitions(_status(ctx)) if name.startswith(typed)]


def complete_topics(ctx: click.Context, param: click.Parameter, typed: str) -> list[str]:
    """Names of topics, such as `orders`."""
    topics = dict.fromkeys(found["topic"] for found in _status(ctx).get("partitions", ()))
    return [topic for topic in topics if topic.startswith(typed)]


def _partitions(status: JsonObject) -> list[str]:
    """The partitions of users' topics."""
    partitions = status.get("partitions", ())
    return [f"{x['topic']}-{x['partition']}" for x in partitions if not x["topic"].startswith("__")]


def _status(ctx: click.Context) -> JsonObject:
    from kcluster.cli.remote import Remote

    try:
        status: JsonObject = Remote(ctx.params.get("name")).get(timeout_s=TIMEOUT_S)
        return status
    except CommandError:
        return {}
