"""Feature levels: which changes are allowed, and their effects."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.events.topics import FeatureChanged
from kcluster.events.words import text_of
from kcluster.metadata.records import BROKER_RESOURCE, ConfigRecord
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION
from tests.controller.harness import Controller

UNKNOWN, UP, SAFE, UNSAFE = 0, 1, 2, 3
GROUP = "group.version"
MIN_ISR = "min.insync.replicas"


def update(t: Controller, *updates: tuple[str, int, int], validate_only: bool = False) -> Any:
    Update = m.UpdateFeaturesRequest.FeatureUpdateKey
    request = m.UpdateFeaturesRequest(
        feature_updates=[
            Update(feature=name, max_version_level=level, upgrade_type=how)
            for name, level, how in updates
        ],
        validate_only=validate_only,
    )
    return t.ask(1, request)


def test_features__a_new_cluster_has_the_levels_of_4_4() -> None:
    assert Controller().node.image.features == {
        GROUP: 1,
        METADATA_VERSION: 33,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
        ELR_VERSION: 1,
    }
    assert ELR_VERSION not in Controller(eligible_leader_replicas_version=0).node.image.features


def test_features__a_new_cluster_has_the_levels_that_were_chosen() -> None:
    chosen = Controller(features={"transaction.version": 1, GROUP: 0}).node.image.features
    assert (chosen["transaction.version"], chosen.get(GROUP)) == (1, None)


@pytest.mark.parametrize(
    ("metadata_version", "names"),
    [
        (21, []),
        (22, [GROUP]),
        (24, [GROUP, "transaction.version"]),
        (26, [GROUP, "transaction.version", ELR_VERSION]),
        (28, [GROUP, "share.version", "transaction.version", ELR_VERSION]),
    ],
)
def test_features__a_lower_metadata_version_has_fewer_by_default(
    metadata_version: int, names: list[str]
) -> None:
    levels = Controller(features={METADATA_VERSION: metadata_version}).node.image.features
    assert sorted(levels) == sorted([METADATA_VERSION, *names])


def test_features__metadata_version_goes_up_and_down_where_no_record_is_lost() -> None:
    t = Controller(features={METADATA_VERSION: 26})
    assert update(t, (METADATA_VERSION, 29, UP)).error_code == ErrorCode.NONE
    assert update(t, (METADATA_VERSION, 23, SAFE)).error_code == ErrorCode.NONE
    assert t.node.image.features[METADATA_VERSION] == 23
    assert "share.version" not in t.node.image.features
    answer = update(t, (METADATA_VERSION, 22, SAFE))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "from 23 to 22" in answer.error_message


def test_features__a_level_that_needs_another_feature_is_refused_without_it() -> None:
    t = Controller(features={METADATA_VERSION: 22})
    answer = update(t, (ELR_VERSION, 1, UP))
    assert answer.error_message.endswith(
        f"{ELR_VERSION} could not be set to 1 because it depends on metadata.version level 23"
    )
    both = update(t, (ELR_VERSION, 1, UP), (METADATA_VERSION, 23, UP))
    assert both.error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("name", "level", "how", "part"),
    [
        ("none.version", 1, UP, "does not support this feature"),
        ("none.version", 0, UP, "not found"),
        (GROUP, 2, UP, "only supports versions 0-1"),
        (GROUP, -1, SAFE, "less than 0"),
        (GROUP, 0, UP, "without setting the upgrade type"),
        (GROUP, 0, UNKNOWN, "upgrade type"),
        (GROUP, 0, 4, "upgrade type"),
        (KRAFT_VERSION, 1, SAFE, "downgrade to a newer version"),
        (METADATA_VERSION, 34, UP, "only supports versions 7-33"),
        (METADATA_VERSION, 30, UP, "without setting the upgrade type"),
        (METADATA_VERSION, 31, SAFE, "might delete"),
        (METADATA_VERSION, 30, UNSAFE, "Unsafe"),
    ],
)
def test_features__refused(name: str, level: int, how: int, part: str) -> None:
    t = Controller()
    before = dict(t.node.image.features)
    answer = update(t, (GROUP, 1, UP), (name, level, how))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert part in answer.error_message
    assert t.node.image.features == before


@pytest.mark.parametrize("how", [SAFE, UNSAFE])
def test_features__a_feature_can_be_switched_off_and_on(how: int) -> None:
    t = Controller()
    assert update(t, ("transaction.version", 0, how)).error_code == ErrorCode.NONE
    assert "transaction.version" not in t.node.image.features
    assert update(t, ("transaction.version", 1, UP)).error_code == ErrorCode.NONE
    assert t.node.image.features["transaction.version"] == 1
    texts = [text_of(event) for event in t.events(FeatureChanged)]
    assert texts[-1] == "transaction.version changed from level 0 to 1"


def test_features__validate_only_changes_nothing() -> None:
    t = Controller()
    end_offset = t.node.end_offset
    assert update(t, (GROUP, 0, SAFE), validate_only=True).error_code == ErrorCode.NONE
    assert (t.node.end_offset, t.node.image.features[GROUP]) == (end_offset, 1)


def test_features__of_two_updates_the_last_counts() -> None:
    t = Controller()
    assert update(t, (GROUP, 9, UP), (GROUP, 0, SAFE)).error_code == ErrorCode.NONE
    assert GROUP not in t.node.image.features


def test_features__kraft_version_never_goes_down() -> None:
    t = Controller()
    assert update(t, (KRAFT_VERSION, 1, UP)).error_code == ErrorCode.NONE
    answer = update(t, (KRAFT_VERSION, 0, SAFE))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert t.node.image.features[KRAFT_VERSION] == 1


def test_features__elr_makes_min_isr_cluster_wide() -> None:
    t = Controller(eligible_leader_replicas_version=0, min_insync_replicas=2)
    t.node.commit([ConfigRecord(BROKER_RESOURCE, "1", MIN_ISR, "3")])
    before = t.node.image.elr_enabled
    update(t, (ELR_VERSION, 1, UP))
    assert (before, t.node.image.elr_enabled) == (False, True)
    assert t.node.image.configs[BROKER_RESOURCE, ""][MIN_ISR] == "2"
    assert (BROKER_RESOURCE, "1") not in t.node.image.configs
