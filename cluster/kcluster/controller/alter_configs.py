"""IncrementalAlterConfigs (API 44, v0-1) and AlterConfigs (API 33, v0-2).

Owns: which config changes are accepted, and the records for them.  Never: knows a config's type or
range (kcluster.config does), makes a broker use it (each does when the record arrives).
Kafka: ConfigurationControlManager, ControllerApis.handleIncrementalAlterConfigs, and of the broker
ConfigAdminManager.preprocess, DynamicBrokerConfig.validate (KIP-226, KIP-339, KIP-412, KIP-966).

Each resource by itself succeeds or fails as a whole.  With ELR, min.insync.replicas of brokers may
only be set for the whole cluster, and a change of it clears ELRs: who was eligible under the old
number may lack records committed under the new one.

Groups and client metrics need not exist to be configured (KIP-848, KIP-714).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kcluster.config.kafka.client_metrics import client_metrics_problem
from kcluster.config.kafka.definitions import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigError,
    TopicConfig,
    describe,
    parse_value,
)
from kcluster.config.kafka.group import group_config_problem
from kcluster.contract import NoteId
from kcluster.controller import elections
from kcluster.controller.leadership import record_of
from kcluster.controller.outcome import ApiError
from kcluster.controller.registry import answers
from kcluster.controller.topic_configs import config_problem
from kcluster.controller.topic_names import name_problem
from kcluster.events.reasons import ConfigUpdated
from kcluster.events.topics import ConfigChanged, ResourceType
from kcluster.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    CLUSTER_DEFAULT,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigRecord,
    MetadataRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
"""Kafka's AlterConfigOp.OpType codes."""
_OPERATIONS: Final = ("SET", "DELETE", "APPEND", "SUBTRACT")
_KNOWN_TYPES: Final = (TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE, CLIENT_METRICS_RESOURCE)
_RESOURCE_TYPES: Final = {
    TOPIC_RESOURCE: ResourceType.TOPIC,
    BROKER_RESOURCE: ResourceType.BROKER,
    GROUP_RESOURCE: ResourceType.GROUP,
    CLIENT_METRICS_RESOURCE: ResourceType.CLIENT_METRICS,
}
_MIN_ISR: Final = "min.insync.replicas"
_OK: Final = ApiError(ErrorCode.NONE)

_Changes = dict[str, str | None]
"""New values by name; None removes."""


# ---------------------------------------------------------------------------------- handlers


