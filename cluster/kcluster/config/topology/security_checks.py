"""Checks the key `security` of a topology, together with the brokers' listeners and configs.

Owns: the order of the checks.  Never: raises; checks the value of one key (user_checks.py, …).
Kafka: server.properties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kcluster.config.files.fields import read_fields
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import Node
from kcluster.config.topology.acl_checks import check_authorization
from kcluster.config.topology.sasl import enabled_mechanisms
from kcluster.config.topology.security_keys import SecurityKeys
from kcluster.config.topology.specs import BrokerSpec, SecuritySpec
from kcluster.config.topology.user_checks import check_users


def check_security(
    reading: TreeReader, node: Node | None, brokers: Sequence[BrokerSpec], config: Mapping[str, str]
) -> SecuritySpec:
    """What a topology says about security.  `config`: that of all brokers."""
    if node is None:
        return SecuritySpec()
    values = read_fields(reading, node, "security", SecurityKeys, "key of security")
    enabled = _enabled(brokers, config)
    return SecuritySpec(
        users=check_users(reading, values.get("users"), "security.users", enabled),
        authorization=check_authorization(reading, values, "security"),
    )


def _enabled(brokers: Sequence[BrokerSpec], config: Mapping[str, str]) -> tuple[str, ...]:
    """The SASL mechanisms of all listeners of all brokers."""
    found = [
        enabled_mechanisms(broker.all_listeners, {**config, **broker.config}) for broker in brokers
    ]
    return tuple(dict.fromkeys(name for names in found for name in names))
