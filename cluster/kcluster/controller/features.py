"""UpdateFeatures (API 57, v0-2): which level of each feature the cluster runs at.

Owns: the checks of an update, and what follows from it.  Never: knows which levels there are
(protocol/features.py).  Kafka: FeatureControlManager; KIP-584, KIP-778, KIP-1022.

What a level changes here: eligible.leader.replicas.version has the controller keep ELRs or not
(KIP-966); kraft.version lets voters be added and removed (quorum.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcluster.controller.registry import answers
from kcluster.events.topics import FeatureChanged
from kcluster.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import ELR_VERSION, FEATURES, KRAFT_VERSION, METADATA_VERSION

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
"""Kafka's FeatureUpdate.UpgradeType codes."""

MIN_ISR: Final = "min.insync.replicas"

_FAILED: Final = "The update failed for all features since the following feature had an error: "


def initial_records(node: ControllerNode) -> list[MetadataRecord]:
    """What formatting writes: every feature at its first level, and ELR's as configured."""
    levels = {name: feature.initial for name, feature in FEATURES.items()}
    levels[ELR_VERSION] = node.config.eligible_leader_replicas_version
    records: list[MetadataRecord] = [
        FeatureLevelRecord(name, level) for name, level in levels.items() if level
    ]
    return records + _elr_safety_records(node) if levels[ELR_VERSION] else records


@answers("UpdateFeaturesRequest")
def update_features(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: all or nothing: the first feature that cannot be changed is told.  Of several
    updates of one feature the last counts.
    Versions: v1 upgrade types and validate_only (KIP-778); v0's allow_downgrade has no effect."""
    updates = {update.feature: update for update in request.feature_updates}
    for name, update in updates.items():
        problem = _problem(node, name, update.max_version_level, update.upgrade_type)
        if problem is not None:
            return m.UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=_FAILED + problem
            )
    if not request.validate_only:
        for name, update in updates.items():
            _set_level(node, name, update.max_version_level)
    return m.UpdateFeaturesResponse(error_message=None)


def _problem(node: ControllerNode, name: str, level: int, upgrade_type: int) -> str | None:
    """Why a feature cannot be set to `level`; None if it can."""
    invalid = f"Invalid update version {level} for feature {name}. "
    current = node.image.features.get(name, 0)
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"{invalid}The controller does not support the given upgrade type."
    if level < 0:
        return f"{invalid}A feature version cannot be less than 0."
    feature = FEATURES.get(name)
    if feature is None:
        if level == 0:
            return f"{invalid}Feature {name} not found."
        return f"{invalid}Local controller {node.node_id} does not support this feature."
    if not feature.lowest <= level <= feature.highest:
        supported = f"{feature.lowest}-{feature.highest}"
        return f"{invalid}Local controller {node.node_id} only supports versions {supported}"
    if level > current and upgrade_type != UPGRADE:
        return f"{invalid}Can't downgrade to a newer version."
    if level >= current:
        return None
    if upgrade_type == UPGRADE:
        return (
            f"{invalid}Can't downgrade the version of this feature without setting the upgrade "
            "type to either safe or unsafe downgrade."
        )
    if name == KRAFT_VERSION:
        return f"{invalid}Can't downgrade the version of this feature."
    if name == METADATA_VERSION:
        # Level 30 itself brought new records, so every way down from it might lose some.
        return f"Unsupported metadata.version downgrade from {current} to {level}. " + (
            "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
            if upgrade_type == SAFE_DOWNGRADE
            else "Unsafe metadata downgrade is not supported in this version."
        )
    return None


def _set_level(node: ControllerNode, name: str, level: int) -> None:
    old = node.image.features.get(name, 0)
    if old == level:
        return
    cause = node.note(FeatureChanged(name, old, level))
    records: list[MetadataRecord] = [FeatureLevelRecord(name, level, cause)]
    if name == ELR_VERSION and level:
        records += _elr_safety_records(node)
    node.commit(records)


def _elr_safety_records(node: ControllerNode) -> list[MetadataRecord]:
    """With ELR, min ISR is the cluster's matter: it has one, and no broker has one of its own.
    Kafka: ConfigurationControlManager.maybeGenerateElrSafetyRecords."""
    configs = node.image.configs
    records: list[MetadataRecord] = []
    if MIN_ISR not in configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {}):
        value = str(node.config.min_insync_replicas)
        records.append(ConfigRecord(BROKER_RESOURCE, CLUSTER_DEFAULT, MIN_ISR, value))
    for (kind, name), values in configs.items():
        if kind == BROKER_RESOURCE and name != CLUSTER_DEFAULT and MIN_ISR in values:
            records.append(ConfigRecord(BROKER_RESOURCE, name, MIN_ISR, None))
    return records
