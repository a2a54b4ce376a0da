"""`kcluster topic create|delete`: topics of the running cluster.

Owns: the group's options.  Never: creates a topic: these are the actions create_topic and
delete_topic (actions/).
Kafka: kafka-topics.sh.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import HelpfulGroup, Section, control_options, section
from kcluster.cli.completion import complete_topics
from kcluster.json_types import JsonObject


@section(Section.FAULTS)
@click.group("topic", cls=HelpfulGroup)
def command() -> None:
    """Create or delete a topic.

    kcluster status shows topics.
    """


@command.command("create")
@click.argument("topic")
@click.option("-p", "--partitions", type=click.IntRange(1, 10_000), default=1, show_default=True)
@click.option(
    "-r",
    "--replication-factor",
    type=click.IntRange(1, 1_000),
    metavar="N",
    help="Replicas of each partition.  [default: default.replication.factor]",
)
@click.option("--config", "configs", metavar="NAME=VALUE", multiple=True, help="A topic config.")
@control_options
def create(
    topic: str,
    partitions: int,
    replication_factor: int | None,
    configs: tuple[str, ...],
    name: str | None,
    as_json: bool,
) -> None:
    """Create a topic: kcluster topic create orders -p 6 --config min.insync.replicas=2.

    Returns when all brokers know it.
    """
    pairs = {}
    for config in configs:
        key, equals, value = config.partition("=")
        if not equals or not key:
            raise click.BadParameter(
                f"{config!r} is not NAME=VALUE, such as min.insync.replicas=2",
                param_hint="--config",
            )
        pairs[key.strip()] = value.strip()
    keys: JsonObject = {"name": topic, "partitions": partitions, "config": pairs}
    if replication_factor is not None:
        keys["replication_factor"] = replication_factor
    act({"create_topic": keys}, name, as_json)


@command.command("delete")
@click.argument("topic", shell_complete=complete_topics)
@control_options
def delete(topic: str, name: str | None, as_json: bool) -> None:
    """Delete a topic, with its records.

    Returns when all brokers know.
    """
    act({"delete_topic": {"name": topic}}, name, as_json)
