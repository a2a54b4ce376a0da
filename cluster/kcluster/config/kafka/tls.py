"""The configs of a listener's TLS, by Kafka's names: which of the levels decides.

Owns: the names that have an effect here, and their defaults.  Never: opens a keystore
(drivers/tls/listener_stores.py does).  Kafka: SslConfigs, BrokerSecurityConfigs,
AbstractConfig.valuesWithPrefixOverride.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.config.kafka.catalog import listener_config, listener_prefix
from kcluster.principals import SecurityProtocol

TLS_DEFAULTS: Final[dict[str, str | None]] = {
    "ssl.allow.dn.changes": "false",
    "ssl.allow.san.changes": "false",
    "ssl.cipher.suites": "",
    "ssl.client.auth": "none",
    "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
    "ssl.key.password": None,
    "ssl.keystore.certificate.chain": None,
    "ssl.keystore.key": None,
    "ssl.keystore.location": None,
    "ssl.keystore.password": None,
    "ssl.keystore.type": "JKS",
    "ssl.principal.mapping.rules": "DEFAULT",
    "ssl.truststore.certificates": None,
    "ssl.truststore.location": None,
    "ssl.truststore.password": None,
    "ssl.truststore.type": "JKS",
}
"""The configs that have an effect on a listener with TLS, with their defaults."""
NAME_CHECK: Final = "ssl.endpoint.identification.algorithm"
"""The config by which a client compares the broker's name with its certificate."""
OF_ALL_LISTENERS: Final = ("ssl.principal.mapping.rules",)
"""The configs that cannot be set for one listener."""


def is_tls_config(name: str) -> bool:
    """Whether this is one of them, of all listeners or of one."""
    return (listener_config(name) or name) in TLS_DEFAULTS


class TlsTexts:
    """The configs of one listener, as they were written."""

    def __init__(
        self,
        listener: str,
        protocol: SecurityProtocol,
        static: Mapping[str, str],
        dynamic: Mapping[str, str],
    ) -> None:
        """`static`: those of the topology; `dynamic`: those of the running broker, by full name."""
        self._prefix = listener_prefix(listener)
        self._values: dict[str, str] = {}
        self._names: dict[str, str] = {}
        """The full name by which each value was set."""
        for name in TLS_DEFAULTS:
            prefixed = self._prefix + name
            levels = [(dynamic, prefixed), (static, prefixed), (static, name)]
            if name in OF_ALL_LISTENERS:
                del levels[:2]
            elif name == "ssl.client.auth" and protocol.has_sasl:
                del levels[2:]  # the login names the client (KIP-684)
            for values, full_name in levels:
                if full_name in values:
                    self._values[name], self._names[name] = values[full_name], full_name
                    break

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TlsTexts) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]  # compared, never kept in a set

    def get(self, name: str) -> str | None:
        """The value of a config; its default if it is not set."""
        return self._values.get(name, TLS_DEFAULTS[name])

    def items(self, name: str) -> tuple[str, ...]:
        """The items of a list."""
        return tuple(item.strip() for item in (self.get(name) or "").split(",") if item.strip())

    def full_name(self, name: str) -> str:
        """The name by which a config was set, or would be set for this listener."""
        return self._names.get(name, self._prefix + name)
