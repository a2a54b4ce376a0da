"""The APIs and versions that a broker of an older release serves and lists, and its replacements
for newer errors.

Owns: the set of a release's APIs with handlers here; the differences between releases that handlers
need.  Never: holds the table of releases (protocol/releases.py), answers a request.  Kafka:
ApiVersionManager, ApiVersionsResponse; KIP-35, KIP-896.

Handlers serve every version that the codec knows, even versions older than 4.4.0's.  The release
decides on the versions that a client sees.
"""

from __future__ import annotations

from typing import Final, TypeVar

from kcluster.broker.registry import SERVED_APIS
from kcluster.metadata.image import MetadataImage
from kcluster.protocol.apis import APIS, TELEMETRY, ApiKey
from kcluster.protocol.codec.schema import Versions
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.protocol.releases import Release, latest

M = TypeVar("M", bound=Message)

LATEST: Final = latest()

FIRST_WITHOUT_FORMATS_0_AND_1: Final = (4, 0)
"""KIP-896: from this release on Produce begins with v3; v0 to v2 are listed only for librdkafka."""
FIRST_WITH_API_VERSIONS_IN_ERRORS: Final = (2, 4)
"""KIP-511: before this release, an answer to a too new ApiVersions has the error and no
versions."""
FIRST_WITH_PARTITION_DEFAULTS: Final = (2, 4)
"""KIP-464: the first release that accepts CreateTopics with -1 partitions or replicas."""
FIRST_WITH_EPOCHS_OF_FEATURES: Final = (2, 7)
"""KIP-584: from this release on ZooKeeper brokers list an epoch of features, 0 while none is
finalized."""

BETWEEN_BROKERS: Final = (
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
)
"""APIs that ZooKeeper brokers list and send to each other; clients do not send them."""
# DIFFERS: a broker here lists them too, but a request for one closes its connection.

_SAID_BEFORE: Final = {
    ErrorCode.INVALID_RECORD: ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""The older error that replaces a newer one (INVALID_RECORD came with KIP-467)."""


def served(release: Release, api_key: int) -> Versions | None:
    """The versions of an API that a broker of `release` answers here; None if it answers none."""
    api = SERVED_APIS.get(api_key)
    if api is None:
        return None
    if release is LATEST:
        return api.min_version, api.max_version
    listed = release.listed.get(api_key)
    if listed is None:
        return None
    low, high = listed
    if api_key == ApiKey.PRODUCE and release.number >= FIRST_WITHOUT_FORMATS_0_AND_1:
        low = api.min_version
    low, high = max(low, APIS[api_key].all_versions[0]), min(high, api.max_version)
    return (low, high) if low <= high else None


def listed(release: Release) -> list[tuple[int, int, int]]:
    """The rows of ApiVersions by key: (API key, lowest version, highest version)."""
    # DIFFERS: APIs without a handler here are not listed, so that clients do not use them.
    rows = []
    for api_key, (low, high) in release.listed.items():
        if api_key in TELEMETRY:
            continue  # listed only with a reporter, which no broker here has
        if api_key in BETWEEN_BROKERS:
            rows.append((api_key, low, high))
            continue
        versions = served(release, api_key)
        if versions is not None:
            low = low if api_key == ApiKey.PRODUCE else versions[0]
            rows.append((api_key, low, versions[1]))
    return rows


def error_of_release(release: Release, error: ErrorCode) -> ErrorCode:
    """The error that a broker of `release` returns in place of `error`."""
    if error <= release.highest_error:
        return error
    return _SAID_BEFORE.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)


# --------------------------------------------------------------------------- brokers as controllers

CONTROLLERS_OWN: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.UPDATE_FEATURES,
    }
)
"""APIs that KRaft brokers forward; ZooKeeper brokers other than the controller answer
NOT_CONTROLLER."""


def zookeeper_controller(image: MetadataImage) -> int:
    """The controller of ZooKeeper brokers, which is one of them; -1 if none is up.

    DIFFERS: with ZooKeeper the controller is the broker that created /controller first; here it is
    the live broker with the lowest id.  Brokers from 3.3 on name any broker, so clients of both may
    need a second request.
    """
    alive = [broker_id for broker_id, broker in image.brokers.items() if not broker.fenced]
    return min(alive, default=-1)


def is_not_controller(release: Release, image: MetadataImage, node_id: int) -> bool:
    """Whether a broker must answer NOT_CONTROLLER to a request, because only the controller serves
    it."""
    return not release.is_kraft and zookeeper_controller(image) != node_id


def not_controller(answer: M) -> M:
    """The answer to a request that timed out, with NOT_CONTROLLER instead of REQUEST_TIMED_OUT."""
    for name in answer.__struct_fields__:
        value = getattr(answer, name)
        if name == "error_code" and value == ErrorCode.REQUEST_TIMED_OUT:
            setattr(answer, name, ErrorCode.NOT_CONTROLLER)
        elif name == "error_message" and value is not None:
            setattr(answer, name, ErrorCode.NOT_CONTROLLER.text)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Message):
                    not_controller(item)
    return answer
