"""The quotas that brokers use for their clients, against what their metadata give.

Owns: each client whose quota at a broker is another than the metadata that the broker has applied
give.  Never: measures a rate, mutes a client (broker/quotas/client_quotas.py does), uses the
broker's way to find a quota.  Kafka: ClientQuotaManager, DefaultQuotaCallback; KIP-13, KIP-546.

    quota-differs    a broker uses another quota for a client than its metadata give, or none
                     although they give one, or one although they give none

The quota of the most specific entity counts: of the user with the client id, of the user with any
client id, of the user, of any user with the client id, and so on, and of the client id last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.broker.node_view import BrokerNodeView
from kcluster.invariants.facts import HeldDiffers

_USER: Final = "user"
_CLIENT: Final = "client-id"
_ANY: Final = None


def quota_differences(node: BrokerNodeView) -> Iterator[HeldDiffers]:
    """The quotas that one broker uses between two of its steps, and that differ from its
    metadata."""
    given = node.image.client_quotas
    for (quota, user, client_id), limit in node.quotas.limits.items():
        due = None
        for entity in _entities(user, client_id):
            due = given.get(entity, {}).get(quota)
            if due is not None:
                break
        held = None if limit is None else limit.value
        # Infinity is a value like others, and NaN differs from itself.
        if str(held) != str(due):
            of = f"{quota} of client {client_id or 'without id'}"
            yield HeldDiffers(of, "", _shown(held), _shown(due))


def _entities(user: str, client_id: str) -> Iterator[tuple[tuple[str, str | None], ...]]:
    """The entities that a client belongs to, the most specific one first."""
    for name in (user, _ANY):
        if client_id:
            yield ((_CLIENT, client_id), (_USER, name))
            yield ((_CLIENT, _ANY), (_USER, name))
        yield ((_USER, name),)
    if client_id:
        yield ((_CLIENT, client_id),)
        yield ((_CLIENT, _ANY),)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
