"""What a client tells a broker about itself when it connects, and what it makes of the answer."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kcluster.clients.connections import NetworkClient, NetworkSettings
from kcluster.clients.ledger import Ledger
from kcluster.clients.metadata import Metadata, MetadataSettings
from kcluster.clients.wire import SECOND_CONNECTION
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

VERSIONS = [
    m.ApiVersionsResponse.ApiVersion(ApiKey.API_VERSIONS, 0, 5),
    m.ApiVersionsResponse.ApiVersion(ApiKey.METADATA, 0, 13),
]
CLUSTER = "a-cluster"


class Brokers:
    """A Wire; the test answers."""

    client_id = 100_000
    broker_ids = (1, 2)

    def __init__(self, settings: NetworkSettings) -> None:
        self.rng = Random(1)
        self.requests: list[tuple[int, int, int, Any]] = []
        """(connection, API, version, body) of those without an answer."""
        self.closed: list[int] = []
        self.metadata = Metadata(MetadataSettings())
        self.ledger = Ledger()
        self.client = NetworkClient("c", settings, self.metadata, self.ledger)
        self.metadata.start(self.broker_ids, self.rng)
        self.client.start(self, 0)
        self._number = 0

    def send(
        self, broker_id: int, api_key: int, api_version: int, body: Any, *, answered: bool = True
    ) -> int:
        self.requests.append((broker_id, api_key, api_version, body))
        self._number += 1
        return self._number

    def disconnect(self, broker_id: int) -> None:
        self.closed.append(broker_id)

    def connect(self, connection: int) -> m.ApiVersionsRequest:
        """The first request on a connection."""
        self.client.is_ready(connection, 0)
        request = self.taken(ApiKey.API_VERSIONS)
        assert isinstance(request, m.ApiVersionsRequest)
        return request

    def taken(self, api_key: int, version: int = 5) -> Any:
        connection, key, sent_version, body = self.requests.pop()
        assert (key, sent_version) == (api_key, version)
        self.connection = connection
        return body

    def answer(self, body: Any) -> None:
        """Of the request taken last."""
        self.client.on_reply(self.connection, self._number, body, 0)

    def learn(self) -> None:
        """The client gets its metadata."""
        self.client.poll(0)
        self.taken(ApiKey.API_VERSIONS)
        self.answer(m.ApiVersionsResponse(api_keys=VERSIONS))
        self.client.poll(0)
        self.taken(ApiKey.METADATA, 13)
        brokers = [m.MetadataResponse.MetadataResponseBroker(node_id=id_) for id_ in (1, 2, 3)]
        self.answer(m.MetadataResponse(brokers=brokers, cluster_id=CLUSTER))


@pytest.mark.parametrize("connection", [3, 3 + SECOND_CONNECTION])
def test_connections__once_it_knows_the_cluster_a_client_names_it_and_the_broker(
    connection: int,
) -> None:
    """KIP-1242; the connection to a coordinator, too, as in Java."""
    brokers = Brokers(NetworkSettings())
    first = brokers.connect(1)
    assert (first.cluster_id, first.node_id) == (None, -1)
    brokers = Brokers(NetworkSettings())
    brokers.learn()
    later = brokers.connect(connection)
    assert (later.cluster_id, later.node_id) == (CLUSTER, 3)


def test_connections__without_metadata_cluster_check_enable_it_names_nothing() -> None:
    brokers = Brokers(NetworkSettings(cluster_check=False))
    brokers.learn()
    assert brokers.connect(3).cluster_id is None


def test_connections__a_broker_of_another_cluster_makes_it_begin_again() -> None:
    brokers = Brokers(NetworkSettings())
    brokers.learn()
    brokers.connect(3)
    brokers.answer(m.ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED))
    assert (brokers.metadata.brokers, brokers.metadata.cluster_id) == (brokers.broker_ids, None)
    assert 3 in brokers.closed
    assert [error.error for error in brokers.ledger.errors] == ["REBOOTSTRAP_REQUIRED"]


@pytest.mark.parametrize(("listed", "asked_next"), [(VERSIONS[:1], 4), ([], 0)])
def test_connections__an_older_broker_is_asked_again_in_a_version_that_it_has(
    listed: list[Any], asked_next: int
) -> None:
    """KIP-511; before 2.4 brokers did not list their versions."""
    brokers = Brokers(NetworkSettings())
    brokers.connect(1)
    older = [m.ApiVersionsResponse.ApiVersion(one.api_key, 0, 4) for one in listed]
    brokers.answer(m.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=older))
    again = brokers.taken(ApiKey.API_VERSIONS, asked_next)
    assert again.client_software_name == "kcluster"
    brokers.answer(m.ApiVersionsResponse(api_keys=VERSIONS))
    assert brokers.client.is_ready(1, 0)
