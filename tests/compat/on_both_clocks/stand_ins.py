"""What stands in for brokers that suites start with TLS, SASL and an authorizer of their own.

Owns: these fixtures, with the names and methods that the suites call.  Never: knows a clock, or
makes a cluster (suites.py does).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

KEY_PASSWORD: Final = "abcdefgh"
"""Of the client's key, in aiokafka's tests."""


def port_of(cluster: Any, listener: str) -> int:
    """The port of a listener of the only broker."""
    (endpoints,) = cluster.access.bootstrap_of(listener).split(",")
    return int(endpoints.rpartition(":")[2])


# ------------------------------------------------------------------------------- kafka-python


class Broker:
    """In place of its KafkaFixture.  Its clients log in as alice."""

    host = "localhost"
    partitions, replicas = 4, 1
    auto_create_topics = True
    child = SimpleNamespace(dump_logs=lambda: None)

    def __init__(
        self, cluster: Any, transport: str = "PLAINTEXT", sasl_mechanism: str = "", **_: Any
    ) -> None:
        self.port = port_of(cluster, transport)
        self.ssl_dir = str(_folder(cluster))
        settings: dict[str, Any] = {"security_protocol": transport}
        if sasl_mechanism:
            settings |= {
                "sasl_mechanism": sasl_mechanism,
                "sasl_plain_username": "alice",
                "sasl_plain_password": "alice-secret",
            }
        self._settings = settings

    def bootstrap_server(self) -> str:
        return f"{self.host}:{self.port}"

    def _enrich_client_params(self, given: Any, **defaults: Any) -> dict[str, Any]:
        own = {"bootstrap_servers": self.bootstrap_server(), **self._settings}
        return {**own, **defaults, **given}

    def get_topic_names(self) -> Iterable[str]:
        from kafka import KafkaAdminClient

        admin = KafkaAdminClient(**self._enrich_client_params({}))
        try:
            names: Iterable[str] = admin.list_topics()
            return names
        finally:
            admin.close()


def _folder(cluster: Any) -> Path:
    """A folder with the CA under the name that the tests expect."""
    authority = Path(cluster.certificates.files_of(None).authority)
    (authority.parent / "ca-cert").write_bytes(authority.read_bytes())
    return authority.parent


# ----------------------------------------------------------------------------------- aiokafka


def client_files(cluster: Any) -> Path:
    """A folder with the CA, and with the certificate and the encrypted key of a client."""
    from cryptography.hazmat.primitives import serialization

    files = cluster.certificates.files_of("client")
    folder = Path(files.authority).parent / "aiokafka"
    folder.mkdir(exist_ok=True)
    pem = Path(files.certificate).read_bytes()
    key = serialization.load_pem_private_key(pem[: pem.index(b"-----BEGIN CERT")], None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(KEY_PASSWORD.encode()),
    )
    (folder / "ca.crt").write_bytes(Path(files.authority).read_bytes())
    (folder / "client.crt").write_bytes(pem[pem.index(b"-----BEGIN CERT") :])
    (folder / "client.key").write_bytes(encrypted)
    return folder


class Acls:
    """In place of its ACLManager, which calls kafka-acls.sh."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._given: list[dict[str, Any]] = []

    def add_acl(self, **given: Any) -> None:
        for keys in _keys_of(given):
            self._cluster.perform("acl", **keys)
        self._given.append(given)

    def remove_acl(self, **given: Any) -> None:
        for keys in _keys_of(given):
            self._cluster.perform("remove_acl", **keys)
        self._given.remove(given)

    def list_acl(self, principal: str | None = None) -> None:
        """Nothing reads its answer."""

    def cleanup(self) -> None:
        for given in list(self._given):
            self.remove_acl(**given)


def _keys_of(given: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Arguments of `add_acl` as the keys of an action, for each principal."""
    resource = {
        name: given[name] for name in ("topic", "group", "transactional_id", "cluster")
        if given.get(name)
    }  # fmt: skip
    operation = given.get("operation", "All").lower()
    for effect in ("allow", "deny"):
        if f"{effect}_principal" in given:
            yield {effect: given[f"{effect}_principal"], "to": operation, **resource}


class Passwords:
    """In place of its KafkaConfig, which calls kafka-configs.sh."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def add_scram_user(self, user: str, password: str) -> None:
        self._cluster.perform("password", user=user, to=password)


def no_kerberos() -> SimpleNamespace:
    """In place of its KerberosUtils: GSSAPI is not simulated."""

    def skip(*_: Any, **__: Any) -> None:
        pytest.skip("no Kerberos")

    return SimpleNamespace(kinit=skip, kdestroy=lambda: None)
