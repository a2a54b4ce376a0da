"""Checks the key `security` of a topology, together with the brokers' listeners and configs.

Owns: the order of the checks.  Never: raises; checks the value of one key (user_checks.py,
tls_checks.py, acl_checks.py).
Kafka: server.properties.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kcluster.config.files.fields import read_fields
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import Node
from kcluster.config.topology.acl_checks import check_authorization
from kcluster.config.topology.sasl import enabled_mechanisms
from kcluster.config.topology.security_keys import SecurityKeys
from kcluster.config.topology.specs import AuthorizationSpec, BrokerSpec, SecuritySpec
from kcluster.config.topology.tls_checks import TlsPart, check_tls, check_tls_listeners
from kcluster.config.topology.user_checks import check_users


class SecurityNodes(Struct, frozen=True):
    """What stands under `security`, before brokers and listeners are known."""

    tls: TlsPart = TlsPart()
    users: Node | None = None
    authorization: AuthorizationSpec = AuthorizationSpec()


def read_security(reading: TreeReader, node: Node | None) -> SecurityNodes:
    """Read the keys of `security`."""
    if node is None:
        return SecurityNodes()
    values = read_fields(reading, node, "security", SecurityKeys, "key of security")
    return SecurityNodes(
        check_tls(reading, values.get("tls")),
        values.get("users"),
        check_authorization(
            reading,
            "security",
            values.get("super_users") or (),
            values.get("authorizer"),
            values.get("acls"),
        ),
    )


def check_security(
    reading: TreeReader,
    written: SecurityNodes,
    listening: Node | None,
    brokers: tuple[BrokerSpec, ...],
    config: Mapping[str, str],
) -> SecuritySpec:
    """What a topology says about security.  `listening`: where its listeners stand; `config`: that
    of all brokers."""
    tls = written.tls
    if listening is not None:
        check_tls_listeners(reading, listening, brokers, tls, config)
    found = [
        enabled_mechanisms(broker.all_listeners, {**config, **broker.config}) for broker in brokers
    ]
    enabled = tuple(dict.fromkeys(name for names in found for name in names))
    users = check_users(reading, written.users, "security.users", enabled)
    return SecuritySpec(
        users, written.authorization, tls.makes_certificates, tls.folder, tls.handshake_cpu_ms
    )
