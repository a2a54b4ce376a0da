"""DescribeCluster: brokers alive and fenced, endpoint types."""

from __future__ import annotations

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import CLUSTER_ID, OneBroker, broker_records


@pytest.fixture
def one() -> OneBroker:
    return OneBroker(broker_records(3, 1, 2, fenced=(2,)))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_cluster__lists_live_brokers_by_id(one: OneBroker, version: int) -> None:
    response = one.ask(ApiKey.DESCRIBE_CLUSTER, version, m.DescribeClusterRequest())
    assert [(b.broker_id, b.port, b.rack) for b in response.brokers] == [
        (1, 9091, "r1"),
        (3, 9093, "r3"),
    ]
    assert response.cluster_id == CLUSTER_ID
    assert response.controller_id in (1, 3)


def test_describe_cluster__fenced_brokers_are_listed_on_request(one: OneBroker) -> None:
    request = m.DescribeClusterRequest(include_fenced_brokers=True)
    response = one.ask(ApiKey.DESCRIBE_CLUSTER, 2, request)
    assert [(b.broker_id, b.is_fenced) for b in response.brokers] == [
        (1, False),
        (2, True),
        (3, False),
    ]


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_describe_cluster__a_broker_is_not_a_controller_endpoint(
    one: OneBroker, endpoint_type: int, error: ErrorCode
) -> None:
    request = m.DescribeClusterRequest(endpoint_type=endpoint_type)
    response = one.ask(ApiKey.DESCRIBE_CLUSTER, 1, request)
    assert (response.error_code, response.endpoint_type) == (error, 1)
    assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])


def test_describe_cluster__operations_are_included_on_request(one: OneBroker) -> None:
    request = m.DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = one.ask(ApiKey.DESCRIBE_CLUSTER, 0, request)
    assert response.cluster_authorized_operations == 8096
