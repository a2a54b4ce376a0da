"""The TLS of a cluster's brokers: which certificate each listener shows now, and whom it trusts.

Owns: the cluster's own CA, the context of each listener until its configs or its certificate
change.  Never: makes a certificate (authority.py), opens a keystore (listener_stores.py), does a
handshake (tls_socket.py).  Kafka: SslFactory with its reconfiguration; SslChannelBuilder.

# DIFFERS: traffic between brokers crosses the fabric's links as messages, without TLS.
"""

from __future__ import annotations

import errno
import shutil
import socket
import ssl
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from cryptography import x509

from kcluster.broker.channel import Channel
from kcluster.broker.ports import BrokerView
from kcluster.config.files.problems import Problem
from kcluster.config.kafka.tls import TlsTexts
from kcluster.config.topology.model import Topology
from kcluster.config.topology.values import EVERYWHERE
from kcluster.drivers.sockets.connection import ByteSocket, Tap
from kcluster.drivers.sockets.handshake import HandshakeError
from kcluster.drivers.sockets.listener import Acceptor
from kcluster.drivers.tls.authority import Authority
from kcluster.drivers.tls.certificate_folder import CertificateFolder, kept_authority
from kcluster.drivers.tls.client_socket import TlsClientSocket
from kcluster.drivers.tls.contexts import server_context
from kcluster.drivers.tls.credentials import Credentials, KeystoreError, certificates_pem
from kcluster.drivers.tls.listener_stores import ListenerStores, TlsConfigError, open_stores
from kcluster.drivers.tls.tls_acceptor import TlsAcceptor
from kcluster.metadata.records import BROKER_RESOURCE
from kcluster.operations.errors import ClusterError
from kcluster.principals import USER_TYPE, BrokerEndpoint, Principal
from kcluster.security.certificate_names import principal_name, subject_name
from kcluster.security.certificates import (
    FIRST,
    BrokerCertificate,
    CertificateState,
    HandshakeProblem,
)
from kcluster.security.client_settings import LoginFiles

_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")


