"""AlterClientQuotas (API 49, v0-1): what clients may use, by user, client id and IP address.

Owns: which quotas are accepted, and the records for them.  Never: throttles (kcluster.broker.quotas
does), describes (brokers do, from their images).
Kafka: ClientQuotaControlManager, QuotaConfig; KIP-546, KIP-599, KIP-612.

Each entity by itself succeeds or fails as a whole; an entity that comes twice is refused, and what
it asked for first is done all the same, as in 4.3.1.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kcluster.config.kafka.client_quotas import CLIENT_ID, CLIENT_QUOTAS, IP, IP_QUOTAS, USER
from kcluster.controller.outcome import ApiError
from kcluster.controller.registry import answers
from kcluster.events.topics import ConfigChanged, ResourceType
from kcluster.metadata.image import ClientQuotaRecord, QuotaEntity
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.hash_order import entity_hash, hash_order, string_hash

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode

_FRACTION: Final = 1e-6
"""What a whole number may be off."""

_OK: Final = ApiError(ErrorCode.NONE)
_Changes = dict[str, float | None]
"""New values by name; None removes."""


@answers("AlterClientQuotasRequest")
def alter_client_quotas(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: INVALID_REQUEST for entities that are none, keys and values that do not fit, and
    what comes twice; removing what is not there succeeds."""
    results: dict[QuotaEntity, ApiError] = {}
    planned: list[tuple[QuotaEntity, _Changes]] = []
    for entry in request.entries:
        entity = _entity_of(entry.entity)
        changes: _Changes = {}
        for op in entry.ops:
            if op.key in changes:
                text = f"{op.key} is changed twice for {describe_entity(entity)}"
                results[entity] = ApiError(ErrorCode.INVALID_REQUEST, text)
            else:
                changes[op.key] = None if op.remove else op.value
        if entity in results:
            text = f"{describe_entity(entity)} comes twice, or one of its keys does"
            results[entity] = ApiError(ErrorCode.INVALID_REQUEST, text)
            continue
        refused = _refusal(entity, changes)
        results[entity] = refused or _OK
        if refused is None:
            planned.append((entity, changes))
    if not request.validate_only:
        before = {entity: dict(node.image.client_quotas.get(entity, {})) for entity, _ in planned}
        for entity, changes in planned:
            _commit(node, entity, before[entity], changes)
    return _response(results)


def _entity_of(parts: Sequence[Any]) -> QuotaEntity:
    """By type, of which the last counts, in the order in which Kafka tells them."""
    named = {part.entity_type: part.entity_name for part in parts}
    return tuple((kind, named[kind]) for kind in hash_order(named, string_hash, 1))


def describe_entity(entity: QuotaEntity) -> str:
    """As a person would say it: `user alice, client-id (default)`."""
    shown = (f"{kind} {'(default)' if name is None else name}" for kind, name in reversed(entity))
    return ", ".join(shown) or "nobody"


def _refusal(entity: QuotaEntity, changes: _Changes) -> ApiError | None:
    keys = _keys_for(entity)
    if isinstance(keys, str):
        return ApiError(ErrorCode.INVALID_REQUEST, keys)
    for key, value in changes.items():
        problem = None if value is None else _value_problem(keys, key, value)
        if problem is not None:
            return ApiError(ErrorCode.INVALID_REQUEST, problem)
    return None


def _keys_for(entity: QuotaEntity) -> Mapping[str, int | None] | str:
    """What may be set for an entity, or why there is no such entity."""
    if not entity:
        return "Quotas are somebody's: a user's, a client id's or an address's"
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            return f"{kind} is no kind of client"
        if name == "":
            return f"An empty {kind} is nobody; null stands for all others"
    kinds_named = [kind for kind, _ in entity]
    if IP not in kinds_named:
        return CLIENT_QUOTAS
    if len(entity) > 1:
        return "Addresses have quotas for themselves, not together with users or client ids"
    address = entity[0][1]
    if address is not None and not _is_address(address):
        return f"{address} is no IP address"
    return IP_QUOTAS


def _is_address(text: str) -> bool:
    # DIFFERS: Kafka asks the name service for other names; the controller has none to ask.
    if text.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _value_problem(keys: Mapping[str, int | None], key: str, value: float) -> str | None:
    if key not in keys:
        return f"{key} is no quota of such a client"
    if value <= 0:
        return f"{key} must be more than 0"
    limit = keys[key]
    if limit is None or math.isnan(value):
        return None
    if value > float(limit):
        return f"{key} is at most {limit}"
    if value % 1.0 > _FRACTION:
        return f"{key} is a whole number"
    return None


def _commit(
    node: ControllerNode, entity: QuotaEntity, before: Mapping[str, float], changes: _Changes
) -> None:
    # In Kafka's order, as that of the answers to DescribeClientQuotas depends on it.
    changed = {
        key: changes[key]
        for key in hash_order(changes, string_hash)
        if before.get(key) != changes[key]
    }
    if not changed:
        return
    shown = {key: None if value is None else f"{value:g}" for key, value in changed.items()}
    cause = node.note(ConfigChanged(ResourceType.QUOTA, describe_entity(entity), shown))
    node.commit([ClientQuotaRecord(entity, key, value, cause) for key, value in changed.items()])


def _response(results: Mapping[QuotaEntity, ApiError]) -> Any:
    """In the order of Kafka's hash table of them."""
    response = m.AlterClientQuotasResponse
    return response(
        entries=[
            response.EntryData(
                error_code=results[entity].code,
                error_message=results[entity].message,
                entity=[response.EntityData(kind, name) for kind, name in entity],
            )
            for entity in hash_order(results, entity_hash)
        ]
    )
