"""Kafka's APIs: keys, versions, and the codec of each version.

Owns: ApiKey, the version tables, the cache of codecs.  Never: knows which APIs our broker
has handlers for (broker/registry.py).  Kafka: org.apache.kafka.common.protocol.ApiKeys.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from kcluster.protocol.codec.schema import NEVER, ApiLine, Versions, api_lines, record_lines

if TYPE_CHECKING:
    from kcluster.protocol.codec.compiler import Codec, RecordCodec

LATEST: Final = "4.4.0"
"""The release that VERSIONS describes."""


class ApiKey(IntEnum):
    """Every API of 4.4.0 and 3.9.1, by Kafka's names."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


APIS: Final[dict[int, ApiLine]] = {line.key: line for line in api_lines().values()}
"""API key -> name, versions in both releases, flexible versions, listeners."""

VERSIONS: Final[dict[int, Versions]] = {
    key: line.versions for key, line in APIS.items() if line.versions != NEVER
}
"""API key -> the lowest and highest version that 4.4.0 serves, without the APIs that 4.0
removed."""

PRODUCE_MIN_ADVERTISED: Final = 0
"""The lowest version of Produce that 4.4.0 lists, for librdkafka's feature probe.  Brokers serve
version 3 and higher (KAFKA-18659)."""

PEER_APIS: Final = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)
"""The requests between brokers, in their latest versions; the handlers for clients serve them."""
TELEMETRY: Final = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)

_KNOWN: Final = {key: line.all_versions for key, line in APIS.items()}
_codecs: dict[tuple[int, int], Codec] = {}
_record_codecs: dict[tuple[str, int], RecordCodec] = {}


def is_known(api_key: int, api_version: int) -> bool:
    """Whether there is a codec.  Versions that 4.0 removed have one too."""
    oldest, newest = _KNOWN.get(api_key, NEVER)
    return oldest <= api_version <= newest


def advertised_versions(listener: str = "broker") -> list[tuple[ApiKey, int, int]]:
    """(key, lowest, highest) as a 4.4.0 node lists them in ApiVersions on a listener of this kind:
    ordered by key, without unstable versions and without telemetry (no reporter is configured)."""
    rows = []
    for key, (low, high) in VERSIONS.items():
        line = APIS[key]
        if listener in line.listeners and key not in TELEMETRY:
            low = PRODUCE_MIN_ADVERTISED if key == ApiKey.PRODUCE else low
            rows.append((ApiKey(key), low, high - line.is_latest_unstable))
    return rows


def codec(api_key: int, api_version: int) -> Codec:
    """The decode and encode functions of one API version, always as one shared object.

    KeyError unless `is_known`.
    """
    known = _codecs.get((api_key, api_version))
    if known is None:
        from kcluster.protocol.codec.compiler import Codec

        if not is_known(api_key, api_version):
            raise KeyError((api_key, api_version))
        known = _codecs[api_key, api_version] = Codec(APIS[api_key].name, api_key, api_version)
    return known


def record_codec(name: str, version: int) -> RecordCodec:
    """The codec of one version of a value in an internal topic, in the metadata log or in the
    consumer protocol, such as `OffsetCommitValue`.

    KeyError if there is no such record or version.
    """
    known = _record_codecs.get((name, version))
    if known is None:
        from kcluster.protocol.codec.compiler import RecordCodec

        low, high = record_lines()[name].versions
        if not low <= version <= high:
            raise KeyError((name, version))
        known = _record_codecs[name, version] = RecordCodec(name, version)
    return known
