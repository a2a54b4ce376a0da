"""A broker of an older release: the versions it lists and reads, and its errors."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

import kcluster.broker.handlers  # noqa: F401  # registers what is served
from kcluster.broker.channel import Channel
from kcluster.broker.handlers.metadata.api_versions import build_api_versions, too_new
from kcluster.broker.registry import SERVED_APIS
from kcluster.broker.versions import BETWEEN_BROKERS, LATEST, error_of_release, listed, served
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage
from kcluster.protocol import messages as m
from kcluster.protocol.apis import TELEMETRY, ApiKey
from kcluster.protocol.errors import ErrorCode, ProtocolError
from kcluster.protocol.framing import encode_request_frame
from kcluster.protocol.releases import Release, releases

OLD = [release for release in releases().values() if release is not LATEST]


class Broker:
    def __init__(self, version: str) -> None:
        self.image = MetadataImage()
        self.release = releases()[version]
        self.quotas = SimpleNamespace(is_active=False)
        self.access = None


def frame_of(api_key: int, version: int, body: Any) -> memoryview:
    sent = b"".join(encode_request_frame(api_key, version, 7, "test", body))
    return memoryview(bytearray(sent))[4:]


def asked_by() -> m.ApiVersionsRequest:
    return m.ApiVersionsRequest(client_software_name="x", client_software_version="1")


@pytest.mark.parametrize("release", OLD, ids=lambda release: release.name)
def test_listed__equals_the_releases_list_limited_to_apis_here(release: Release) -> None:
    rows = {key: (low, high) for key, low, high in listed(release)}
    assert rows == {
        key: versions
        for key, versions in release.listed.items()
        if (key in SERVED_APIS or key in BETWEEN_BROKERS) and key not in TELEMETRY
    }


@pytest.mark.parametrize(
    ("version", "api_key", "api_version"),
    [
        ("0.11", ApiKey.FETCH, 6),
        ("0.11", ApiKey.DELETE_GROUPS, 0),
        ("2.8", ApiKey.METADATA, 12),
        ("4.0", ApiKey.PRODUCE, 2),
        ("2.8", ApiKey.LEADER_AND_ISR, 0),
    ],
)
def test_channel__an_api_the_release_does_not_serve_closes_the_connection(
    version: str, api_key: ApiKey, api_version: int
) -> None:
    channel = Channel(Broker(version))
    with pytest.raises(ProtocolError, match="is not served"):
        channel.receive(memoryview(struct.pack(">hhih", api_key, api_version, 7, -1)), 1, "h", 5)


@pytest.mark.parametrize("version", ["0.11", "2.8"])
def test_channel__versions_that_4_0_removed_are_read(version: str) -> None:
    channel = Channel(Broker(version))
    request = channel.receive(frame_of(ApiKey.PRODUCE, 0, m.ProduceRequest(acks=1)), 1, "h", 5)
    assert isinstance(request, Request)
    assert (request.api_version, request.body.acks) == (0, 1)


def test_channel__a_restart_as_another_release_changes_the_list() -> None:
    frame = frame_of(ApiKey.METADATA, 12, m.MetadataRequest(topics=None))
    assert isinstance(Channel(Broker("3.1")).receive(frame, 1, "h", 5), Request)
    with pytest.raises(ProtocolError):
        Channel(Broker("3.0")).receive(frame, 1, "h", 5)


@pytest.mark.parametrize(("version", "listed"), [("2.3", []), ("2.4", [(0, 3)]), ("3.9", [(0, 4)])])
def test_too_new__the_answer_has_the_versions_since_2_4(
    version: str, listed: list[tuple[int, int]]
) -> None:
    response = too_new(releases()[version])
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(api.min_version, api.max_version) for api in response.api_keys] == listed


@pytest.mark.parametrize(
    ("version", "features"),
    [
        ("2.8", []),
        ("3.3", [("metadata.version", 1, 7)]),
        ("3.9", [("metadata.version", 1, 21)]),
        ("4.0", [("metadata.version", 7, 25)]),
    ],
)
def test_api_versions__features_are_those_of_the_release(
    version: str, features: list[tuple[str, int, int]]
) -> None:
    response = build_api_versions(asked_by(), 3, 17, {}, releases()[version])
    assert [
        (feature.name, feature.min_version, feature.max_version)
        for feature in response.supported_features
    ] == features


@pytest.mark.parametrize(("version", "epoch"), [("2.6", -1), ("2.7", 0), ("3.2", 0), ("3.3", 17)])
def test_api_versions__features_have_an_epoch_since_2_7(version: str, epoch: int) -> None:
    response = build_api_versions(asked_by(), 3, 17, {}, releases()[version])
    assert response.finalized_features_epoch == epoch


def test_served__produce_v0_is_listed_from_4_0_on_and_not_served() -> None:
    for version in ("4.0", "4.2"):
        release = releases()[version]
        rows = {key: (low, high) for key, low, high in listed(release)}
        assert rows[ApiKey.PRODUCE][0] == 0
        assert served(release, ApiKey.PRODUCE) == (3, rows[ApiKey.PRODUCE][1])


@pytest.mark.parametrize(
    ("version", "error", "expected"),
    [
        ("2.3", ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE),
        ("2.4", ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD),
        ("2.0", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.UNKNOWN_SERVER_ERROR),
        ("0.11", ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_error_of_release__errors_of_later_releases_are_replaced(
    version: str, error: ErrorCode, expected: ErrorCode
) -> None:
    assert error_of_release(releases()[version], error) is expected