@answers("IncrementalAlterConfigsRequest")
def incremental_alter_configs(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: SET, DELETE, APPEND to and SUBTRACT from lists (KIP-339)."""
    response = m.IncrementalAlterConfigsResponse()
    answer = m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    _alter_all(node, request, response, answer, _incremental)
    return response


@answers("AlterConfigsRequest")
def alter_configs(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: sets what is named and removes everything else."""
    response = m.AlterConfigsResponse()
    answer = m.AlterConfigsResponse.AlterConfigsResourceResponse
    _alter_all(node, request, response, answer, _replacing)
    return response


def _alter_all(node: ControllerNode, request: Any, response: Any, answer: Any, plan: Any) -> None:
    times = Counter(
        (resource.resource_type, resource.resource_name) for resource in request.resources
    )
    for resource in request.resources:
        kind, name = key = resource.resource_type, resource.resource_name
        if times[key] > 1:
            error = ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        elif kind not in _KNOWN_TYPES:
            error = ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
        else:
            error = _alter_one(node, key, resource, plan, request.validate_only)
        response.responses.append(
            answer(
                error_code=error.code,
                error_message=error.message,
                resource_type=kind,
                resource_name=name,
            )
        )


def _alter_one(
    node: ControllerNode, key: tuple[int, str], resource: Any, plan: Any, validate_only: bool
) -> ApiError:
    current = node.image.configs.get(key, {})
    changes = plan(node, key, current, resource.configs)
    if isinstance(changes, ApiError):
        return changes
    after = {name: value for name, value in (current | changes).items() if value is not None}
    error = _refusal(node, key, changes, after)
    if error is None and not validate_only:
        _commit(node, key, current, changes)
    return error or _OK


# ------------------------------------------------------------------ what the request asks for


def _incremental(
    node: ControllerNode, key: tuple[int, str], current: Mapping[str, str], configs: Any
) -> _Changes | ApiError:
    times = Counter(config.name for config in configs)
    changes: _Changes = {}
    for config in configs:
        if times[config.name] > 1:
            return ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        if not _SET <= config.config_operation <= _SUBTRACT:
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # 4.3.1 has no better answer
        if config.config_operation != _DELETE and config.value is None:
            text = f"Null value not supported for : {config.name}"
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        if config.config_operation in (_SET, _DELETE):
            changes[config.name] = config.value if config.config_operation == _SET else None
            continue
        items = _list_items(node, key, current, config.name)
        if items is None:
            text = (
                f"Can't {_OPERATIONS[config.config_operation]} to key {config.name} because its "
                "type is not LIST."
            )
            return ApiError(ErrorCode.INVALID_CONFIG, text)
        given = config.value.split(",")
        if config.config_operation == _APPEND:
            items += [item for item in given if item not in items]
        else:
            items = [item for item in items if item not in given]
        changes[config.name] = ",".join(items)
    return changes


def _list_items(
    node: ControllerNode, key: tuple[int, str], current: Mapping[str, str], name: str
) -> list[str] | None:
    """The members of a list config as it is now; None if it is not a list, as far as a controller
    knows: of groups and of client metrics it knows nothing."""
    if key[0] not in (TOPIC_RESOURCE, BROKER_RESOURCE):
        return None
    definitions = TOPIC_CONFIGS if key[0] == TOPIC_RESOURCE else BROKER_CONFIGS
    definition = definitions.get(name)
    if definition is None or definition.type != "LIST":
        return None
    text = current.get(name)
    if text is None:
        config = (
            TopicConfig.resolve(node.cluster_config)
            if key[0] == TOPIC_RESOURCE
            else node.cluster_config
        )
        text = describe(definition, config) or ""
    return [item for item in text.split(",") if item]


def _replacing(
    _node: ControllerNode, _key: tuple[int, str], current: Mapping[str, str], configs: Any
) -> _Changes | ApiError:
    changes: _Changes = dict.fromkeys(current)
    for config in configs:
        if config.value is None:
            text = f"Null value not supported for : {config.name}"
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        changes[config.name] = config.value
    return changes


# -------------------------------------------------------------------------- whether it may be


def _refusal(
    node: ControllerNode, key: tuple[int, str], changes: _Changes, after: Mapping[str, str]
) -> ApiError | None:
    kind, name = key
    if kind == TOPIC_RESOURCE:
        return _refuse_topic(node, name, after)
    if kind == GROUP_RESOURCE:
        return _refuse_group(node, name, after)
    if kind == CLIENT_METRICS_RESOURCE:
        return _refuse_client_metrics(name, after)
    return _refuse_broker(node, name, changes)


def _refuse_topic(node: ControllerNode, name: str, after: Mapping[str, str]) -> ApiError | None:
    if not name:
        text = "Default topic resources are not allowed."
        return ApiError(ErrorCode.INVALID_REQUEST, text)
    problem = name_problem(name)
    if problem is not None:
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    problem = config_problem(node.cluster_config, after)
    if problem is not None:
        return ApiError(ErrorCode.INVALID_CONFIG, problem)
    if name not in node.image.topics:
        text = f"The topic '{name}' does not exist."
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return None


def _refuse_group(node: ControllerNode, name: str, after: Mapping[str, str]) -> ApiError | None:
    if not name:
        return ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    problem = group_config_problem(node.cluster_config, after)
    return None if problem is None else ApiError(ErrorCode.INVALID_CONFIG, problem)


def _refuse_client_metrics(name: str, after: Mapping[str, str]) -> ApiError | None:
    if not name:
        return ApiError(ErrorCode.INVALID_REQUEST, "a subscription has a name")
    problem = client_metrics_problem(after)
    return None if problem is None else ApiError(*problem)


def _refuse_broker(node: ControllerNode, name: str, changes: _Changes) -> ApiError | None:
    if name != CLUSTER_DEFAULT and not name.removeprefix("-").removeprefix("+").isdecimal():
        text = f"Node id must be an integer, but it is: {name}"
        return ApiError(ErrorCode.INVALID_REQUEST, text)
    # Names that are not here may be a plugin's, as far as a controller can tell.
    known = [
        BROKER_CONFIGS[config]
        for config, value in changes.items()
        if value is not None and config in BROKER_CONFIGS
    ]
    fixed = [definition.name for definition in known if definition.dynamic == "read-only"]
    if fixed:
        text = f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
        return ApiError(ErrorCode.INVALID_REQUEST, text)
    own = [definition.name for definition in known if definition.dynamic == "per-broker"]
    if own and name == CLUSTER_DEFAULT:
        text = (
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(own)}]"
        )
        return ApiError(ErrorCode.INVALID_REQUEST, text)
    for definition in known:
        parsed = parse_value(definition, changes[definition.name] or "")
        if isinstance(parsed, ConfigError):
            return ApiError(ErrorCode.INVALID_REQUEST, str(parsed))
    if node.elr_enabled and _MIN_ISR in changes:
        if name != CLUSTER_DEFAULT:
            text = f"Broker-level {_MIN_ISR} cannot be altered while ELR is enabled."
            return ApiError(ErrorCode.INVALID_CONFIG, text)
        if changes[_MIN_ISR] is None:
            text = f"Cluster-level {_MIN_ISR} cannot be removed while ELR is enabled."
            return ApiError(ErrorCode.INVALID_CONFIG, text)
    broker_missing = name != CLUSTER_DEFAULT and int(name) not in node.image.brokers
    if broker_missing:
        text = f"No broker with id {name} found."
        return ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
    return None


# ------------------------------------------------------------------------------- the records


def _commit(
    node: ControllerNode, key: tuple[int, str], current: Mapping[str, str], changes: _Changes
) -> None:
    kind, name = key
    changed = {
        config: value
        for config, value in changes.items()
        # Also unchanged ones of brokers: they reload files that a config names (KAFKA-14136).
        if current.get(config) != value or kind == BROKER_RESOURCE
    }
    if not changed:
        return
    cause = node.note(ConfigChanged(_RESOURCE_TYPES[kind], name, changed))
    node.commit(
        [ConfigRecord(kind, name, config, value, cause) for config, value in changed.items()]
    )
    if node.elr_enabled and _MIN_ISR in changed:
        node.commit(_clear_elrs(node, None if kind == BROKER_RESOURCE else name, cause))


def _clear_elrs(node: ControllerNode, topic: str | None, cause: NoteId) -> list[MetadataRecord]:
    """Of one topic's partitions, or of all."""
    names = sorted(node.image.topics) if topic is None else [topic]
    records: list[MetadataRecord] = []
    for name in names:
        for partition in node.image.topics[name].partitions:
            cleared = elections.clear_elr(partition)
            if cleared is not None:
                records.append(
                    record_of(node, name, partition, cleared, ConfigUpdated(_MIN_ISR), cause)
                )
    return records
