"""The table of releases: a few published facts, and the accepted spellings of a version."""

from __future__ import annotations

import warnings

import pytest

from kcluster.protocol.apis import APIS, TELEMETRY, ApiKey, advertised_versions
from kcluster.protocol.releases import find_release, latest, releases


def test_releases__are_in_order_and_end_with_the_latest() -> None:
    numbers = [release.number for release in releases().values()]
    assert numbers == sorted(numbers)
    assert (numbers[0], latest().name) == ((0, 11), "4.4")


@pytest.mark.parametrize(
    ("version", "api_key", "versions"),
    [
        ("0.11", ApiKey.PRODUCE, (0, 3)),
        ("1.1", ApiKey.FETCH, (0, 7)),
        ("2.8", ApiKey.METADATA, (0, 11)),
        ("2.8", ApiKey.LEADER_AND_ISR, (0, 5)),
        ("3.9", ApiKey.DESCRIBE_TOPIC_PARTITIONS, (0, 0)),
        ("4.0", ApiKey.FETCH, (4, 17)),
    ],
)
def test_releases__have_the_versions_that_brokers_listed(
    version: str, api_key: ApiKey, versions: tuple[int, int]
) -> None:
    assert releases()[version].listed[api_key] == versions


@pytest.mark.parametrize(
    ("version", "api_key"),
    [
        ("0.11", ApiKey.DELETE_GROUPS),
        ("2.8", ApiKey.ALLOCATE_PRODUCER_IDS),
        ("3.9", ApiKey.LEADER_AND_ISR),
    ],
)
def test_releases__do_not_list_apis_of_later_releases(version: str, api_key: ApiKey) -> None:
    assert api_key not in releases()[version].listed


def test_releases__the_latest_is_the_table_that_the_codec_was_made_from() -> None:
    listed = {key: (low, high) for key, low, high in advertised_versions()}
    of_the_latest = dict(latest().listed)
    for telemetry in TELEMETRY:
        del of_the_latest[telemetry]
    assert of_the_latest == listed


def test_releases__agree_with_kafka_pythons_table_of_real_brokers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        seen = pytest.importorskip("kafka.protocol.broker_version_data").BROKER_API_VERSIONS
    compared = 0
    for release in releases().values():
        # Before 4.0 its table is of ZooKeeper brokers, and 4.0 is 4.0.0, before 4.0.1 fixed
        # JoinGroup.  A broker lists telemetry if a reporter is configured.
        if release.number not in seen or (3, 3) <= release.number < (4, 0):
            continue
        ours, theirs = dict(release.listed), dict(seen[release.number])
        for api_key in (*TELEMETRY, *([ApiKey.JOIN_GROUP] if release.name == "4.0" else [])):
            ours.pop(api_key, None)
            theirs.pop(api_key, None)
        assert ours == theirs, release
        compared += 1
    assert compared >= 15


def test_releases__every_version_ever_listed_has_a_codec() -> None:
    for release in releases().values():
        for api_key, (low, high) in release.listed.items():
            known = APIS[api_key].all_versions
            assert known[0] <= low, (release, api_key)
            assert high <= known[1], (release, api_key)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("2.8", "2.8"),
        ("2.8.2", "2.8"),
        ("0.11", "0.11"),
        ("0.11.0", "0.11"),
        ("0.11.0.3", "0.11"),
        ("4.3.1", "4.3"),
        ("4.4.0", "4.4"),
        ("2.9", None),
        ("0.10", None),
        ("2", None),
        ("", None),
        ("2.8.x", None),
        ("2.8.", None),
        ("2.8.2.1.1", None),
        ("v2.8", None),
    ],
)
def test_find_release__finds_the_release_of_a_patch(text: str, name: str | None) -> None:
    found = find_release(text)
    assert (found and found.name) == name
