"""DescribeUserScramCredentials; AlterUserScramCredentials as a broker forwards it."""

from __future__ import annotations

from kcluster.metadata.records import MetadataRecord, UserScramCredentialRecord
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import OneBroker, broker_records

D = m.DescribeUserScramCredentialsRequest
A = m.AlterUserScramCredentialsRequest

Described = list[tuple[str, ErrorCode, list[tuple[int, int]]]]


def credential(user: str, mechanism: int, iterations: int) -> MetadataRecord:
    return UserScramCredentialRecord(user, mechanism, b"salt", b"stored", b"server", iterations)


CREDENTIALS = [credential("b", 2, 8192), credential("a", 1, 4096), credential("b", 1, 5000)]


def describe(users: list[str] | None) -> Described:
    one = OneBroker(broker_records(1), CREDENTIALS)
    body = D(None if users is None else [D.UserName(user) for user in users])
    answer = one.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, body)
    assert answer.error_code == ErrorCode.NONE
    return [
        (
            result.user,
            ErrorCode(result.error_code),
            [(info.mechanism, info.iterations) for info in result.credential_infos],
        )
        for result in answer.results
    ]


def test_describe__all_users() -> None:
    both: Described = [
        ("a", ErrorCode.NONE, [(1, 4096)]),
        ("b", ErrorCode.NONE, [(1, 5000), (2, 8192)]),
    ]
    assert describe(None) == describe([]) == both


def test_describe__users_named() -> None:
    assert describe(["b", "c", "a", "c", "d"]) == [
        ("a", ErrorCode.NONE, [(1, 4096)]),
        ("b", ErrorCode.NONE, [(1, 5000), (2, 8192)]),
        ("c", ErrorCode.DUPLICATE_RESOURCE, []),
        ("d", ErrorCode.RESOURCE_NOT_FOUND, []),
    ]


def test_alter__silence_of_the_controller_times_out() -> None:
    one = OneBroker(broker_records(1))
    body = A([A.ScramCredentialDeletion("a", 1), A.ScramCredentialDeletion("a", 2)])
    assert one.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, body) is None
    (answered,) = one.pass_time(one.config.request_timeout_ms).results
    assert (answered.user, answered.error_code) == ("a", ErrorCode.REQUEST_TIMED_OUT)
