"""DescribeClientQuotas (API 48, v0-1) and AlterClientQuotas (API 49, v0-1).

Owns: the filter of a description, its order.  Never: checks or stores a quota (the controller
does), throttles (kcluster.broker.quotas.client_quotas does).
Kafka: ClientQuotasImage.describe, KafkaApis (forwarded); KIP-546.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.forwarding import forward
from kcluster.broker.registry import Answer, handles
from kcluster.config.kafka.client_quotas import CLIENT_ID, IP, USER
from kcluster.contract import Request
from kcluster.metadata.records import QuotaEntity
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.java import entity_hash, hash_order, java_hash_code

EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2
"""Kafka's match types of a component: this name, the default, any name."""

_MAP_SIZE: Final = 1
"""The number of buckets of a map: Kafka makes the maps of an image as small as possible."""

_Answer = m.DescribeClientQuotasResponse


class _Refused(Struct, frozen=True):
    error: ErrorCode
    message: str


class _Filter(Struct, frozen=True):
    """A filter of quotas.  `exact`: names by type, None for the default; `any_name`: the types with
    any name."""

    exact: dict[str, str | None]
    any_name: set[str]
    strict: bool

    def matches(self, entity: QuotaEntity) -> bool:
        if self.strict and len(entity) != len(self.exact) + len(self.any_name):
            return False
        names = dict(entity)
        return self.any_name <= names.keys() and all(
            kind in names and names[kind] == name for kind, name in self.exact.items()
        )


@handles(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=(0, 1))
def describe_client_quotas(
    broker: Broker, request: Request, now_ms: int
) -> m.DescribeClientQuotasResponse:
    """The quotas of all clients that match each component; with `strict`, only of clients without
    other components.

    Behaviour:
    - INVALID_REQUEST for an invalid filter;
    - UNSUPPORTED_VERSION for an unknown type of client;
    - entries in the order of Kafka's hash table.
    Versions:
    - v1: flexible
    """
    wanted = _filter(request.body)
    if isinstance(wanted, _Refused):
        return _Answer(error_code=wanted.error, error_message=wanted.message, entries=None)
    quotas = broker.image.client_quotas
    entries = [
        _Answer.EntryData(
            [_Answer.EntityData(kind, name) for kind, name in entity],
            [
                _Answer.ValueData(key, quotas[entity][key])
                for key in hash_order(quotas[entity], java_hash_code, _MAP_SIZE)
            ],
        )
        for entity in hash_order(quotas, entity_hash, _MAP_SIZE)
        if wanted.matches(entity)
    ]
    return _Answer(entries=entries)


def _filter(request: m.DescribeClientQuotasRequest) -> _Filter | _Refused:
    wanted = _Filter({}, set(), request.strict)
    for component in request.components:
        kind, match = component.entity_type, component.match
        if not kind:
            return _Refused(ErrorCode.INVALID_REQUEST, "a component needs a type")
        if kind in wanted.exact or kind in wanted.any_name:
            return _Refused(ErrorCode.INVALID_REQUEST, f"{kind} is named twice")
        if kind not in (USER, CLIENT_ID, IP):
            return _Refused(ErrorCode.UNSUPPORTED_VERSION, f"{kind} is not a kind of client")
        if component.match_type not in (EXACT, DEFAULT, SPECIFIED):
            text = f"unknown match type {component.match_type}"
            return _Refused(ErrorCode.INVALID_REQUEST, text)
        if (match is None) is (component.match_type == EXACT):
            text = "a name is required for an exact match, and not allowed otherwise"
            return _Refused(ErrorCode.INVALID_REQUEST, text)
        if component.match_type == SPECIFIED:
            wanted.any_name.add(kind)
        else:
            wanted.exact[kind] = match
    kinds = wanted.exact.keys() | wanted.any_name
    if IP in kinds and len(kinds) > 1:
        text = "addresses have quotas for themselves, not together with users or client ids"
        return _Refused(ErrorCode.INVALID_REQUEST, text)
    return wanted


@handles(ApiKey.ALTER_CLIENT_QUOTAS, versions=(0, 1))
def alter_client_quotas(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Set and remove quotas.

    Behaviour:
    - as the controller answers; REQUEST_TIMED_OUT for each entity after request.timeout.ms.
    Versions:
    - v1: flexible
    """
    timeout_ms = broker.config.request_timeout_ms
    return forward(broker, request, timeout_ms, alter_quotas_timed_out, now_ms)


def alter_quotas_timed_out(request: m.AlterClientQuotasRequest) -> m.AlterClientQuotasResponse:
    """REQUEST_TIMED_OUT for each entity, as it was named."""
    error, answer = ErrorCode.REQUEST_TIMED_OUT, m.AlterClientQuotasResponse
    return answer(
        entries=[
            answer.EntryData(
                error,
                error.text,
                [answer.EntityData(part.entity_type, part.entity_name) for part in entry.entity],
            )
            for entry in request.entries
        ]
    )
