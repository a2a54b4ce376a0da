"""The project's own producers and consumers on a running cluster.

Owns: these routes.  Never: runs a client (scenario/started.py).
Kafka: kafka-console-producer.sh and kafka-console-consumer.sh.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.config.files.fields import Schema, struct_schema
from kcluster.scenario.language.model import ConsumerSpec, ProcessorSpec, ProducerSpec
from kcluster.scenario.started import StartedClient, clients_started, start_client, stop_client
from kcluster.web.call import ApiCall
from kcluster.web.problems import not_found
from kcluster.web.routes import Runs, route


class ClientAnswer(Struct, frozen=True):
    """`client`: the name of the client, which is its client.id."""

    client: str


class ClientList(Struct, frozen=True):
    """The clients that were started, oldest first, including stopped ones."""

    clients: list[StartedClient]


def client_schema() -> Schema:
    """A client: its kind, with the keys of a scenario's workload."""
    kinds: dict[str, type[Struct]] = {
        "producer": ProducerSpec,
        "consumer": ConsumerSpec,
        "processor": ProcessorSpec,
    }
    properties = {kind: struct_schema(struct) for kind, struct in kinds.items()}
    return {
        "type": "object",
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
        "properties": properties,
    }


@route(
    "POST",
    "/v1/clusters/<id>/clients",
    body=client_schema(),
    answer=ClientAnswer,
    status=201,
    errors=(404, 409, 422),
    runs=Runs.AT_ONCE,
)
def start_a_client(call: ApiCall) -> ClientAnswer:
    """Start a client, such as {"producer": {"topic": "orders", "rate": "10/s", "acks": "all"}}."""
    keys = call.reading(call.json_object)
    return ClientAnswer(call.reading(lambda: start_client(call.held.cluster, keys)))


@route("GET", "/v1/clusters/<id>/clients", answer=ClientList, errors=(404, 409), runs=Runs.AT_ONCE)
def list_clients(call: ApiCall) -> ClientList:
    """The clients that were started."""
    return ClientList(clients_started(call.held.cluster))


@route(
    "DELETE",
    "/v1/clusters/<id>/clients/<name>",
    answer=ClientAnswer,
    errors=(404, 409),
    runs=Runs.AT_ONCE,
)
def stop_a_client(call: ApiCall) -> ClientAnswer:
    """Stop a client: a producer sends what it has, a consumer leaves its group."""
    cluster, name = call.held.cluster, call.named["name"]
    if not any(client.name == name for client in clients_started(cluster)):
        raise not_found(f"there is no client {name} that was started here")
    stop_client(cluster, name)
    return ClientAnswer(name)
