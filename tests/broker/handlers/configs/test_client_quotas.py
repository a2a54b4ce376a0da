"""DescribeClientQuotas: filters and order; AlterClientQuotas as a broker forwards it."""

from __future__ import annotations

import pytest

from kcluster.metadata.records import ClientQuotaRecord, MetadataRecord
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import OneBroker, broker_records

EXACT, DEFAULT, ANY = 0, 1, 2
D = m.DescribeClientQuotasRequest
A = m.AlterClientQuotasRequest

Wanted = tuple[str, int, str | None]
Part = tuple[str, str | None]

USER_A: Part = ("user", "a")
CLIENT: Part = ("client-id", "c")
DEFAULT_USER: Part = ("user", None)
IP: Part = ("ip", "10.0.0.1")
QUOTAS: list[MetadataRecord] = [
    ClientQuotaRecord((USER_A,), "producer_byte_rate", 1.0),
    ClientQuotaRecord((USER_A,), "consumer_byte_rate", 2.0),
    ClientQuotaRecord((CLIENT, USER_A), "producer_byte_rate", 3.0),
    ClientQuotaRecord((DEFAULT_USER,), "request_percentage", 4.0),
    ClientQuotaRecord((IP,), "connection_creation_rate", 5.0),
]


def describe(
    one: OneBroker, *wanted: Wanted, strict: bool = False
) -> m.DescribeClientQuotasResponse:
    body = D([D.ComponentData(*component) for component in wanted], strict)
    answer: m.DescribeClientQuotasResponse = one.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, body)
    return answer


@pytest.mark.parametrize(
    ("wanted", "strict", "found"),
    [
        ([], False, {(USER_A,), (CLIENT, USER_A), (DEFAULT_USER,), (IP,)}),
        ([], True, set()),
        ([("user", EXACT, "a")], False, {(USER_A,), (CLIENT, USER_A)}),
        ([("user", EXACT, "a")], True, {(USER_A,)}),
        ([("user", DEFAULT, None)], False, {(DEFAULT_USER,)}),
        ([("user", ANY, None)], True, {(USER_A,), (DEFAULT_USER,)}),
        ([("user", ANY, None), ("client-id", EXACT, "c")], True, {(CLIENT, USER_A)}),
        ([("client-id", DEFAULT, None)], False, set()),
        ([("ip", ANY, None)], False, {(IP,)}),
    ],
)
def test_describe__filters_select_entities(
    wanted: list[Wanted], strict: bool, found: set[tuple[Part, ...]]
) -> None:
    answer = describe(OneBroker(broker_records(1), QUOTAS), *wanted, strict=strict)
    assert answer.error_code == ErrorCode.NONE
    assert answer.entries is not None
    entities = [tuple((p.entity_type, p.entity_name) for p in e.entity) for e in answer.entries]
    assert (set(entities), len(entities)) == (found, len(found))


def test_describe__values() -> None:
    answer = describe(OneBroker(broker_records(1), QUOTAS), ("user", EXACT, "a"), strict=True)
    assert answer.entries is not None
    values = {value.key: value.value for value in answer.entries[0].values}
    assert values == {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0}


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("ip", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("group", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_describe__invalid_filters_are_refused(wanted: list[Wanted], error: ErrorCode) -> None:
    answer = describe(OneBroker(broker_records(1), QUOTAS), *wanted)
    assert (answer.error_code, answer.entries) == (error, None)
    assert answer.error_message


def test_alter__silence_of_the_controller_times_out() -> None:
    one = OneBroker(broker_records(1))
    entry = A.EntryData([A.EntityData("user", "a")], [A.OpData("producer_byte_rate", 1.0)])
    assert one.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, A([entry])) is None
    (answered,) = one.pass_time(one.config.request_timeout_ms).entries
    assert answered.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert [(part.entity_type, part.entity_name) for part in answered.entity] == [("user", "a")]
