"""`kcluster topic create|delete`: topics of the running cluster.

Owns: the group: options, request, refusals.  Never: creates a topic (the controller does).
Kafka: kafka-topics.sh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kcluster.cli.click_tools import HelpfulGroup, Section, control_options, make_change, section
from kcluster.cli.completion import complete_topics
from kcluster.cli.control.protocol import ChangeResult, ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.changes import Say
    from kcluster.cli.control.session import ControlSession


class TopicRequest(ControlRequest, verb="topic"):
    """`create`, or delete.  `configs`: by Kafka's names."""

    topic: str
    create: bool = True
    partitions: int = 1
    replication_factor: int | None = None
    configs: dict[str, str] | None = None


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
    request = TopicRequest(topic, True, partitions, replication_factor, pairs)
    make_change(request, name, as_json)


@command.command("delete")
@click.argument("topic", shell_complete=complete_topics)
@control_options
def delete(topic: str, name: str | None, as_json: bool) -> None:
    """Delete a topic, with its records.

    Returns when all brokers know.
    """
    make_change(TopicRequest(topic, False), name, as_json)


@handles(TopicRequest)
def handle(session: ControlSession, request: TopicRequest) -> ChangeResult:
    """Create or delete the topic."""
    from kcluster.config.files.problems import unknown

    cluster = session.cluster
    topics = cluster.topics()
    if request.create:
        if request.topic in topics:
            raise ControlError(f"there is a topic {request.topic} already")
    elif request.topic not in topics:
        named = [topic for topic in topics if not topic.startswith("__")]
        raise ControlError(f"{request.topic}: {unknown('topic', request.topic, named)}", 2)

    def operation(say: Say) -> None:
        if request.create:
            cluster.create_topic(
                request.topic, request.partitions, request.replication_factor, request.configs
            )
        else:
            cluster.delete_topic(request.topic)

    return session.change(operation)
