"""ApiVersions (API 18, v0-4): which APIs, versions and features this broker has.

Owns: the list that clients choose their versions from.  Never: checks a request's own version
(channel.py does, and answers a too new ApiVersions with `too_new`).
Kafka: KafkaApis.handleApiVersionsRequest, ApiVersionManager; KIP-35, KIP-511, KIP-584, KIP-1022.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cluster.broker.registry import SERVED_APIS, handles
from cluster.contract import Request
from cluster.protocol import messages as m
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from cluster.broker.node import BrokerNode

LISTED_FROM: Final = {ApiKey.PRODUCE: 0}
"""Versions listed below those served: librdkafka looks for Produce v0 to tell what codecs there
are (KAFKA-18659).  Kafka: ApiVersionsResponse.collectApis."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

METADATA_VERSION: Final = "metadata.version"
SUPPORTED_FEATURES: Final = ((METADATA_VERSION, 7, 30), ("eligible.leader.replicas.version", 0, 1))
"""(name, lowest, highest level): 4.3's range of metadata.version, and what of the others is really
here.  A 4.3.1 broker also lists group, kraft, share, streams and transaction.version."""
# DIFFERS: features of parts that do not exist here yet are not listed.


@handles(ApiKey.API_VERSIONS, versions=(0, 4))
def api_versions(broker: BrokerNode, request: Request, now_ms: int) -> m.ApiVersionsResponse:
    """List APIs and features.

    Behaviour: every served API, by key, with 4.3.1's versions of it; finalized features with the
    offset of the image as their epoch.  A client whose software name or version is not made of
    letters, digits, dots and dashes (none of the latter two at the ends) gets INVALID_REQUEST.
    Versions: v3 features and the client's software (KIP-511, KIP-584); v4 lists features whose
    lowest level is 0 (KIP-1022), which v3 leaves out.
    Not done: zk_migration_ready (always false since 4.0).
    """
    elr_level = broker.static_config.eligible_leader_replicas_version
    return build_api_versions(request.body, request.api_version, broker.image.offset, elr_level)


def build_api_versions(
    request: m.ApiVersionsRequest, version: int, metadata_offset: int, elr_level: int = 1
) -> m.ApiVersionsResponse:
    """The answer to `request`; `elr_level`: the finalized eligible.leader.replicas.version."""
    if version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return m.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    response = m.ApiVersionsResponse(api_keys=[_listed(api_key) for api_key in sorted(SERVED_APIS)])
    if version < 3:
        return response
    response.supported_features = [
        m.ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, low, high in SUPPORTED_FEATURES
        if version >= 4 or low > 0
    ]
    response.finalized_features_epoch = metadata_offset
    levels = {name: high for name, _, high in SUPPORTED_FEATURES}
    levels["eligible.leader.replicas.version"] = elr_level
    response.finalized_features = [
        m.ApiVersionsResponse.FinalizedFeatureKey(
            name=name, max_version_level=level, min_version_level=level
        )
        for name, level in levels.items()
        if level > 0
    ]
    return response


def too_new() -> m.ApiVersionsResponse:
    """What a client gets, in version 0's form, that asks with a version of ApiVersions above ours:
    UNSUPPORTED_VERSION and this one API's versions, so that it can ask again."""
    return m.ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_listed(ApiKey.API_VERSIONS)]
    )


def _listed(api_key: int) -> m.ApiVersionsResponse.ApiVersion:
    api = SERVED_APIS[api_key]
    return m.ApiVersionsResponse.ApiVersion(
        api_key=api_key,
        min_version=LISTED_FROM.get(api.api_key, api.min_version),
        max_version=api.max_version,
    )
