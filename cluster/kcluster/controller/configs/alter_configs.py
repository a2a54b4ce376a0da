"""IncrementalAlterConfigs (API 44, v0-1) and AlterConfigs (API 33, v0-2).

Owns: the acceptance of config changes, and the records for them.  Never: knows a config's type or
range (kcluster.config does), puts it into effect (each broker does when the record arrives). Kafka:
ConfigurationControlManager, ControllerApis.handleIncrementalAlterConfigs, and of the broker
ConfigAdminManager.preprocess, DynamicBrokerConfig.validate (KIP-226, KIP-339, KIP-412, KIP-966).

Each resource succeeds or fails as a whole, independently of the others.  With ELR, the brokers'
min.insync.replicas can only be set for the whole cluster, and changing it clears the ELRs: a
replica that was eligible under the old number may lack records committed under the new one.

Groups and client metrics need not exist to be configured (KIP-848, KIP-714).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from kcluster.config.kafka.client_metrics import client_metrics_problem
from kcluster.config.kafka.definitions import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigError,
    TopicConfig,
    check_topic_overrides,
    describe,
    parse_value,
)
from kcluster.config.kafka.group import broker_value, group_config_problem
from kcluster.controller.outcome import ApiError
from kcluster.controller.partitions.partitions import MIN_ISR, Partitions
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.events.reasons import ConfigUpdated
from kcluster.events.topics import ConfigChanged, ResourceType
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    CLUSTER_DEFAULT,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import name_problem

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
_OK: Final = ApiError(ErrorCode.NONE)

C = TypeVar("C", covariant=True)
R = TypeVar("R")


class _Resource(Protocol[C]):
    """A resource of either request; the two differ in the fields of its configs."""

    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Sequence[C]: ...


class _AlterRequest(Protocol[C]):
    """Either request."""

    validate_only: bool

    @property
    def resources(self) -> Sequence[_Resource[C]]: ...


_Changes = dict[str, str | None]
"""New values by name; None removes a config."""
_Plan = Callable[[tuple[int, str], Mapping[str, str], Sequence[C]], _Changes | ApiError]
"""Plans a change: (resource, its current configs, the request) -> the changes, or the reason for a
refusal."""


class Configs:
    """Checks and commits changes of configs."""

    def __init__(self, metadata: MetadataPort, partitions: Partitions) -> None:
        self._metadata = metadata
        self._partitions = partitions

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {
            "IncrementalAlterConfigsRequest": self.incremental_alter_configs,
            "AlterConfigsRequest": self.alter_configs,
        }

    def incremental_alter_configs(
        self, request: m.IncrementalAlterConfigsRequest, _now_ms: int
    ) -> m.IncrementalAlterConfigsResponse:
        """Change, delete, append to and subtract from configs (KIP-339)."""
        response = m.IncrementalAlterConfigsResponse()
        answer = m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
        self._alter_all(request, response.responses, answer, self._incremental)
        return response

    def alter_configs(self, request: m.AlterConfigsRequest, _now_ms: int) -> m.AlterConfigsResponse:
        """Set the named configs and remove all others."""
        response = m.AlterConfigsResponse()
        answer = m.AlterConfigsResponse.AlterConfigsResourceResponse
        self._alter_all(request, response.responses, answer, _replacing)
        return response

    def _alter_all(
        self,
        request: _AlterRequest[C],
        responses: list[R],
        answer: Callable[..., R],
        plan: _Plan[C],
    ) -> None:
        times = Counter(
            (resource.resource_type, resource.resource_name) for resource in request.resources
        )
        for resource in request.resources:
            kind, name = key = resource.resource_type, resource.resource_name
            if times[key] > 1:
                text = "Each resource must appear at most once."
                error = ApiError(ErrorCode.INVALID_REQUEST, text)
            elif kind not in _KNOWN_TYPES:
                error = ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
            else:
                error = self._alter_one(key, resource, plan, request.validate_only)
            responses.append(
                answer(
                    error_code=error.code,
                    error_message=error.message,
                    resource_type=kind,
                    resource_name=name,
                )
            )

    def _alter_one(
        self, key: tuple[int, str], resource: _Resource[C], plan: _Plan[C], validate_only: bool
    ) -> ApiError:
        current = self._metadata.image.configs.get(key, {})
        changes = plan(key, current, resource.configs)
        if isinstance(changes, ApiError):
            return changes
        after = {name: value for name, value in (current | changes).items() if value is not None}
        error = self._refusal(key, changes, after)
        if error is None and not validate_only:
            self._commit(key, current, changes)
        return error or _OK

    # ---------------------------------------------------------------- what the request asks for

    def _incremental(
        self,
        key: tuple[int, str],
        current: Mapping[str, str],
        configs: Sequence[m.IncrementalAlterConfigsRequest.AlterableConfig],
    ) -> _Changes | ApiError:
        times = Counter(config.name for config in configs)
        changes: _Changes = {}
        for config in configs:
            if times[config.name] > 1:
                return ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
            if not _SET <= config.config_operation <= _SUBTRACT:
                return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # this is Kafka's answer, too
            if config.config_operation != _DELETE and config.value is None:
                text = f"Null value not supported for : {config.name}"
                return ApiError(ErrorCode.INVALID_REQUEST, text)
            if config.config_operation in (_SET, _DELETE):
                changes[config.name] = config.value if config.config_operation == _SET else None
                continue
            items = self._list_items(key, current, config.name)
            if items is None:
                operation = _OPERATIONS[config.config_operation]
                text = f"Can't {operation} to key {config.name} because its type is not LIST."
                return ApiError(ErrorCode.INVALID_CONFIG, text)
            members = (config.value or "").split(",")
            if config.config_operation == _APPEND:
                items += [item for item in members if item not in items]
            else:
                items = [item for item in items if item not in members]
            changes[config.name] = ",".join(items)
        return changes

    def _list_items(
        self, key: tuple[int, str], current: Mapping[str, str], name: str
    ) -> list[str] | None:
        """The current items of a list config; None for any other config.  The controller has no
        table of the configs of groups and client metrics."""
        if key[0] not in (TOPIC_RESOURCE, BROKER_RESOURCE):
            return None
        definitions = TOPIC_CONFIGS if key[0] == TOPIC_RESOURCE else BROKER_CONFIGS
        definition = definitions.get(name)
        release = self._metadata.release.number
        if definition is None or definition.type != "LIST" or not definition.is_in(release):
            return None
        text = current.get(name)
        if text is None:
            config = (
                TopicConfig.resolve(self._metadata.cluster_config)
                if key[0] == TOPIC_RESOURCE
                else self._metadata.cluster_config
            )
            text = describe(definition, config) or ""
        return [item for item in text.split(",") if item]

    # -------------------------------------------------------------------- whether it is allowed

    def _refusal(
        self, key: tuple[int, str], changes: _Changes, after: Mapping[str, str]
    ) -> ApiError | None:
        kind, name = key
        if kind == TOPIC_RESOURCE:
            return self._refuse_topic(name, after)
        if kind == GROUP_RESOURCE:
            return self._refuse_group(name, after)
        if kind == CLIENT_METRICS_RESOURCE:
            return _refuse_client_metrics(name, after)
        return self._refuse_broker(name, changes)

    def _refuse_topic(self, name: str, after: Mapping[str, str]) -> ApiError | None:
        if not name:
            text = "Default topic resources are not allowed."
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        problem = name_problem(name)
        if problem is not None:
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        release = self._metadata.release.number
        problem = check_topic_overrides(self._metadata.cluster_config, after, release)
        if problem is not None:
            return ApiError(ErrorCode.INVALID_CONFIG, problem)
        if name not in self._metadata.image.topics:
            text = f"The topic '{name}' does not exist."
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return None

    def _refuse_group(self, name: str, after: Mapping[str, str]) -> ApiError | None:
        if not name:
            return ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        value_of = partial(broker_value, self._metadata.cluster_config)
        problem = group_config_problem(value_of, after, self._metadata.release.number)
        return None if problem is None else ApiError(ErrorCode.INVALID_CONFIG, problem)

    def _refuse_broker(self, name: str, changes: _Changes) -> ApiError | None:
        if name != CLUSTER_DEFAULT and not name.removeprefix("-").removeprefix("+").isdecimal():
            text = f"Node id must be an integer, but it is: {name}"
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        # Unknown names are accepted: they may belong to a plugin.
        known = [
            BROKER_CONFIGS[config]
            for config, value in changes.items()
            if value is not None
            and config in BROKER_CONFIGS
            and BROKER_CONFIGS[config].is_in(self._metadata.release.number)
        ]
        fixed = [definition.name for definition in known if definition.dynamic == "read-only"]
        if fixed:
            text = f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        own = [definition.name for definition in known if definition.dynamic == "per-broker"]
        if own and name == CLUSTER_DEFAULT:
            text = (
                "Cannot update these configs at default cluster level, broker id must be "
                f"specified: [{', '.join(own)}]"
            )
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        for definition in known:
            parsed = parse_value(definition, changes[definition.name] or "")
            if isinstance(parsed, ConfigError):
                return ApiError(ErrorCode.INVALID_REQUEST, str(parsed))
        if self._metadata.image.elr_enabled and MIN_ISR in changes:
            if name != CLUSTER_DEFAULT:
                text = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
                return ApiError(ErrorCode.INVALID_CONFIG, text)
            if changes[MIN_ISR] is None:
                text = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
                return ApiError(ErrorCode.INVALID_CONFIG, text)
        broker_missing = name != CLUSTER_DEFAULT and int(name) not in self._metadata.image.brokers
        if broker_missing:
            text = f"No broker with id {name} found."
            return ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
        return None

    # ------------------------------------------------------------------------------ the records

    def _commit(self, key: tuple[int, str], current: Mapping[str, str], changes: _Changes) -> None:
        kind, name = key
        changed = {
            config: value
            for config, value in changes.items()
            # This includes unchanged configs of brokers, because brokers reload the files that a
            # config names (KAFKA-14136).
            if current.get(config) != value or kind == BROKER_RESOURCE
        }
        if not changed:
            return
        cause = self._metadata.note(ConfigChanged(_RESOURCE_TYPES[kind], name, changed))
        self._metadata.commit(
            [ConfigRecord(kind, name, config, value, cause) for config, value in changed.items()]
        )
        if self._metadata.image.elr_enabled and MIN_ISR in changed:
            topic = None if kind == BROKER_RESOURCE else name
            records = self._partitions.clear_elrs(topic, ConfigUpdated(MIN_ISR), cause)
            self._metadata.commit(records)


def _replacing(
    _key: tuple[int, str],
    current: Mapping[str, str],
    configs: Sequence[m.AlterConfigsRequest.AlterableConfig],
) -> _Changes | ApiError:
    changes: _Changes = dict.fromkeys(current)
    for config in configs:
        if config.value is None:
            text = f"Null value not supported for : {config.name}"
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        changes[config.name] = config.value
    return changes


def _refuse_client_metrics(name: str, after: Mapping[str, str]) -> ApiError | None:
    if not name:
        return ApiError(ErrorCode.INVALID_REQUEST, "the subscription's name is empty")
    problem = client_metrics_problem(after)
    return None if problem is None else ApiError(*problem)
