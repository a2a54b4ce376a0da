"""The ids of a cluster's brokers, and the numbers of the cases: 1, 2 and 3.

Owns: the translation between both, and the fields that hold a broker's id.  Never: knows an
address.  Kafka: the fields with `"entityType": "brokerId"` in the schemas of its messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

BROKER_FIELDS: Final = frozenset(
    (
        "adding_replicas", "broker_id", "broker_ids", "eligible_leader_replicas", "isr_nodes",
        "last_known_elr", "leader_id", "node_id", "offline_replicas", "preferred_read_replica",
        "removing_replicas", "replica_id", "replica_nodes", "replicas",
    )
)  # fmt: skip
"""Fields of requests and responses that hold the id of a broker, or a list of ids."""
_BROKER_RESOURCES: Final = (4, 8)
"""The types of config resources that are named by a broker's id: BROKER, BROKER_LOGGER."""


class BrokerIds:
    """A one-to-one translation: broker N of the cases is the Nth of the cluster, in the order of
    ids; `first` comes before all.  Ids that the cluster does not have stay unknown to it."""

    def __init__(self, ids: Iterable[int], first: int | None = None) -> None:
        found = sorted(ids, key=lambda id_: (id_ != first, id_))
        numbers = range(1, len(found) + 1)
        self._to_cluster = dict(zip(numbers, found, strict=True))
        left = [number for number in numbers if number not in found]
        self._to_cluster |= zip((id_ for id_ in found if id_ not in numbers), left, strict=True)
        self._to_case = {id_: number for number, id_ in self._to_cluster.items()}

    def to_cluster(self, number: int) -> int:
        """The id that stands for a number of the cases."""
        return self._to_cluster.get(number, number)

    def to_case(self, broker_id: int) -> int:
        """The number that stands for an id of the cluster."""
        return self._to_case.get(broker_id, broker_id)

    def field_to_cluster(self, name: str, value: object) -> object:
        """The value of a request's field; values of other fields stay as they are."""
        return self._mapped(name, value, self._to_cluster)

    def field_to_case(self, name: str, value: object) -> object:
        """The value of a response's field."""
        return self._mapped(name, value, self._to_case)

    def resource_to_cluster(self, kind: object, name: object) -> object:
        """The name of a config resource."""
        return self._resource(kind, name, self._to_cluster)

    def resource_to_case(self, kind: object, name: object) -> object:
        """The name of a config resource in a response."""
        return self._resource(kind, name, self._to_case)

    def _mapped(self, name: str, value: object, table: dict[int, int]) -> object:
        if name not in BROKER_FIELDS or not table:
            return value
        if isinstance(value, list):
            return [table.get(one, one) for one in value]
        return table.get(value, value) if isinstance(value, int) else value

    def _resource(self, kind: object, name: object, table: dict[int, int]) -> object:
        if kind in _BROKER_RESOURCES and isinstance(name, str) and name.isascii():
            by_text = {str(one): str(other) for one, other in table.items()}
            return by_text.get(name, name)
        return name


SAME_IDS: Final = BrokerIds(())
"""For a cluster whose brokers are 1, 2 and 3."""
