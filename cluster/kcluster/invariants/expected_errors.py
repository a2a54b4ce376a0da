"""The errors that each kind of answer may have.

Owns: these errors, for what producers, consumers and members of groups ask, and the answers with
another one.  Never: says when an error is right (other rules do), looks at an answer that a fault
rule has made.  Kafka: "Possible error codes" in its *Response classes and *Response.json;
ReplicaManager.handleProduceAppend, which translates a coordinator's errors for producers.

A client acts by the error: it asks again, looks for another broker, or gives up.  An error that has
no meaning for a request, such as one from the answer of another broker that is passed on, makes it
give up though nothing is wrong.  Every request may be refused for want of rights, or answered
UNKNOWN_SERVER_ERROR, INVALID_REQUEST or UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.contract import Reply
from kcluster.invariants.facts import UnexpectedError
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of

_ANY: Final = """NONE UNKNOWN_SERVER_ERROR INVALID_REQUEST UNSUPPORTED_VERSION
 TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED
 TRANSACTIONAL_ID_AUTHORIZATION_FAILED"""
_OF_PARTITIONS: Final = """UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID NOT_LEADER_OR_FOLLOWER
 KAFKA_STORAGE_ERROR CORRUPT_MESSAGE INVALID_TOPIC_EXCEPTION REQUEST_TIMED_OUT"""
_OF_READERS: Final = """OFFSET_OUT_OF_RANGE REPLICA_NOT_AVAILABLE FENCED_LEADER_EPOCH
 UNKNOWN_LEADER_EPOCH LEADER_NOT_AVAILABLE OFFSET_NOT_AVAILABLE UNSUPPORTED_FOR_MESSAGE_FORMAT
 UNSUPPORTED_COMPRESSION_TYPE"""
_OF_COORDINATORS: Final = """NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE
 COORDINATOR_LOAD_IN_PROGRESS"""
_OF_TRANSACTIONS: Final = """INVALID_PRODUCER_ID_MAPPING INVALID_PRODUCER_EPOCH PRODUCER_FENCED
 INVALID_TXN_STATE CONCURRENT_TRANSACTIONS TRANSACTION_ABORTABLE UNKNOWN_PRODUCER_ID"""
_OF_MEMBERS: Final = """UNKNOWN_MEMBER_ID ILLEGAL_GENERATION REBALANCE_IN_PROGRESS
 FENCED_INSTANCE_ID FENCED_MEMBER_EPOCH STALE_MEMBER_EPOCH GROUP_ID_NOT_FOUND INVALID_GROUP_ID
 GROUP_MAX_SIZE_REACHED INCONSISTENT_GROUP_PROTOCOL"""

_WRITTEN: Final = """MESSAGE_TOO_LARGE RECORD_LIST_TOO_LARGE NOT_ENOUGH_REPLICAS
 NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS INVALID_RECORD INVALID_TIMESTAMP
 OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID
 UNSUPPORTED_FOR_MESSAGE_FORMAT UNSUPPORTED_COMPRESSION_TYPE INVALID_PRODUCER_EPOCH
 INVALID_PRODUCER_ID_MAPPING INVALID_TXN_STATE CONCURRENT_TRANSACTIONS TRANSACTION_ABORTABLE"""
_FETCHED: Final = """FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH INCONSISTENT_TOPIC_ID
 FETCH_SESSION_TOPIC_ID_ERROR"""
_COMMITTED: Final = """UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID OFFSET_METADATA_TOO_LARGE
 INVALID_COMMIT_OFFSET_SIZE REQUEST_TIMED_OUT UNSUPPORTED_FOR_MESSAGE_FORMAT"""
_SHARED: Final = """INVALID_RECORD_STATE SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH
 SHARE_SESSION_LIMIT_REACHED FENCED_LEADER_EPOCH UNKNOWN_MEMBER_ID FENCED_STATE_EPOCH
 INVALID_GROUP_ID GROUP_ID_NOT_FOUND COORDINATOR_NOT_AVAILABLE OFFSET_NOT_AVAILABLE
 LEADER_NOT_AVAILABLE UNKNOWN_LEADER_EPOCH"""
_JOINED: Final = """MEMBER_ID_REQUIRED INVALID_SESSION_TIMEOUT UNSUPPORTED_ASSIGNOR
 UNRELEASED_INSTANCE_ID INVALID_REGULAR_EXPRESSION"""

_Path = tuple[str, ...]
"""The fields that lead from an answer to the error codes in it."""
_TOP: Final[_Path] = ("error_code",)


def _errors(*words: str) -> frozenset[int]:
    return frozenset(int(ErrorCode[name]) for name in " ".join((_ANY, *words)).split())


_OF_MEMBERSHIP: Final = _errors(_OF_COORDINATORS, _OF_MEMBERS, _JOINED)
_OF_COMMITS: Final = _errors(_OF_COORDINATORS, _OF_MEMBERS, _COMMITTED)
_OF_PRODUCERS: Final = _errors(_OF_COORDINATORS, _OF_TRANSACTIONS)
_OF_SHARERS: Final = _errors(_OF_PARTITIONS, _SHARED)

_EXPECTED: Final[Mapping[int, tuple[frozenset[int], tuple[_Path, ...]]]] = {
    int(key): (errors, paths)
    for key, errors, paths in (
        (
            ApiKey.PRODUCE,
            _errors(_OF_PARTITIONS, _WRITTEN),
            (("responses", "partition_responses", "error_code"),),
        ),
        (
            ApiKey.FETCH,
            _errors(_OF_PARTITIONS, _OF_READERS, _FETCHED),
            (_TOP, ("responses", "partitions", "error_code")),
        ),
        (
            ApiKey.LIST_OFFSETS,
            _errors(_OF_PARTITIONS, _OF_READERS),
            (("topics", "partitions", "error_code"),),
        ),
        (ApiKey.SHARE_FETCH, _OF_SHARERS, (_TOP, ("responses", "partitions", "error_code"))),
        (ApiKey.SHARE_ACKNOWLEDGE, _OF_SHARERS, (_TOP, ("responses", "partitions", "error_code"))),
        (ApiKey.OFFSET_COMMIT, _OF_COMMITS, (("topics", "partitions", "error_code"),)),
        (
            ApiKey.TXN_OFFSET_COMMIT,
            _errors(_OF_COORDINATORS, _OF_MEMBERS, _COMMITTED, _OF_TRANSACTIONS),
            (("topics", "partitions", "error_code"),),
        ),
        (
            ApiKey.INIT_PRODUCER_ID,
            _OF_PRODUCERS | _errors("INVALID_TRANSACTION_TIMEOUT REQUEST_TIMED_OUT"),
            (_TOP,),
        ),
        (
            ApiKey.ADD_PARTITIONS_TO_TXN,
            _OF_PRODUCERS | _errors("UNKNOWN_TOPIC_OR_PARTITION OPERATION_NOT_ATTEMPTED"),
            (
                _TOP,
                ("results_by_topic_v3_and_below", "results_by_partition", "partition_error_code"),
            ),
        ),
        (ApiKey.ADD_OFFSETS_TO_TXN, _OF_PRODUCERS, (_TOP,)),
        (ApiKey.END_TXN, _OF_PRODUCERS, (_TOP,)),
        (ApiKey.JOIN_GROUP, _OF_MEMBERSHIP, (_TOP,)),
        (ApiKey.SYNC_GROUP, _OF_MEMBERSHIP, (_TOP,)),
        (ApiKey.HEARTBEAT, _OF_MEMBERSHIP, (_TOP,)),
        (ApiKey.LEAVE_GROUP, _OF_MEMBERSHIP, (_TOP, ("members", "error_code"))),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, _OF_MEMBERSHIP, (_TOP,)),
        (ApiKey.SHARE_GROUP_HEARTBEAT, _OF_MEMBERSHIP, (_TOP,)),
    )
}
"""(the errors, where an answer has them) by kind of request."""


def unexpected_error(reply: Reply) -> UnexpectedError | None:
    """The first error in an answer that Kafka never gives to such a request; None if there is
    none."""
    body = reply.body
    expected = _EXPECTED.get(reply.request.api_key)
    if expected is None or body is None:
        return None
    errors, paths = expected
    for path in paths:
        for code in _codes(body, path):
            if code and code not in errors:
                name = type(reply.request.body).__name__.removesuffix("Request")
                return UnexpectedError(name, error_of(code).name)
    return None


def _codes(body: object, path: _Path) -> list[int]:
    """The error codes at a path below an answer."""
    rows = [body]
    *fields, last = path
    for field in fields:
        below: list[object] = []
        for row in rows:
            below += getattr(row, field)
        rows = below
    return [getattr(row, last) for row in rows]
