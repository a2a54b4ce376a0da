"""AlterClientQuotas (API 49, v0-1): limits for clients, by user, client id and IP address.

Owns: the acceptance of quotas, and the records for them.  Never: throttles
(kcluster.broker.quotas.client_quotas does), describes quotas (brokers do, from their images).
Kafka: ClientQuotaControlManager, QuotaConfig; KIP-546, KIP-599, KIP-612.

Each entity succeeds or fails as a whole, independently of the others.  An entity that is named
twice gets an error, yet its first changes are applied, as in 4.3.1.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping, Sequence
from typing import Final

from kcluster.config.kafka.client_quotas import CLIENT_ID, CLIENT_QUOTAS, IP, IP_QUOTAS, USER
from kcluster.controller.outcome import ApiError
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.events.topics import ConfigChanged, ResourceType
from kcluster.metadata.records import ClientQuotaRecord, QuotaEntity
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.java import entity_hash, hash_order, java_hash_code

_FRACTION: Final = 1e-6
"""The distance from a whole number within which a value still counts as one."""

_OK: Final = ApiError(ErrorCode.NONE)
_Changes = dict[str, float | None]
"""New values by name; None removes a quota."""


class ClientQuotaControl:
    """The quotas of clients, in the metadata."""

    def __init__(self, metadata: MetadataPort) -> None:
        self._metadata = metadata

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {"AlterClientQuotasRequest": self.alter_client_quotas}

    def alter_client_quotas(
        self, request: m.AlterClientQuotasRequest, _now_ms: int
    ) -> m.AlterClientQuotasResponse:
        """Alter quotas: INVALID_REQUEST for an invalid entity, key or value, and for an entity that
        is named twice.  Removing a quota that is not set succeeds."""
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
                text = f"{describe_entity(entity)} or one of its keys is named twice"
                results[entity] = ApiError(ErrorCode.INVALID_REQUEST, text)
                continue
            refused = _refusal(entity, changes)
            results[entity] = refused or _OK
            if refused is None:
                planned.append((entity, changes))
        if not request.validate_only:
            before = {
                entity: dict(self._metadata.image.client_quotas.get(entity, {}))
                for entity, _ in planned
            }
            for entity, changes in planned:
                self._commit(entity, before[entity], changes)
        return _response(results)

    def _commit(self, entity: QuotaEntity, before: Mapping[str, float], changes: _Changes) -> None:
        # In Kafka's order, on which the order of answers to DescribeClientQuotas depends.
        changed = {
            key: changes[key]
            for key in hash_order(changes, java_hash_code)
            if before.get(key) != changes[key]
        }
        if not changed:
            return
        shown = {key: None if value is None else f"{value:g}" for key, value in changed.items()}
        event = ConfigChanged(ResourceType.QUOTA, describe_entity(entity), shown)
        cause = self._metadata.note(event)
        self._metadata.commit(
            [ClientQuotaRecord(entity, key, value, cause) for key, value in changed.items()]
        )


def _entity_of(parts: Sequence[m.AlterClientQuotasRequest.EntityData]) -> QuotaEntity:
    """The names by type, in Kafka's order of types.  For a type that is named twice the last name
    counts."""
    named = {part.entity_type: part.entity_name for part in parts}
    return tuple((kind, named[kind]) for kind in hash_order(named, java_hash_code, 1))


def describe_entity(entity: QuotaEntity) -> str:
    """The entity in words: `user alice, client-id (default)`."""
    shown = (f"{kind} {'(default)' if name is None else name}" for kind, name in reversed(entity))
    return ", ".join(shown) or "an empty entity"


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
    """The quotas that may be set for an entity, or the reason why the entity is invalid."""
    if not entity:
        return "A quota needs a user, a client id or an IP address"
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            return f"{kind} is not an entity type: use user, client-id or ip"
        if name == "":
            return f"The {kind} is empty; null means the default"
    kinds_named = [kind for kind, _ in entity]
    if IP not in kinds_named:
        return CLIENT_QUOTAS
    if len(entity) > 1:
        return "The quota of an IP address cannot name a user or client id too"
    address = entity[0][1]
    if address is not None and not _is_address(address):
        return f"{address} is not an IP address"
    return IP_QUOTAS


def _is_address(text: str) -> bool:
    # DIFFERS: Kafka resolves host names; the controller has no name service.
    if text.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _value_problem(keys: Mapping[str, int | None], key: str, value: float) -> str | None:
    if key not in keys:
        return f"{key} is not a quota of this kind of entity"
    if not math.isfinite(value):
        return f"{key} must be a finite number"
    if value <= 0:
        return f"{key} must be more than 0"
    limit = keys[key]
    if limit is None:
        return None
    if value > float(limit):
        return f"{key} must be at most {limit}"
    if value % 1.0 > _FRACTION:
        return f"{key} must be a whole number"
    return None


def _response(results: Mapping[QuotaEntity, ApiError]) -> m.AlterClientQuotasResponse:
    """The response, in the order of Kafka's hash table."""
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
