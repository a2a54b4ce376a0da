"""Versions in ApiVersions answers: a client may use only what the proxy can read."""

from __future__ import annotations

from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.proxy.versions import capped

LINE = m.ApiVersionsResponse.ApiVersion
METADATA_MAX = APIS[ApiKey.METADATA].all_versions[1]


def test_capped__known_versions_stay() -> None:
    answer = m.ApiVersionsResponse(api_keys=[LINE(3, 0, METADATA_MAX), LINE(0, 3, 9)])
    assert not capped(answer)
    assert [(x.api_key, x.max_version) for x in answer.api_keys] == [(3, METADATA_MAX), (0, 9)]


def test_capped__newer_versions_and_unknown_apis_go() -> None:
    answer = m.ApiVersionsResponse(
        api_keys=[LINE(3, 0, METADATA_MAX + 2), LINE(3_000, 0, 1), LINE(0, 900, 901)]
    )
    assert capped(answer)
    assert [(x.api_key, x.max_version) for x in answer.api_keys] == [(3, METADATA_MAX)]
