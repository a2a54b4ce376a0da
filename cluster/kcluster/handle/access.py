"""How clients come into a cluster: addresses by listener, settings of each library.

Owns: these methods.  Never: makes a certificate (drivers/tls/ does), chooses a user's mechanism
(config/topology/client_access.py does), logs a password.
Kafka: the client.properties that an administrator hands out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from kcluster.config.files.problems import unknown
from kcluster.config.kafka.tls import TlsTexts
from kcluster.config.topology.client_access import AccessProblem, find_access
from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import UserSpec
from kcluster.drivers.serving import SocketDriver
from kcluster.handle.client_objects import with_objects
from kcluster.handle.port import ClusterPort
from kcluster.operations.errors import ClusterError
from kcluster.operations.python_values import text_in
from kcluster.security.client_access import ClientAccess
from kcluster.security.client_settings import SETTINGS_OF, Login, LoginFiles, Settings
from kcluster.security.sasl.mechanisms import SCRAM_CODES
from kcluster.security.sasl.scram_keys import Credential, is_password

if TYPE_CHECKING:
    from kcluster.drivers.tls.cluster_tls import ClusterTls

_UNNAMED: Final = "client"
"""The name in the certificate of a client that names no user, where brokers ask for one."""

Credentials = Mapping[tuple[str, int], Credential]
"""SCRAM credentials by user and code of the mechanism."""


class ClusterAccess:
    """How clients come into a cluster."""

    def __init__(self, port: ClusterPort) -> None:
        self._port = port

    def bootstrap_of(self, listener: str) -> str:
        """`host:port` of each broker that has a listener, for its clients' bootstrap.servers."""
        endpoints = self._port.plan.endpoints.values()
        found = [one for each in endpoints for one in each if one.listener == listener.upper()]
        if not found:
            known = {one.listener: None for each in endpoints for one in each}
            raise ClusterError(unknown("listener", listener, known))
        return ",".join(f"{one.host}:{one.port}" for one in found)

    def client_config(
        self,
        library: str,
        user: str | None = None,
        listener: str | None = None,
        mechanism: str | None = None,
    ) -> dict[str, object]:
        """The settings with which a client of a library comes in: arguments for kafka-python and
        aiokafka, properties for Java and librdkafka.  Without a user and a listener, the
        settings are those of one of the project's own clients; without a mechanism, the strongest
        mechanism of SASL is taken.  The password is the one in force.  ClusterError if the client
        cannot connect."""
        login = self.login(user, listener, mechanism)
        settings = self._settings(library, login)
        return with_objects(library, login, settings, lambda files: self._tls.client_context(files))

    def settings(
        self,
        library: str,
        user: str | None = None,
        listener: str | None = None,
        mechanism: str | None = None,
    ) -> Settings:
        """As `client_config`, with objects as expressions of the library's language."""
        return self._settings(library, self.login(user, listener, mechanism))

    def _settings(self, library: str, login: Login) -> Settings:
        if library not in SETTINGS_OF:
            raise ClusterError(unknown("library", library, SETTINGS_OF))
        return SETTINGS_OF[library](login)

    def login(
        self, user: str | None = None, listener: str | None = None, mechanism: str | None = None
    ) -> Login:
        """How a client comes in, in no library's terms."""
        for name, value in (("user", user), ("listener", listener), ("mechanism", mechanism)):
            if value is not None:
                text_in(name, value)
        topology = self._port.plan.topology
        known = self._credentials() if topology.has_sasl else {}
        access = find_access(_with_users(topology, known), user, listener, mechanism)
        if isinstance(access, AccessProblem):
            raise ClusterError(access.text)
        return Login(
            self.bootstrap_of(access.listener),
            access.protocol,
            access.mechanism,
            access.user,
            self._password(access, known),
            self._files(access),
        )

    def _credentials(self) -> Credentials:
        """The SCRAM credentials in the metadata."""
        return self._port.call(lambda: dict(self._port.verbs.settled.image.scram_credentials))

    def _password(self, access: ClientAccess, known: Credentials) -> str:
        """The password in force; ClusterError if it is not known here."""
        user, mechanism = access.user or "", access.mechanism or ""
        credential = known.get((user, SCRAM_CODES.get(mechanism, -1)))
        if credential is None:
            return access.password
        for password in (*self._port.plan.passwords.of(user), access.password):
            if password and is_password(mechanism, password, credential):
                return password
        text = "was set by a client, which sent only its hash; ask for another mechanism"
        raise ClusterError(f"the password of {user} for {mechanism} {text}")

    def _files(self, access: ClientAccess) -> LoginFiles | None:
        """The files of a client, if the brokers' certificates are made here."""
        security = self._port.plan.topology.security
        if not access.protocol.has_tls or not security.makes_certificates:
            return None
        named = access.user or _UNNAMED
        asks = self._asks_for_certificates(access)
        return self._tls.folder.files_of(named if asks else None)

    def _asks_for_certificates(self, access: ClientAccess) -> bool:
        topology = self._port.plan.topology
        texts = [
            TlsTexts(access.listener, access.protocol, topology.config_texts(spec.id), {})
            for spec in topology.brokers
        ]
        return any(each.get("ssl.client.auth") != "none" for each in texts)

    @property
    def _tls(self) -> ClusterTls:
        driver = self._port.driver
        assert isinstance(driver, SocketDriver), driver
        assert driver.tls is not None, "a listener has TLS"
        return driver.tls


def _with_users(topology: Topology, known: Credentials) -> Topology:
    """The topology with the users who have got a SCRAM credential since its start."""
    users = {user.name: user for user in topology.security.users}
    codes = {code: mechanism for mechanism, code in SCRAM_CODES.items()}
    found: dict[str, list[str]] = {}
    for user, code in known:
        if user not in users:
            found.setdefault(user, []).append(codes[code])
    added = [UserSpec(user, "", tuple(mechanisms)) for user, mechanisms in found.items()]
    security = replace(topology.security, users=(*users.values(), *added))
    return replace(topology, security=security)
