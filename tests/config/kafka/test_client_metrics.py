"""Client metrics: which configs are refused, and which clients a subscription matches."""

from __future__ import annotations

import pytest

from kcluster.config.kafka.client_metrics import Subscription, client_metrics_problem
from kcluster.protocol.errors import ErrorCode

BAD_REQUEST, BAD_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("no.such", "1", BAD_REQUEST),
        ("interval.ms", "99", BAD_REQUEST),
        ("interval.ms", "3600001", BAD_REQUEST),
        ("interval.ms", "soon", BAD_CONFIG),
        ("metrics", "a,,b", BAD_CONFIG),
        ("match", "client_id", BAD_CONFIG),
        ("match", "client_id=", BAD_CONFIG),
        ("match", "client_id=a=b", BAD_CONFIG),
        ("match", "client_color=a", BAD_CONFIG),
        ("match", "client_id=[", BAD_CONFIG),
        ("match", "client_id=a{99999999999}", BAD_CONFIG),
    ],
)
def test_client_metrics__refused(name: str, value: str, error: ErrorCode) -> None:
    problem = client_metrics_problem({name: value})
    assert problem is not None
    assert problem[0] is error


@pytest.mark.parametrize("match", ["", " client_id = a , client_software_name=b", "client_id=[[a]"])
def test_client_metrics__accepted(match: str) -> None:
    assert client_metrics_problem({"match": match, "metrics": "*", "interval.ms": "100"}) is None


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("", True),
        ("client_id=app.*", True),
        ("client_id=app", False),  # the whole value must match
        ("client_id=app-1,client_software_name=x", False),
        ("client_id=x,client_id=app-1", True),  # the last one counts
        ("client_software_version=", None),
    ],
)
def test_client_metrics__which_clients_a_subscription_matches(
    match: str, expected: bool | None
) -> None:
    if expected is None:
        assert client_metrics_problem({"match": match}) is not None
        return
    client = {"client_id": "app-1", "client_software_name": "lib"}
    assert Subscription.of("s", {"match": match}).matches(client) is expected
