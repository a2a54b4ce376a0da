"""IncrementalAlterConfigs (44, v0-1) and AlterConfigs (33, v0-2): of topics, brokers and their
loggers, groups and client metrics.

Owns: a broker's checks before the controller gets a change, and the combined answer.  Never: stores
a config, or checks any but a broker's (the controller does both).  Kafka: ConfigAdminManager
(preprocess, reassemble), KIP-339, KIP-226, KIP-412.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kcluster.broker.broker import Broker
from kcluster.broker.configs.dynamic_configs import change_problem
from kcluster.broker.configs.loggers import change_levels
from kcluster.broker.configs.settings import BrokerSettings, settings_of
from kcluster.broker.handlers.forwarding import enveloped
from kcluster.broker.registry import PARKED, Answer, handles
from kcluster.config.kafka.definitions import format_value
from kcluster.contract import Request
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message

BROKER_LOGGER_RESOURCE: Final = 8
"""A resource type, as in metadata/records.py, that never occurs in the metadata."""

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
"""Kafka's AlterConfigOp.OpType codes; the last two are for lists."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_INCREMENTAL_RESOURCE: Final = m.IncrementalAlterConfigsRequest.AlterConfigsResource


if TYPE_CHECKING:
    _Incremental = m.IncrementalAlterConfigsRequest
    _Replacing = m.AlterConfigsRequest
    _Resource = _Incremental.AlterConfigsResource | _Replacing.AlterConfigsResource
    _Config = _Incremental.AlterableConfig | _Replacing.AlterableConfig
    _Response = m.IncrementalAlterConfigsResponse | m.AlterConfigsResponse
    _Result = (
        m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
        | m.AlterConfigsResponse.AlterConfigsResourceResponse
    )
    _ResponseClass = type[m.IncrementalAlterConfigsResponse] | type[m.AlterConfigsResponse]


