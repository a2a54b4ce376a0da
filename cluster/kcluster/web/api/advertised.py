"""The addresses for clients, if they differ from the listeners' addresses.

Owns: this route.  Never: forwards a connection.
Kafka: advertised.listeners.

A container's host ports are known only when it runs.  Until they are set here, clients are sent to
ports inside of it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from kcluster.config.topology.specs import split_address
from kcluster.config.topology.values import advertised_of
from kcluster.web.call import ApiCall
from kcluster.web.problems import not_found, wrong_value
from kcluster.web.routes import Runs, route


class AdvertisedWanted(Struct):
    """Where clients reach a broker."""

    address: Annotated[str, Meta(description="`host:port`, as clients see it.")]


class AdvertisedAnswer(Struct, frozen=True):
    """`bootstrap`: the addresses of all brokers, for clients."""

    broker: int
    host: str
    port: int
    bootstrap: str


@route(
    "PUT",
    "/v1/clusters/<id>/brokers/<broker>/advertised",
    body=AdvertisedWanted,
    answer=AdvertisedAnswer,
    errors=(404, 409, 422),
    runs=Runs.WAITING,
)
def advertise_broker(call: ApiCall) -> AdvertisedAnswer:
    """Give clients this address of a broker from now on; answered when all brokers know it."""
    address = call.values(AdvertisedWanted).address
    try:
        host, port = split_address(advertised_of(address))
    except ValueError as error:
        raise wrong_value("address", str(error)) from None
    if not port:
        raise wrong_value("address", f"{address}: the port is missing; host:port")
    cluster, broker = call.held.cluster, call.named["broker"]
    if broker not in map(str, cluster.broker_ids):
        known = ", ".join(map(str, cluster.broker_ids))
        raise not_found(f"there is no broker {broker}; the brokers are {known}")
    cluster.advertise(int(broker), host, port)
    return AdvertisedAnswer(int(broker), host, port, cluster.bootstrap)
