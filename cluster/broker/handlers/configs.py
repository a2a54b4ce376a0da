"""IncrementalAlterConfigs (44, v0-1) and AlterConfigs (33, v0-2): configs of topics and brokers.

Owns: what a broker checks of a change before the controller sees it, and putting both verdicts
together.  Never: stores a config (the controller does), checks a topic's (the controller does).
Kafka: ConfigAdminManager (preprocess, reassemble), KIP-339, KIP-226, KIP-412.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from cluster.broker.registry import PARKED, handles
from cluster.config.definitions import BROKER_CONFIGS, ConfigError, parse_value
from cluster.config.quotas import QUOTA_CONFIGS
from cluster.contract import Request
from cluster.controller.metadata import BROKER_RESOURCE, TOPIC_RESOURCE
from cluster.protocol import messages as m
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from cluster.broker.node import BrokerNode

BROKER_LOGGER_RESOURCE: Final = 8
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32
"""Kafka's ConfigResource.Type codes; topics and brokers: controller/metadata.py."""

SET: Final = 0
DELETE: Final = 1
"""Kafka's AlterConfigOp.OpType codes; APPEND 2 and SUBTRACT 3 are for lists."""


class Verdict(Struct, frozen=True):
    """What became of the change of one resource."""

    error: int
    message: str | None = None


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1))
def incremental_alter_configs(broker: BrokerNode, request: Request, now_ms: int) -> Any:
    """Set, delete, append to or subtract from single configs.

    Behaviour: resources named twice, configs named twice, null values, unknown kinds of resources,
    brokers other than this one and what a running broker cannot change are refused here; the
    controller decides on the rest.  Answers in the order asked.
    Versions: v1 flexible (KIP-339).
    Not done: loggers, client metrics, groups.
    """
    return _alter(
        broker, request, m.IncrementalAlterConfigsRequest, m.IncrementalAlterConfigsResponse, now_ms
    )


@handles(ApiKey.ALTER_CONFIGS, versions=(0, 2))
def alter_configs(broker: BrokerNode, request: Request, now_ms: int) -> Any:
    """Replace all configs of a resource: those not named go back to their defaults.

    Behaviour: checks as for IncrementalAlterConfigs.
    Versions: v2 flexible.
    Not done: loggers, client metrics, groups.
    """
    return _alter(broker, request, m.AlterConfigsRequest, m.AlterConfigsResponse, now_ms)


def _alter(broker: BrokerNode, request: Request, ask: Any, answer: Any, now_ms: int) -> Any:
    resources = request.body.resources
    verdicts = check_alterations(resources, broker.node_id)
    rest = [r for r, verdict in zip(resources, verdicts, strict=True) if verdict is None]
    if not rest:
        return _answer(answer, resources, verdicts, {})
    body = ask(resources=rest, validate_only=request.body.validate_only)

    def on_answer(answered: Any, now_ms: int) -> None:
        if answered is None:
            told = {_name_of(r): Verdict(ErrorCode.REQUEST_TIMED_OUT) for r in rest}
        else:
            told = {_name_of(r): Verdict(r.error_code, r.error_message) for r in answered.responses}
        broker.reply(request, _answer(answer, resources, verdicts, told))

    broker.ask_controller(body, on_answer, broker.config.request_timeout_ms, now_ms)
    return PARKED


def check_alterations(resources: Sequence[Any], broker_id: int) -> list[Verdict | None]:
    """For each resource of an alter request: why this broker refuses it, or None: it does not."""
    times = Counter(_name_of(resource) for resource in resources)
    return [
        _refused("a resource may be named once in a request")
        if times[_name_of(resource)] > 1
        else _check(resource, broker_id)
        for resource in resources
    ]


def _check(resource: Any, broker_id: int) -> Verdict | None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        return _refused("a config may be named once for a resource")
    nulls = [c.name for c in resource.configs if c.value is None and _operation(c) != DELETE]
    if nulls:
        return _refused(f"null is not a value: {', '.join(nulls)}")
    if resource.resource_type == BROKER_RESOURCE:
        return _check_broker(resource, broker_id)
    if resource.resource_type == TOPIC_RESOURCE:
        return None
    # DIFFERS: Kafka also knows loggers, client metrics and groups.
    return _refused(f"resources of type {resource.resource_type} are not known")


def _check_broker(resource: Any, broker_id: int) -> Verdict | None:
    """Of a broker, or (no name) of all: Kafka's brokers refuse what they cannot change while they
    run, each for itself alone."""
    problem = other_broker(resource.resource_name, broker_id)
    if problem is not None:
        return _refused(problem)
    for config in resource.configs:
        definition = BROKER_CONFIGS.get(config.name) or QUOTA_CONFIGS.get(config.name)
        if definition is None or definition.feature:
            # DIFFERS: Kafka stores any name, as a plugin may know it.
            return _refused(f"no broker config is called {config.name}")
        if definition.dynamic == "read-only":
            return _refused(f"a running broker cannot change {config.name}")
        if definition.dynamic == "per-broker" and not resource.resource_name:
            return _refused(f"{config.name} is set for one broker at a time")
        if _operation(config) == SET:
            value = parse_value(definition, config.value)
            if isinstance(value, ConfigError):
                return _refused(str(value))
    return None


def other_broker(resource_name: str, broker_id: int) -> str | None:
    """Why this broker does not speak for broker `resource_name`; None: it does ("": for all)."""
    if not resource_name:
        return None
    if not resource_name.removeprefix("-").isdecimal():
        return f"a broker id is an integer, not {resource_name}"
    if int(resource_name) != broker_id:
        return f"this is broker {broker_id}, which does not speak for broker {resource_name}"
    return None


def _operation(config: Any) -> int:
    operation: int = getattr(config, "config_operation", SET)
    return operation


def _name_of(resource: Any) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _refused(message: str) -> Verdict:
    return Verdict(ErrorCode.INVALID_REQUEST, message)


def _answer(
    answer: Any,
    resources: Sequence[Any],
    verdicts: Sequence[Verdict | None],
    told: dict[tuple[int, str], Verdict],
) -> Any:
    """The response: `verdicts` of ours, else what the controller `told`, in the order asked."""
    responses = []
    for resource, ours in zip(resources, verdicts, strict=True):
        verdict = ours or told.get(_name_of(resource), Verdict(ErrorCode.UNKNOWN_SERVER_ERROR))
        responses.append(
            answer.AlterConfigsResourceResponse(
                error_code=verdict.error,
                error_message=verdict.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return answer(responses=responses)