class ResourceResult(Struct, frozen=True):
    """The result of changing one resource."""

    error: int
    message: str | None = None


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1))
def incremental_alter_configs(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Set, delete, append to or subtract from single configs.

    Behaviour:
    - refused here: a resource or a config named twice, null values, unknown types of resources,
      other brokers, and what a running broker cannot change;
    - done here: levels of loggers;
    - everything else: as the controller decides;
    - results in the order of the request.
    Versions:
    - v0: KIP-339
    - v1: flexible
    """
    return _alter(
        broker, request, m.IncrementalAlterConfigsRequest, m.IncrementalAlterConfigsResponse, now_ms
    )


@handles(ApiKey.ALTER_CONFIGS, versions=(0, 2))
def alter_configs(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Replace all configs of a resource: configs that are not named return to their defaults.

    Behaviour:
    - checked like IncrementalAlterConfigs; loggers are refused.
    Versions:
    - v2: flexible
    """
    return _alter(broker, request, m.AlterConfigsRequest, m.AlterConfigsResponse, now_ms)


def _alter(
    broker: Broker,
    request: Request,
    ask: Callable[..., Message],
    answer: _ResponseClass,
    now_ms: int,
) -> Answer:
    resources = request.body.resources
    verdicts = _verdicts(broker, resources, request.body.validate_only)
    rest = [r for r, verdict in zip(resources, verdicts, strict=True) if verdict is None]
    if not rest:
        return _answer(answer, resources, verdicts, {})
    body = ask(resources=rest, validate_only=request.body.validate_only)

    def on_answer(answered: _Response | None, now_ms: int) -> None:
        if answered is None:
            results = {_name_of(r): ResourceResult(ErrorCode.REQUEST_TIMED_OUT) for r in rest}
        else:
            results = {
                _name_of(r): ResourceResult(r.error_code, r.error_message)
                for r in answered.responses
            }
        broker.reply(request, _answer(answer, resources, verdicts, results))

    timeout_ms = broker.config.request_timeout_ms
    broker.ask_controller(enveloped(broker, request, body), on_answer, timeout_ms, now_ms)
    return PARKED


def _verdicts(
    broker: Broker, resources: Sequence[_Resource], validate_only: bool
) -> list[ResourceResult | None]:
    """The broker's own result for each resource of an alter request; None if the controller
    decides."""
    times = Counter(_name_of(resource) for resource in resources)
    return [
        _refused("a resource may be named once in a request")
        if times[_name_of(resource)] > 1
        else _check(broker, resource, validate_only)
        for resource in resources
    ]


def _check(broker: Broker, resource: _Resource, validate_only: bool) -> ResourceResult | None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        return _refused("a config may be named once for a resource")
    nulls = [c.name for c in resource.configs if c.value is None and _operation(c) != DELETE]
    if nulls:
        return _refused(f"null is not a value: {', '.join(nulls)}")
    kind = resource.resource_type
    if kind == BROKER_LOGGER_RESOURCE and isinstance(resource, _INCREMENTAL_RESOURCE):
        return _change_loggers(broker, resource, validate_only)
    if kind == BROKER_RESOURCE:
        return _check_broker(broker, resource)
    if kind in (TOPIC_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE):
        return None
    return _refused(f"resources of type {kind} are not known")


def _change_loggers(
    broker: Broker, resource: _Incremental.AlterConfigsResource, validate_only: bool
) -> ResourceResult:
    name = resource.resource_name
    problem = other_broker(name, broker.node_id) if name else "a broker id is needed"
    if problem is not None:
        return _refused(problem)
    refused = change_levels(broker.loggers, resource.configs, validate_only)
    return (
        ResourceResult(ErrorCode.NONE)
        if refused is None
        else ResourceResult(refused.error, refused.message)
    )


def _check_broker(broker: Broker, resource: _Resource) -> ResourceResult | None:
    """Check a change of a broker's configs, or (without a name) of all brokers' configs.  As in
    Kafka, this broker refuses a change that it cannot apply while it runs, but only for itself."""
    problem = other_broker(resource.resource_name, broker.node_id)
    if problem is not None:
        return _refused(problem)
    settings = settings_of(broker.view)
    for_one = bool(resource.resource_name)
    level: dict[str, str] | ResourceResult = {
        config.name: config.value or "" for config in resource.configs
    }
    if isinstance(resource, _INCREMENTAL_RESOURCE):
        level = _with_changes(settings, for_one, resource)
    if isinstance(level, ResourceResult):
        return level
    problem = change_problem(settings, level, for_one)
    if problem is None and for_one and broker.view.check_stores is not None:
        problem = broker.view.check_stores(level)
    return None if problem is None else _refused(problem)


def _with_changes(
    settings: BrokerSettings, for_one: bool, resource: _Resource
) -> dict[str, str] | ResourceResult:
    """The dynamic configs of a level, after the change."""
    unknown = [c for c in resource.configs if not SET <= _operation(c) <= SUBTRACT]
    if unknown:
        return _refused(f"there is no operation {_operation(unknown[0])}")
    level = dict(settings.dynamic if for_one else settings.dynamic_default)
    for config in resource.configs:
        name, operation = config.name, _operation(config)
        if operation == SET:
            level[name] = config.value or ""
        elif operation == DELETE:
            level.pop(name, None)
        else:
            definition = settings.definition(name)
            if definition is None or definition.type != "LIST":
                return ResourceResult(ErrorCode.INVALID_CONFIG, f"{name} is not a known list")
            text = level.get(name, format_value(definition.default)) or ""
            items = [item for item in text.split(",") if item]
            members = (config.value or "").split(",")
            if operation == APPEND:
                items += [item for item in members if item not in items]
            else:
                items = [item for item in items if item not in members]
            level[name] = ",".join(items)
    return level


def other_broker(resource_name: str, broker_id: int) -> str | None:
    """The reason why this broker may not change the configs of `resource_name`; None if it may (""
    stands for all brokers)."""
    if not resource_name:
        return None
    if not _INTEGER.fullmatch(resource_name):
        return f"a broker id is an integer, not {resource_name}"
    if int(resource_name) != broker_id:
        return f"this is broker {broker_id}; send the request to broker {resource_name}"
    return None


def _operation(config: _Config) -> int:
    operation: int = getattr(config, "config_operation", SET)
    return operation


def _name_of(resource: _Resource | _Result) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _refused(message: str) -> ResourceResult:
    return ResourceResult(ErrorCode.INVALID_REQUEST, message)


def _answer(
    answer: _ResponseClass,
    resources: Sequence[_Resource],
    verdicts: Sequence[ResourceResult | None],
    results: dict[tuple[int, str], ResourceResult],
) -> Answer:
    """The response, in the order of the request: this broker's `verdicts`, and the controller's
    `results` where it has none."""
    responses: list[Any] = []
    for resource, ours in zip(resources, verdicts, strict=True):
        verdict = ours or results.get(
            _name_of(resource), ResourceResult(ErrorCode.UNKNOWN_SERVER_ERROR)
        )
        responses.append(
            answer.AlterConfigsResourceResponse(
                error_code=verdict.error,
                error_message=verdict.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return answer(responses=responses)
