"""ACLs without an authorizer."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.contract import CloseConnection, Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import OneBroker, broker_records

FILTER: dict[str, Any] = {
    "resource_type_filter": 2, "resource_name_filter": "t", "pattern_type_filter": 3,
    "operation": 1, "permission_type": 1,
}  # fmt: skip
ACL: dict[str, Any] = {
    "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:a",
    "host": "*", "operation": 3, "permission_type": 3,
}  # fmt: skip


def describe(**changes: Any) -> Any:
    return m.DescribeAclsRequest(**{**FILTER, **changes})


def create(**changes: Any) -> Any:
    good = m.CreateAclsRequest.AclCreation(**ACL)
    return m.CreateAclsRequest([good, m.CreateAclsRequest.AclCreation(**{**ACL, **changes})])


def delete(**changes: Any) -> Any:
    good = m.DeleteAclsRequest.DeleteAclsFilter(**FILTER)
    return m.DeleteAclsRequest(
        [good, m.DeleteAclsRequest.DeleteAclsFilter(**{**FILTER, **changes})]
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls__security_is_disabled(version: int) -> None:
    one = OneBroker(broker_records(1))
    described = one.ask(ApiKey.DESCRIBE_ACLS, version, describe())
    created = one.ask(ApiKey.CREATE_ACLS, version, create())
    deleted = one.ask(ApiKey.DELETE_ACLS, version, delete())
    answers = [described, *created.results, *deleted.filter_results]
    assert [answer.error_code for answer in answers] == [ErrorCode.SECURITY_DISABLED] * 5
    assert all(answer.error_message for answer in answers)


def test_acls__an_empty_request_gets_an_empty_answer() -> None:
    one = OneBroker(broker_records(1))
    assert one.ask(ApiKey.CREATE_ACLS, 3, m.CreateAclsRequest([])).results == []
    assert one.ask(ApiKey.DELETE_ACLS, 3, m.DeleteAclsRequest([])).filter_results == []


@pytest.mark.parametrize(
    ("api_key", "body"),
    [
        (ApiKey.DESCRIBE_ACLS, describe(operation=0)),
        (ApiKey.DESCRIBE_ACLS, describe(pattern_type_filter=0)),
        (ApiKey.CREATE_ACLS, create(resource_type=0)),
        (ApiKey.CREATE_ACLS, create(permission_type=0)),
        (ApiKey.DELETE_ACLS, delete(resource_type_filter=0)),
    ],
)
def test_acls__an_unknown_code_closes_the_connection(api_key: ApiKey, body: Any) -> None:
    one = OneBroker(broker_records(1))
    effects = one.broker.step(one.now_ms, Request(7, api_key, 3, 1, "test", body))
    closed = [effect for effect in effects if isinstance(effect, CloseConnection)]
    assert [effect.connection_id for effect in closed] == [7]


def test_acls__a_code_of_a_later_version_keeps_the_connection_open() -> None:
    one = OneBroker(broker_records(1))
    answer = one.ask(ApiKey.DESCRIBE_ACLS, 3, describe(resource_type_filter=99))
    assert answer.error_code == ErrorCode.SECURITY_DISABLED
