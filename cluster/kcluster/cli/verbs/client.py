"""`kcluster client start|list|stop`: producers and consumers on the running cluster.

Owns: the group: options, requests, lines.  Never: starts a client (scenario/started.py).
Kafka: kafka-console-producer.sh, kafka-console-consumer.sh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kcluster.cli.click_tools import HelpfulGroup, Section, control_options, print_json, section
from kcluster.cli.completion import complete_topics
from kcluster.cli.control.client import ask
from kcluster.cli.control.protocol import ControlError, ControlRequest, handles

if TYPE_CHECKING:
    from kcluster.cli.control.session import ControlSession


class ClientRequest(ControlRequest, verb="client"):
    """`stop`: the name of a client to stop.  `kind`, `keys`: a client to start, by the words of a
    scenario's workload; `typed`: more of its keys, as YAML.  Without any of these, all are listed.
    """

    stop: str = ""
    kind: str = ""
    keys: dict[str, Any] | None = None
    typed: str = ""


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
    keys: dict[str, Any] = {"topics" if kind == "consumer" else "topic": topic}
    given = {"rate": rate, "acks": acks, "group": group, "to": to, "name": client_id}
    keys |= {key: value for key, value in given.items() if value is not None}
    if kind != "producer":
        keys.setdefault("group", "readers")
    answer = ask(ClientRequest(kind=kind, keys=keys, typed=typed or ""), name)
    if as_json:
        print_json(answer)
    else:
        print(f"{answer['cluster']}: {kind} {answer['client']} is started")


@command.command("list")
@control_options
def list_(name: str | None, as_json: bool) -> None:
    """List the clients that were started, and those that were stopped."""
    answer = ask(ClientRequest(), name)
    if as_json:
        print_json(answer)
        return
    if not answer["clients"]:
        print(f"{answer['cluster']}: no client was started  (kcluster client start --help)")
    for one in answer["clients"]:
        state = "running" if one["running"] else "stopped"
        keys = ", ".join(f"{key}: {value}" for key, value in one["keys"].items() if key != "name")
        print(f"{one['client']}  {one['kind']}  {state}  {keys}")


@command.command("stop")
@click.argument("client")
@control_options
def stop(client: str, name: str | None, as_json: bool) -> None:
    """Stop a client: a producer sends what it has, a consumer commits and leaves its group."""
    answer = ask(ClientRequest(stop=client), name)
    if as_json:
        print_json(answer)
    else:
        print(f"{answer['cluster']}: {client} is asked to stop")


@handles(ClientRequest)
def handle(session: ControlSession, request: ClientRequest) -> dict[str, Any]:
    """Start, stop or list clients."""
    from kcluster.scenario.language.loader import ScenarioError, one_line
    from kcluster.scenario.started import clients_started, start_client, stop_client

    cluster = session.cluster
    answer: dict[str, Any] = {"cluster": session.name}
    if request.stop:
        stop_client(cluster, request.stop)
        return answer | {"client": request.stop}
    if request.kind:
        keys = dict(request.keys or {})
        if request.typed:
            keys |= _typed_keys(request.typed)
        try:
            return answer | {"client": start_client(cluster, {request.kind: keys})}
        except ScenarioError as error:
            raise ControlError(one_line(error), 2) from None
    listed = [
        {
            "client": one.name,
            "kind": one.kind,
            "running": one.is_running,
            "keys": one.keys,
            "members": list(one.members),
        }
        for one in clients_started(cluster)
    ]
    return answer | {"clients": listed}


def _typed_keys(text: str) -> dict[str, Any]:
    """Keys in YAML; ControlError for text that has none."""
    import yaml

    try:
        keys = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ControlError(f"--keys: not YAML: {error}", 2) from None
    if not isinstance(keys, dict):
        raise ControlError("--keys: write keys and values: '{share: true}'", 2)
    return keys
