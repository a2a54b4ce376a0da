"""`kcluster client start|list|stop`: producers and consumers on the running cluster.

Owns: the group: options, lines.  Never: starts a client (scenario/started.py).
Kafka: kafka-console-producer.sh, kafka-console-consumer.sh.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import (
    HelpfulGroup,
    Section,
    control_options,
    print_answer,
    print_json,
    section,
)
from kcluster.cli.completion import complete_topics
from kcluster.cli.errors import CommandError
from kcluster.cli.remote import Remote, quoted
from kcluster.json_types import JsonObject


@section(Section.CLUSTER)
@click.group("client", cls=HelpfulGroup)
def command() -> None:
    """Start and stop producers and consumers on the running cluster.

    They are kcluster's own, so no program has to be written.
    """


@command.command("start")
@click.argument("kind", type=click.Choice(["producer", "consumer", "processor"]))
@click.argument("topic", shell_complete=complete_topics)
@click.option("--rate", metavar="RATE", help="Of a producer: records per second, such as 10/s.")
@click.option("--acks", type=click.Choice(["0", "1", "all"]), help="Of a producer.")
@click.option("--group", metavar="NAME", help="Of a consumer or processor.  [default: readers]")
@click.option("--to", metavar="TOPIC", help="Of a processor: the topic that it writes to.")
@click.option("--client-id", metavar="NAME", help="Its name.  [default: producer-1, ...]")
@click.option(
    "--keys",
    "typed",
    metavar="YAML",
    help="More keys of a scenario's workload: '{transactions: {every: 5}}', '{share: true}'.",
)
@control_options
def start(
    kind: str,
    topic: str,
    rate: str | None,
    acks: str | None,
    group: str | None,
    to: str | None,
    client_id: str | None,
    typed: str | None,
    name: str | None,
    as_json: bool,
) -> None:
    """Start a client: kcluster client start producer orders --rate 10/s --acks all.

    'kcluster scenario help workload' lists all keys of producers, consumers and processors.
    """
    keys: JsonObject = {"topics" if kind == "consumer" else "topic": topic}
    given = {"rate": rate, "acks": acks, "group": group, "to": to, "name": client_id}
    keys |= {key: value for key, value in given.items() if value is not None}
    if kind != "producer":
        keys.setdefault("group", "readers")
    if typed is not None:
        keys |= _typed_keys(typed)
    remote = Remote(name)
    answer = remote.post("clients", {kind: keys})
    print_answer(answer, [f"{remote.name}: {kind} {answer['client']} is started"], as_json)


@command.command("list")
@control_options
def list_(name: str | None, as_json: bool) -> None:
    """List the clients that were started, running and stopped."""
    remote = Remote(name)
    answer = remote.get("clients")
    if as_json:
        print_json(answer)
        return
    if not answer["clients"]:
        print(f"{remote.name}: no client was started  (kcluster client start --help)")
    for client in answer["clients"]:
        state = "running" if client["stopped_ms"] < 0 else "stopped"
        keys = (f"{key}: {value}" for key, value in client["keys"].items() if key != "name")
        print(f"{client['name']}  {client['kind']}  {state}  {', '.join(keys)}")


@command.command("stop")
@click.argument("client")
@control_options
def stop(client: str, name: str | None, as_json: bool) -> None:
    """Stop a client: a producer sends what it has, a consumer commits and leaves its group."""
    remote = Remote(name)
    answer = remote.ask("DELETE", f"clients/{quoted(client)}")
    print_answer(answer, [f"{remote.name}: {client} is asked to stop"], as_json)


def _typed_keys(text: str) -> JsonObject:
    """Keys in YAML; CommandError for text without keys."""
    import yaml

    try:
        keys = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CommandError(f"--keys: not YAML: {error}", 2) from None
    if not isinstance(keys, dict):
        raise CommandError("--keys: write keys and values: '{share: true}'", 2)
    return keys
