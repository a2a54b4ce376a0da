"""Checks the TLS of a topology: from a tree (tree.py) to configs of brokers.

Owns: what the keys of `tls` mean in Kafka's configs.  Never: raises, or opens a file
(drivers/tls/listener_stores.py does).
Kafka: KafkaConfig's validation of SSL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kcluster.config.files.fields import read_fields
from kcluster.config.files.problems import show
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Map, Node, Scalar
from kcluster.config.kafka.catalog import listener_prefix
from kcluster.config.topology.security_keys import AUTO, TlsKeys
from kcluster.config.topology.specs import BrokerSpec

_CONFIGS: Final = {
    "client_auth": "ssl.client.auth",
    "keystore": "ssl.keystore.location",
    "keystore_password": "ssl.keystore.password",
    "key_password": "ssl.key.password",
    "truststore": "ssl.truststore.location",
    "truststore_password": "ssl.truststore.password",
}
"""Kafka's configs for the keys of `tls`."""
KEYSTORES: Final = ("ssl.keystore.location", "ssl.keystore.key")
"""The configs that name a keystore, of all listeners or of one."""
_TYPES: Final = {
    ".pem": "PEM", ".crt": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12", ".jks": "JKS",
}  # fmt: skip


class TlsPart(Struct, frozen=True):
    """The TLS of a topology.  `configs`: those that its keys stand for, by Kafka's name."""

    makes_certificates: bool = False
    """Whether certificates are made for brokers without a keystore, and for clients."""
    folder: str | None = None
    """The directory with the certificates for clients; None: a temporary one."""
    configs: dict[str, str] = {}
    handshake_cpu_ms: float = 0


def check_tls(reading: TreeReader, node: Node | None) -> TlsPart:
    """What stands under `security.tls`."""
    if node is None:
        return TlsPart()
    if isinstance(node, Scalar):
        if node.text != AUTO:
            text = f"{show(node.text)}; it must be auto, or a mapping like {{keystore: broker.p12}}"
            reading.wrong(node, "security.tls", text)
        return TlsPart(makes_certificates=True)
    if not isinstance(node, Map):
        reading.wrong(node, "security.tls", f"{kind(node)}; it must be auto, or a mapping")
        return TlsPart()
    values = read_fields(reading, node, "security.tls", TlsKeys, "key of tls")
    configs = {name: values[key] for key, name in _CONFIGS.items() if values.get(key) is not None}
    for store in ("keystore", "truststore"):
        if values.get(store) is None:
            continue
        suffix = f".{values[store].rpartition('.')[2].lower()}"
        if suffix not in _TYPES:
            text = f"{show(values[store])}; its name must end in {', '.join(_TYPES)}"
            reading.wrong(node.entries[store].value, f"security.tls.{store}", text)
            continue
        configs[f"ssl.{store}.type"] = _TYPES[suffix]
    for key, store in (
        ("keystore_password", "keystore"),
        ("key_password", "keystore"),
        ("truststore_password", "truststore"),
    ):
        if values.get(key) is not None and values.get(store) is None:
            reading.wrong(node.entries[key].value, f"security.tls.{key}", f"needs {store}")
    if values.get("files") is not None and values.get("keystore") is not None:
        text = "cannot be combined with keystore: it is for certificates that are made"
        reading.wrong(node.entries["files"].value, "security.tls.files", text)
    makes = values.get("keystore") is None
    return TlsPart(makes, values.get("files"), configs, values.get("handshake_cpu") or 0)


def check_tls_listeners(
    reading: TreeReader,
    node: Node,
    brokers: tuple[BrokerSpec, ...],
    tls: TlsPart,
    config: Mapping[str, str],
) -> None:
    """Report the first listener with TLS that has no certificate."""
    if tls.makes_certificates:
        return
    for index, spec in enumerate(brokers):
        for listener in spec.all_listeners:
            if not listener.protocol.has_tls:
                continue
            prefix = listener_prefix(listener.name)
            names = [f"{before}{name}" for before in ("", prefix) for name in KEYSTORES]
            if not any(name in config or name in spec.config for name in names):
                text = (
                    f"the listener {listener.name} of broker {spec.id} needs a certificate: set"
                    " security: {tls: auto}, or ssl.keystore.location"
                )
                own = f"brokers[{index}].listeners.{listener.name}"
                common = f"listeners.{listener.name}"
                path = own if f"{own}.protocol" in reading.places else common
                reading.wrong(node, path, text)
                return
