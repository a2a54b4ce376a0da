"""Brokers of two releases in one cluster, and the upgrade of the last one: as seen of Apache Kafka
4.3.1 and 4.4.0 in one quorum."""

from __future__ import annotations

from typing import Any

from kcluster.config.topology.model import Topology
from kcluster.contract import CONTROLLER_ID
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import METADATA_VERSION, SHARE_VERSION
from tests.rig.cluster import VirtualRig

UPGRADE = 1


def mixed(*releases: str) -> VirtualRig:
    brokers = [{"id": id_, "kafka_version": one} for id_, one in enumerate(releases, 1)]
    rig = VirtualRig(Topology.of(brokers=brokers))
    rig.open()
    rig.wait(rig.verbs.settled.all_serving, "whole cluster")
    return rig


def levels(rig: VirtualRig, broker: int) -> dict[str, tuple[int, int]]:
    """Of two features, as a client sees them at a broker: the level in force, and the highest."""
    request = m.ApiVersionsRequest("test", "1")
    answer = rig.ask_and_wait(broker, ApiKey.API_VERSIONS, 4, request)
    highest = {one.name: one.max_version for one in answer.supported_features}
    return {
        one.name: (one.max_version_level, highest[one.name])
        for one in answer.finalized_features
        if one.name in (METADATA_VERSION, SHARE_VERSION)
    }


def raised(rig: VirtualRig, name: str, level: int) -> Any:
    update = m.UpdateFeaturesRequest.FeatureUpdateKey(name, level, False, UPGRADE)
    request = m.UpdateFeaturesRequest(feature_updates=[update])
    return rig.ask_and_wait(1, ApiKey.UPDATE_FEATURES, 2, request)


def test_mixed__the_cluster_begins_at_the_level_of_its_oldest_broker() -> None:
    rig = mixed("4.3", "4.4", "4.4")
    assert levels(rig, 1) == {METADATA_VERSION: (30, 30), SHARE_VERSION: (1, 1)}
    assert levels(rig, 2) == {METADATA_VERSION: (30, 33), SHARE_VERSION: (1, 2)}
    assert levels(mixed("3.9", "4.4"), 2)[METADATA_VERSION] == (33, 33)


def test_mixed__levels_that_one_broker_does_not_know_are_refused() -> None:
    rig = mixed("4.3", "4.4", "4.4")
    for name, level, known in ((METADATA_VERSION, 31, "7-30"), (SHARE_VERSION, 2, "0-1")):
        answer = raised(rig, name, level)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert answer.error_message.endswith(f"Broker 1 only supports versions {known}")
    assert raised(rig, "streams.version", 1).error_code == ErrorCode.NONE
    unregister = m.UnregisterControllerRequest(77)
    answer = rig.ask_and_wait(2, ApiKey.UNREGISTER_CONTROLLER, 0, unregister)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_upgrade__the_levels_rise_when_all_brokers_and_the_controller_are_new() -> None:
    rig = mixed("4.3", "4.3")
    for broker in (1, 2):
        rig.kill(broker, "clean")
        rig.run_for(2_000)
        rig.verbs.start(broker, "4.4")
        rig.wait(rig.verbs.settled.all_serving, "whole cluster")
    answer = raised(rig, METADATA_VERSION, 33)
    assert answer.error_message.endswith("Local controller 3000 only supports versions 7-30")
    rig.kill(CONTROLLER_ID)
    rig.start(CONTROLLER_ID)
    rig.wait(rig.verbs.settled.all_serving, "whole cluster")
    assert raised(rig, METADATA_VERSION, 33).error_code == ErrorCode.NONE
    assert raised(rig, SHARE_VERSION, 2).error_code == ErrorCode.NONE
    rig.run_for(1_000)
    assert levels(rig, 1) == {METADATA_VERSION: (33, 33), SHARE_VERSION: (2, 2)}
