"""ApiVersions: the list of a real broker is the oracle."""

from __future__ import annotations

import pytest

from kcluster.broker.handlers.metadata.api_versions import build_api_versions, too_new
from kcluster.broker.registry import SERVED_APIS
from kcluster.protocol import messages as m
from kcluster.protocol.apis import VERSIONS, ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import CLUSTER_ID, OneBroker, broker_records

REAL_4_4_0 = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6),
    11: (0, 9), 12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 5),
    19: (2, 7), 20: (1, 6), 21: (0, 2), 22: (0, 5), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5),
    27: (1, 2), 28: (0, 6), 29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4), 33: (0, 2), 34: (1, 2),
    35: (1, 5), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3), 42: (0, 3),
    43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 48: (0, 1), 49: (0, 1), 50: (0, 0),
    51: (0, 0), 55: (0, 2), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0), 66: (0, 2),
    68: (0, 1), 69: (0, 1), 74: (0, 1), 75: (0, 0), 76: (1, 1), 77: (1, 1), 78: (1, 2), 79: (1, 2),
    80: (0, 1), 81: (0, 0), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0), 87: (0, 1), 88: (0, 1),
    89: (0, 1), 90: (0, 1), 91: (0, 0), 92: (0, 0), 93: (0, 0), 94: (0, 0),
}  # fmt: skip
"""All that a 4.4.0 broker listed."""

UNLISTED = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
"""Answered by 4.4.0, but listed only when a plug-in takes clients' metrics."""

LEVELS = {"metadata.version": 30, "transaction.version": 2}
"""As if the others were off."""


def asked_by(name: str = "kafka-python", version: str = "3.0.12") -> m.ApiVersionsRequest:
    return m.ApiVersionsRequest(client_software_name=name, client_software_version=version)


def listed(response: m.ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


@pytest.mark.parametrize("version", range(6))
def test_api_versions__lists_the_served_apis_as_a_real_broker_does(version: int) -> None:
    one = OneBroker(broker_records(1))
    response = one.ask(ApiKey.API_VERSIONS, version, asked_by())
    ours = listed(response)
    assert list(ours) == [key for key in sorted(SERVED_APIS) if key not in UNLISTED]
    assert ours == {key: REAL_4_4_0[key] for key in ours}


def test_api_versions__every_served_version_has_a_codec() -> None:
    for api in SERVED_APIS.values():
        low, high = VERSIONS[api.api_key]
        assert low <= api.min_version <= api.max_version <= high


def test_api_versions__features_of_level_0_need_version_4() -> None:
    v3, v4 = (build_api_versions(asked_by(), version, 17, LEVELS) for version in (3, 4))
    assert [feature.name for feature in v3.supported_features] == ["metadata.version"]
    assert {f.name: (f.min_version, f.max_version) for f in v4.supported_features} == {
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 33),
        "share.version": (0, 2),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
        "eligible.leader.replicas.version": (0, 1),
    }
    assert v3.finalized_features == v4.finalized_features
    assert v3.finalized_features_epoch == 17


def test_api_versions__a_feature_that_is_off_is_not_finalized() -> None:
    response = build_api_versions(asked_by(), 4, 17, LEVELS)
    assert {f.name: f.max_version_level for f in response.finalized_features} == LEVELS


@pytest.mark.parametrize(
    ("name", "version", "valid"),
    [
        ("a.b-c", "1.0-x", True),
        ("A1", "1a", True),
        ("", "1", False),
        ("a", "", False),
        ("a b", "1", False),
        ("-a", "1", False),
        ("a.", "1", False),
        ("a_b", "1", False),
        ("a", "1+2", False),
        ("é", "1", False),
        ("a\n", "1", False),
    ],
)
def test_api_versions__software_is_letters_digits_dots_and_dashes(
    name: str, version: str, valid: bool
) -> None:
    response = build_api_versions(asked_by(name, version), 3, 17, LEVELS)
    assert response.error_code == (ErrorCode.NONE if valid else ErrorCode.INVALID_REQUEST)
    assert bool(response.api_keys) is valid


def test_api_versions__software_is_ignored_before_version_3() -> None:
    assert build_api_versions(asked_by("", ""), 2, 17, LEVELS).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "error"),
    [
        (None, -1, ErrorCode.NONE),
        ("here", 1, ErrorCode.NONE),
        ("here", 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("there", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("here", -2, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("here", -1, ErrorCode.INVALID_REQUEST),
        ("there", -1, ErrorCode.INVALID_REQUEST),
        (None, 1, ErrorCode.INVALID_REQUEST),
        (None, -(2**31), ErrorCode.INVALID_REQUEST),
    ],
)
def test_api_versions__a_client_that_expects_another_place_has_to_bootstrap_again(
    cluster_id: str | None, node_id: int, error: ErrorCode
) -> None:
    one = OneBroker(broker_records(1))
    expected = CLUSTER_ID if cluster_id == "here" else cluster_id
    request = m.ApiVersionsRequest("kafka", "4.4", expected, node_id)
    response = one.ask(ApiKey.API_VERSIONS, 5, request)
    assert response.error_code == error
    assert bool(response.api_keys) is (error is ErrorCode.NONE)


def test_api_versions__a_too_new_client_gets_the_supported_versions() -> None:
    response = too_new()
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert listed(response) == {ApiKey.API_VERSIONS: (0, 5)}
