"""Outcomes without what may differ from cluster to cluster.

Owns: the rules, each with its reason.  Never: compares.  (plain.py has the rules that hold for
every cluster: ids, times, texts.)
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from kcluster.conform.broker_ids import BROKER_FIELDS
from kcluster.json_types import JsonObject

MESSAGES: Final = frozenset(
    (
        "acknowledge_error_message", "batch_index_error_message", "documentation", "error_message",
        "status_detail",
    )
)  # fmt: skip
"""Texts for people, which a cluster may leave out."""
OF_THE_OPERATOR: Final = frozenset((3, 4, 5))
"""The sources of configs that whoever runs the cluster sets: DYNAMIC_DEFAULT_BROKER_CONFIG,
STATIC_BROKER_CONFIG, DEFAULT_CONFIG.  Their names are compared, their values are not."""
_OPERATORS: Final = ("value", "config_source", "synonyms", "is_default")
_BROKER_LISTS: Final = ("brokers", "node_endpoints")
_LEADER: Final = re.compile(r"leader -?\d+ epoch")
_REPLICAS: Final = re.compile(r" replicas \[[\d, ]*\] isr \[[\d, ]*\]|\d+ replicas, \d+ in sync")
_OF_LOGINS: Final = re.compile(r"\{sasl_port_")
"""A run knows one listener, with or without logins."""
_PORT: Final = re.compile(r"\{port_\d+\}")


class Projection(Struct, frozen=True):
    """What is left out.  `hosts`: the brokers' own; `has_three_brokers`: whether the cluster is as
    large as the one that was recorded, so that leaders and replicas can be compared."""

    hosts: frozenset[str] = frozenset()
    has_three_brokers: bool = True

    def of(self, outcome: object) -> object:
        """An outcome of either side, as far as it is compared."""
        if isinstance(outcome, list):
            return [self.of(one) for one in outcome]
        if isinstance(outcome, str):
            text = _OF_LOGINS.sub("{port_", outcome)
            if self.has_three_brokers:
                return text
            return _REPLICAS.sub("", _LEADER.sub("epoch", _PORT.sub("{port}", text)))
        if not isinstance(outcome, dict):
            return outcome
        found: JsonObject = {}
        for name, value in outcome.items():
            if name in MESSAGES:
                continue
            if not self.has_three_brokers and name in _BROKER_LISTS:
                found[name] = "<brokers>"
            elif not self.has_three_brokers and name in BROKER_FIELDS:
                found[name] = "<brokers>" if value != -1 else -1
            elif name == "client_host":
                found[name] = "<address>"  # where the client comes from
            elif name == "host" and value in self.hosts:
                found[name] = "127.0.0.1"
            else:
                found[name] = self.of(value)
        return _without_operators(found)


def _without_operators(row: JsonObject) -> JsonObject:
    """A row about a config without the value that whoever runs the cluster set."""
    if "name" not in row or "config_source" not in row:
        return row
    if row["config_source"] in OF_THE_OPERATOR:
        return {name: value for name, value in row.items() if name not in _OPERATORS}
    synonyms = [one for one in row.get("synonyms", ()) if one.get("source") not in OF_THE_OPERATOR]
    return {**row, **({"synonyms": synonyms} if "synonyms" in row else {})}
