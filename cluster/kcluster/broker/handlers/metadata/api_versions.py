"""ApiVersions (API 18, v0-5): the APIs, versions and features of this broker.

Owns: the list from which clients choose their versions.  Never: checks a request's own version
(channel.py does, and answers a too new ApiVersions with `too_new`).  Kafka:
KafkaApis.handleApiVersionsRequest, ApiVersionManager; KIP-35, KIP-511, KIP-584, KIP-1022, KIP-1242.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.registry import SERVED_APIS, handles
from kcluster.broker.versions import (
    FIRST_WITH_API_VERSIONS_IN_ERRORS,
    FIRST_WITH_EPOCHS_OF_FEATURES,
    LATEST,
    listed,
    served,
)
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import TELEMETRY, ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import supported
from kcluster.protocol.releases import Release

LISTED_FROM: Final = {ApiKey.PRODUCE: 0}
"""The versions that are listed below the served versions: librdkafka looks for Produce v0 to detect
codecs (KAFKA-18659).  Kafka: ApiVersionsResponse.collectApis."""

NO_NODE: Final = -1
"""The node id of a client that expects no particular broker."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


@handles(ApiKey.API_VERSIONS, versions=(0, 5))
def api_versions(broker: Broker, request: Request, now_ms: int) -> m.ApiVersionsResponse:
    """List APIs and features.

    Behaviour:
    - every served API, by key, with 4.4.0's versions of it;
    - finalized features, with the offset of the image as their epoch;
    - INVALID_REQUEST for a client software name or version with other characters than letters,
      digits, dots and dashes, or with a dot or dash at either end;
    - REBOOTSTRAP_REQUIRED for a client that expects another cluster or broker at this address,
      INVALID_REQUEST if it names only one of the two.
    Versions:
    - v3: features (KIP-584) and the client's software (KIP-511)
    - v4: also features whose lowest level is 0 (KIP-1022)
    - v5: the cluster and broker that the client expects (KIP-1242)
    Not done: zk_migration_ready (always false since 4.0).
    """
    image, version = broker.image, request.api_version
    has_subscriptions = bool(broker.telemetry.subscriptions(image))
    if has_subscriptions:
        broker.telemetry.note_software(
            request.connection_id,
            request.body.client_software_name,
            request.body.client_software_version,
        )
    response = build_api_versions(
        request.body, version, image.offset, image.features, broker.release, has_subscriptions
    )
    error = _place_problem(request.body, broker.cluster_id, broker.node_id)
    if error is not ErrorCode.NONE and not response.error_code:
        return m.ApiVersionsResponse(error_code=error)
    return response


def _place_problem(request: m.ApiVersionsRequest, cluster_id: str, node_id: int) -> ErrorCode:
    """The error if a client expected to reach another place; None if the request names no place, or
    this one.  Clients follow stale metadata to an address that now has another owner (KIP-1242)."""
    if request.cluster_id is None and request.node_id == NO_NODE:
        return ErrorCode.NONE
    if request.cluster_id is None or request.node_id == NO_NODE:
        return ErrorCode.INVALID_REQUEST
    is_here = request.cluster_id == cluster_id and request.node_id == node_id
    return ErrorCode.NONE if is_here else ErrorCode.REBOOTSTRAP_REQUIRED


def build_api_versions(
    request: m.ApiVersionsRequest,
    version: int,
    metadata_offset: int,
    finalized: Mapping[str, int],
    release: Release = LATEST,
    with_telemetry: bool = False,
) -> m.ApiVersionsResponse:
    """The answer to `request`; `finalized`: the levels in force, by feature."""
    if version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return m.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    response = m.ApiVersionsResponse(api_keys=_api_keys(release, with_telemetry))
    if version < 3:
        return response
    if not release.is_kraft:
        if release.number >= FIRST_WITH_EPOCHS_OF_FEATURES:
            response.finalized_features_epoch = 0
        return response
    features = supported(release)
    response.supported_features = [
        m.ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, (low, high) in features.items()
        if version >= 4 or low > 0
    ]
    response.finalized_features_epoch = metadata_offset
    response.finalized_features = [
        m.ApiVersionsResponse.FinalizedFeatureKey(
            # A broker of an older release shows no level above its own highest.
            name=name,
            max_version_level=min(finalized[name], high),
            min_version_level=min(finalized[name], high),
        )
        for name, (_, high) in features.items()
        if name in finalized
    ]
    return response


def too_new(release: Release = LATEST) -> m.ApiVersionsResponse:
    """The answer, in version 0, to an ApiVersions request of a version above ours:
    UNSUPPORTED_VERSION and (from 2.4 on) the versions of this API, so that the client can ask
    again.
    """
    response = m.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    versions = served(release, ApiKey.API_VERSIONS)
    if versions is not None and release.number >= FIRST_WITH_API_VERSIONS_IN_ERRORS:
        response.api_keys = [m.ApiVersionsResponse.ApiVersion(ApiKey.API_VERSIONS, *versions)]
    return response


def _api_keys(release: Release, with_telemetry: bool) -> list[m.ApiVersionsResponse.ApiVersion]:
    if release is LATEST:
        # DIFFERS: Kafka lists the telemetry APIs if a plug-in takes metrics (KIP-714); here they
        # are listed while there are subscriptions, and always answered.
        return [
            _listed(api_key)
            for api_key in sorted(SERVED_APIS)
            if with_telemetry or api_key not in TELEMETRY
        ]
    return [m.ApiVersionsResponse.ApiVersion(*row) for row in listed(release)]


def _listed(api_key: int) -> m.ApiVersionsResponse.ApiVersion:
    api = SERVED_APIS[api_key]
    return m.ApiVersionsResponse.ApiVersion(
        api_key=api_key,
        min_version=LISTED_FROM.get(api.api_key, api.min_version),
        max_version=api.max_version,
    )
