"""UpdateFeatures (API 57, v0-2): the level of each feature in the cluster.

Owns: the checks of an update, and its records.  Never: defines the levels (protocol/features.py).
Kafka: FeatureControlManager; KIP-584, KIP-778, KIP-1022.

Two levels change the behaviour of the controller: eligible.leader.replicas.version turns ELRs on
and off (KIP-966), kraft.version lets voters be added and removed (quorum.py).  The coordinators
obey transaction.version, group.version, share.version and streams.version.

# DIFFERS: the level of metadata.version decides only on the levels of features in a new cluster,
# and whether controllers can be unregistered: records and messages between nodes are always those
# of 4.4.  So a broker of a release before that level may register.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.contract import CONTROLLER_ID
from kcluster.controller.partitions.partitions import MIN_ISR
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.events.topics import FeatureChanged
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.codec.schema import Versions
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import (
    ELR_VERSION,
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    initial_levels,
    loses_metadata,
    missing_dependency,
    supported,
)

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
"""Kafka's FeatureUpdate.UpgradeType codes."""

_THIS: Final = f"Local controller {CONTROLLER_ID}"
_FAILED: Final = "The update failed for all features since the following feature had an error: "


class Features:
    """The levels of features, in the metadata.  `chosen`: levels of a new cluster that differ from
    the defaults."""

    def __init__(self, metadata: MetadataPort, chosen: Mapping[str, int]) -> None:
        self._metadata = metadata
        self._chosen = chosen

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {"UpdateFeaturesRequest": self.update_features}

    def initial_records(self) -> list[MetadataRecord]:
        """The records of a newly formatted cluster: each feature at its initial level."""
        levels = initial_levels(self._chosen)
        if ELR_VERSION not in self._chosen:
            highest = self._metadata.config.eligible_leader_replicas_version
            levels[ELR_VERSION] = min(levels[ELR_VERSION], highest)
        records: list[MetadataRecord] = [
            FeatureLevelRecord(name, level) for name, level in levels.items() if level
        ]
        return records + self._elr_safety_records() if levels[ELR_VERSION] else records

    def update_features(
        self, request: m.UpdateFeaturesRequest, _now_ms: int
    ) -> m.UpdateFeaturesResponse:
        """Change all features or none; an error names the first feature that cannot be changed.
        The last of several updates of one feature counts. Versions: v1 upgrade types, validate_only
        (KIP-778); allow_downgrade of v0 is ignored."""
        updates = {update.feature: update for update in request.feature_updates}
        proposed = dict(self._metadata.image.features)
        proposed.update((name, update.max_version_level) for name, update in updates.items())
        for name, update in updates.items():
            problem = self._problem(name, update.max_version_level, update.upgrade_type, proposed)
            if problem is not None:
                return m.UpdateFeaturesResponse(
                    error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=_FAILED + problem
                )
        if not request.validate_only:
            for name, update in updates.items():
                self._set_level(name, update.max_version_level)
        return m.UpdateFeaturesResponse(error_message=None)

    def _problem(
        self, name: str, level: int, upgrade_type: int, proposed: Mapping[str, int]
    ) -> str | None:
        """The reason why a feature cannot be set to `level`; None if it can.  `proposed`: the
        levels of all features after the request."""
        invalid = f"Invalid update version {level} for feature {name}. "
        current = self._metadata.image.features.get(name, 0)
        if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return f"{invalid}The controller does not support the given upgrade type."
        if level < 0:
            return f"{invalid}A feature version cannot be less than 0."
        if name not in FEATURES and level == 0:
            return f"{invalid}Feature {name} not found."
        unsupported = self._unsupported(name, level)
        if unsupported is not None:
            return invalid + unsupported
        if level > current and upgrade_type != UPGRADE:
            return f"{invalid}Can't downgrade to a newer version."
        if level < current and upgrade_type == UPGRADE:
            return (
                f"{invalid}Can't downgrade the version of this feature without setting the upgrade "
                "type to either safe or unsafe downgrade."
            )
        if name == METADATA_VERSION:
            return _metadata_problem(current, level, upgrade_type)
        if name == KRAFT_VERSION and level < current:
            return f"{invalid}Can't downgrade the version of this feature."
        needed = missing_dependency(name, proposed)
        return None if needed is None else invalid + _depends(name, level, needed)

    def _unsupported(self, name: str, level: int) -> str | None:
        """The first node that does not know a feature's level, in words, the controller first; None
        if all do."""
        metadata = self._metadata
        problem = _not_known(_THIS, level, supported(metadata.release).get(name))
        for broker_id, broker in sorted(metadata.image.brokers.items()):
            if problem is None and METADATA_VERSION in broker.features:
                problem = _not_known(f"Broker {broker_id}", level, broker.features.get(name))
        return problem

    def _set_level(self, name: str, level: int) -> None:
        old = self._metadata.image.features.get(name, 0)
        if old == level:
            return
        cause = self._metadata.note(FeatureChanged(name, old, level))
        records: list[MetadataRecord] = [FeatureLevelRecord(name, level, cause)]
        if name == ELR_VERSION and level:
            records += self._elr_safety_records()
        self._metadata.commit(records)

    def _elr_safety_records(self) -> list[MetadataRecord]:
        """Records that set min.insync.replicas for the whole cluster and for no single broker, as
        ELR requires. Kafka: ConfigurationControlManager.maybeGenerateElrSafetyRecords."""
        configs = self._metadata.image.configs
        records: list[MetadataRecord] = []
        if MIN_ISR not in configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {}):
            value = str(self._metadata.config.min_insync_replicas)
            records.append(ConfigRecord(BROKER_RESOURCE, CLUSTER_DEFAULT, MIN_ISR, value))
        for (kind, name), values in configs.items():
            if kind == BROKER_RESOURCE and name != CLUSTER_DEFAULT and MIN_ISR in values:
                records.append(ConfigRecord(BROKER_RESOURCE, name, MIN_ISR, None))
        return records


def _not_known(node: str, level: int, versions: Versions | None) -> str | None:
    """The refusal of an unknown level.  Kafka: QuorumFeatures.reasonNotSupported."""
    if versions is None:
        return None if level == 0 else f"{node} does not support this feature."
    low, high = versions
    return None if low <= level <= high else f"{node} only supports versions {low}-{high}"


def _depends(name: str, level: int, needed: tuple[str, int]) -> str:
    reason = f"because it depends on {needed[0]} level {needed[1]}"
    return f"{name} could not be set to {level} {reason}"


def _metadata_problem(current: int, level: int, upgrade_type: int) -> str | None:
    if not loses_metadata(current, level):
        return None
    return f"Unsupported metadata.version downgrade from {current} to {level}. " + (
        "Refusing to perform the requested downgrade because it might delete metadata information."
        if upgrade_type == SAFE_DOWNGRADE
        else "Unsafe metadata downgrade is not supported in this version."
    )
