"""Client quotas: their names, and the kinds of clients that have them.

Owns: the kinds of clients, the quotas that each may have and their ranges, the choice of a client's
quota.  Never: keeps or enforces a quota (kcluster.controller.configs.client_quotas,
kcluster.broker.quotas.client_quotas).  Kafka: ClientQuotaEntity, QuotaConfig, DefaultQuotaCallback;
KIP-13, KIP-124, KIP-546, KIP-599, KIP-612.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_RATE: Final = "producer_byte_rate"
CONSUMER_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_RATE: Final = "connection_creation_rate"

CLIENT_QUOTAS: Final[Mapping[str, int | None]] = {
    PRODUCER_RATE: 2**63 - 1,
    CONSUMER_RATE: 2**63 - 1,
    REQUEST_PERCENTAGE: None,
    MUTATION_RATE: None,
}
"""The quotas of users and client ids: the greatest value by name; None for quotas that are not
whole numbers."""

IP_QUOTAS: Final[Mapping[str, int | None]] = {CONNECTION_RATE: 2**31 - 1}
"""The quotas of IP addresses, by name, with their greatest values."""

Entity = tuple[tuple[str, str | None], ...]
"""An entity in the form of `QuotaEntity` of kcluster.metadata.records: client id before user."""


class Limit(Struct, frozen=True):
    """A client's quota: the entity that has it, and the clients that share one rate under it."""

    entity: Entity
    value: float
    rate_key: tuple[str, str, str]
    """The identity of the rate: quota, user, client id; a part is empty if the quota does not
    depend on it."""


def find_limit(
    quotas: Mapping[Entity, Mapping[str, float]], key: str, user: str, client_id: str
) -> Limit | None:
    """The quota `key` of a client: the most specific quota, in the order of KIP-13.  A client
    without an id ("") has only its user's quotas."""
    entity: Entity
    client_names = (client_id, None) if client_id else ()
    for user_name in (user, None):
        for client_name in client_names:
            entity = ((CLIENT_ID, client_name), (USER, user_name))
            if key in quotas.get(entity, {}):
                return Limit(entity, quotas[entity][key], (key, user, client_id))
        entity = ((USER, user_name),)
        if key in quotas.get(entity, {}):
            return Limit(entity, quotas[entity][key], (key, user, ""))
    for client_name in client_names:
        entity = ((CLIENT_ID, client_name),)
        if key in quotas.get(entity, {}):
            return Limit(entity, quotas[entity][key], (key, "", client_id))
    return None