class ClusterTls:
    """TLS for all brokers of a cluster.

    `shown`: the certificates that brokers show in place of their first ones, by broker id.
    `shown_until_ms`: filled with the end of each certificate from a keystore.  `names`: further
    names of the brokers.  `fixed_size`: whether handshakes must have one size."""

    def __init__(
        self,
        topology: Topology,
        shown: Mapping[int, BrokerCertificate],
        shown_until_ms: dict[tuple[int, str], int],
        *,
        names: Callable[[], Iterable[str]] = tuple,
        fixed_size: bool = False,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.topology = topology
        self.shown = shown
        self.shown_until_ms = shown_until_ms
        self.log = log
        self.authority: Final = _authority(topology, fixed_size)
        self._names = names
        self._remove: Callable[[], object] = lambda: None
        self._folder: CertificateFolder | None = None
        self._is_closed = False
        self._own_clients: dict[str | None, ssl.SSLContext] = {}
        """The contexts of the project's own clients, by user."""
        if topology.security.certificate_folder is not None:
            self.folder.write_users(topology)  # at once: programs know the path

    @property
    def folder(self) -> CertificateFolder:
        """The files of clients, which are written at the first use: in the directory that the
        topology names, or in one that `close` removes."""
        if self._is_closed:
            raise ClusterError("the cluster was stopped")
        if self._folder is None:
            path = self.topology.security.certificate_folder
            if path is None:
                path = tempfile.mkdtemp(prefix="kcluster-tls-")
                # Also at the end of the process, and if the cluster is never closed.
                self._remove = weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
            self._folder = CertificateFolder(path, self.authority)
        return self._folder

    def close(self) -> None:
        """Remove the files of clients, unless the topology names their directory."""
        self._is_closed = True
        self._remove()

    def listener(self, view: BrokerView, endpoint: BrokerEndpoint, channel: Channel) -> ListenerTls:
        """The TLS of a listener of a broker that starts."""
        return ListenerTls(self, view, endpoint, channel)

    def made_for(self, view: BrokerView, state: CertificateState) -> Credentials:
        """A certificate for a broker, with all names by which clients may connect to it."""
        return self._made_for((endpoint.host for endpoint in view.endpoints), state)

    def pem_for(self, hosts: Iterable[str]) -> tuple[bytes, bytes]:
        """PEM files for a broker of another program with these hosts: its key with its certificate,
        and the CA."""
        made = self._made_for(hosts, CertificateState.VALID)
        return made.pem(), certificates_pem((self.authority.certificate,))

    def _made_for(self, hosts: Iterable[str], state: CertificateState) -> Credentials:
        names = (*hosts, self.topology.host, *_THIS_MACHINE, *self._names())
        return self.authority.for_broker(
            [name for name in names if name not in EVERYWHERE or name in _THIS_MACHINE], state
        )

    def client_socket(self, sock: socket.socket, host: str, user: str | None) -> TlsClientSocket:
        """The end of one of the project's own clients, with the user's certificate.  It trusts this
        cluster's CA, or every broker if the certificates come from keystores."""
        context = self._own_clients.get(user)
        if context is None:
            if self.topology.security.makes_certificates:
                context = self.client_context(self.folder.files_of(user))
            else:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            self._own_clients[user] = context
        return TlsClientSocket(sock, context, host)

    @staticmethod
    def client_context(files: LoginFiles) -> ssl.SSLContext:
        """The context of a client with these files."""
        context = ssl.create_default_context(cafile=files.authority)
        if files.certificate is not None:
            context.load_cert_chain(files.certificate, files.key)
        return context

    @staticmethod
    def store_problems(topology: Topology) -> list[Problem]:
        """A problem for each config of TLS that cannot be used, once."""
        found: dict[tuple[str, str], Problem] = {}
        try:
            _authority(topology, fixed_size=True)
        except (OSError, KeystoreError) as error:
            reason = str(error.strerror if isinstance(error, OSError) else error)
            text = f"{topology.security.certificate_folder}: {reason}"
            path = "security.tls.files"
            found[path, text] = topology.problem(path, text)
        for index, spec in enumerate(topology.brokers):
            static = topology.texts_without_effect(spec.id)
            for listener in spec.all_listeners:
                if not listener.protocol.has_tls:
                    continue
                texts = TlsTexts(listener.name, listener.protocol, static, {})
                try:
                    stores = open_stores(texts)
                    if stores.credentials is not None:
                        server_context(stores.settings, stores.credentials, stores.trusted)
                except TlsConfigError as error:
                    path = _path_of(topology, index, texts.full_name(error.name))
                    found.setdefault((path, error.reason), topology.problem(path, error.reason))
                except ValueError as error:
                    path = _path_of(topology, index, texts.full_name("ssl.enabled.protocols"))
                    found.setdefault((path, str(error)), topology.problem(path, str(error)))
        return list(found.values())


def _authority(topology: Topology, fixed_size: bool) -> Authority:
    folder = topology.security.certificate_folder
    if folder is None:
        return Authority(fixed_size=fixed_size)
    return kept_authority(folder, fixed_size=fixed_size)


class ListenerTls:
    """The TLS of one listener, in one life of its broker."""

    def __init__(
        self, cluster: ClusterTls, view: BrokerView, endpoint: BrokerEndpoint, channel: Channel
    ) -> None:
        self._cluster = cluster
        self._view = view
        self._endpoint = endpoint
        self._channel = channel
        self._stores = self._opened()
        self._context: ssl.SSLContext | None = None
        self._seen: tuple[object, ...] = ()
        """What the context was made of."""

    def acceptor(self, beneath: Acceptor, tap: Callable[[ByteSocket], Tap | None]) -> TlsAcceptor:
        """The listener's acceptor, above that of its port.  `tap`: where a trace takes the
        plaintext of a socket."""
        return TlsAcceptor(beneath, self.context, self.secured, tap)

    def context(self) -> ssl.SSLContext:
        """The context of a new connection.  If a file can no longer be read, the old context
        stays."""
        shown = self._cluster.shown.get(self._view.node_id, FIRST)
        now = (self._view.reconfigurations, shown, self._view.endpoints)
        if self._context is None or now != self._seen:
            if self._seen:
                self._stores = self._opened() or self._stores
            self._seen = now
            if self._stores is not None:
                self._context = self._made(self._stores, shown.state)
                self._show_end()
        if self._context is None:
            raise OSError(errno.EPROTO, "the listener has no certificate")
        return self._context

    def _show_end(self) -> None:
        """Keep the end of the certificate from a keystore, for readers."""
        own = None if self._stores is None else self._stores.credentials
        if own is not None:
            key = self._view.node_id, self._endpoint.listener
            self._cluster.shown_until_ms[key] = _end_ms(own.certificate)

    def _opened(self) -> ListenerStores | None:
        """What the configs name now; None, with a line in the log, if it cannot be used."""
        try:
            stores = open_stores(self._texts(self._dynamic))
            if stores.credentials is not None:
                self._made(stores, CertificateState.VALID)
        except (TlsConfigError, ValueError) as error:
            where = f"broker {self._view.node_id}, listener {self._endpoint.listener}"
            self._cluster.log(f"{where}: {error}")
            return None
        return stores

    def secured(self, connection_id: int, certificate: bytes | None) -> None:
        """Name the client of a connection by its certificate; OSError if no rule applies to it."""
        if certificate is None or self._endpoint.protocol.has_sasl or self._stores is None:
            self._channel.secured()
            return
        shown = x509.load_der_x509_certificate(certificate)
        name = subject_name(shown.subject.public_bytes())
        mapped = principal_name(self._stores.rules, name)
        if mapped is None:
            raise HandshakeError(HandshakeProblem.NO_RULE, name)
        self._channel.secured()
        self._channel.certified(connection_id, Principal(USER_TYPE, mapped), _end_ms(shown))

    def check(self, level: Mapping[str, str]) -> str | None:
        """Why the listener could not use these dynamic configs of its broker; None if it could."""
        texts = self._texts(level)
        try:
            stores = open_stores(texts)
            self._made(stores, CertificateState.VALID)
        except (TlsConfigError, ValueError) as error:
            return str(error)
        old = None if self._stores is None else self._stores.credentials
        return None if old is None else _incompatible(old, stores.credentials, texts)

    @property
    def _dynamic(self) -> Mapping[str, str]:
        return self._view.image.configs.get((BROKER_RESOURCE, str(self._view.node_id)), {})

    def _texts(self, dynamic: Mapping[str, str]) -> TlsTexts:
        listener, protocol = self._endpoint.listener, self._endpoint.protocol
        return TlsTexts(listener, protocol, self._view.unused_configs, dynamic)

    def _made(self, stores: ListenerStores, state: CertificateState) -> ssl.SSLContext:
        credentials, trusted = stores.credentials, stores.trusted
        if credentials is None:
            credentials = self._cluster.made_for(self._view, state)
            if trusted is None:
                trusted = (self._cluster.authority.certificate,)
        return server_context(stores.settings, credentials, trusted)


def _incompatible(old: Credentials, new: Credentials | None, texts: TlsTexts) -> str | None:
    """Why a running listener may not change to another certificate.  Kafka:
    SslFactory.CertificateEntries.ensureCompatible."""
    if new is None:
        return "a listener cannot lose its keystore"
    was, now = old.certificate, new.certificate
    if texts.get("ssl.allow.dn.changes") != "true" and was.subject != now.subject:
        return (
            f"the certificate's subject was {was.subject.rfc4514_string()} and would be"
            f" {now.subject.rfc4514_string()}; ssl.allow.dn.changes is false"
        )
    if texts.get("ssl.allow.san.changes") != "true" and not _names_of(was) <= _names_of(now):
        return "the certificate would lack a name that it had; ssl.allow.san.changes is false"
    return None


def _end_ms(certificate: x509.Certificate) -> int:
    """The end of a certificate, in ms since 1970."""
    return round(certificate.not_valid_after_utc.timestamp() * 1_000)


def _names_of(certificate: x509.Certificate) -> frozenset[x509.GeneralName]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(found.value)


_KEYS: Final = {
    "ssl.client.auth": "client_auth",
    "ssl.key.password": "key_password",
    "ssl.keystore.location": "keystore",
    "ssl.keystore.password": "keystore_password",
    "ssl.truststore.location": "truststore",
    "ssl.truststore.password": "truststore_password",
}


def _path_of(topology: Topology, index: int, name: str) -> str:
    """The path in the file of the value of a config."""
    places = topology.places
    paths = [f"brokers[{index}].config.{name}", f"config.{name}"]
    if name in _KEYS:
        paths.append(f"security.tls.{_KEYS[name]}")
    return next((path for path in paths if path in places), paths[1])
