"""The files with which clients connect by TLS: the CA, and a certificate per user.

Owns: the files' names, their permissions, their password.  Never: makes a certificate
(authority.py does) or removes the folder (its owner does).
Kafka: the truststores and keystores that its documentation makes with keytool.

    ca.pem                              librdkafka, Python, Go, Node
    truststore.p12, truststore.jks      Java
    alice.pem                           key, certificate and CA of user alice; also Java's PEM type
    alice.p12, alice.jks                Java
    ca-key.pem                          the CA itself, in a directory that the topology names

The stores of type JKS are written only where Java's keytool is installed.
"""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from kcluster.config.topology.model import Topology
from kcluster.drivers.tls.authority import Authority, new_kept_ca
from kcluster.drivers.tls.credentials import (
    PEM,
    KeystoreError,
    certificates_pem,
    read_keystore,
    truststore_pkcs12,
)
from kcluster.drivers.tls.keytool import convert_store, find_keytool
from kcluster.security.certificates import CertificateState
from kcluster.security.client_settings import LoginFiles

STORE_PASSWORD: Final = "changeit"
"""The password of all stores, which is Java's own default: the permissions of the files protect
them, and their CA is trusted by nobody else."""
CA_FILE: Final = "ca.pem"
CA_KEY: Final = "ca-key.pem"
TRUSTSTORE: Final = "truststore"
_NEW: Final = ".new-"
"""The beginning of the names of files that are being written."""
ANY_CLIENT: Final = "client"
"""The user whose certificate is written where the topology names no users."""


class CertificateFolder:
    """A folder of such files, which only its user may read."""

    def __init__(self, folder: str | os.PathLike[str], authority: Authority) -> None:
        self.folder: Final = Path(folder)
        self._authority = authority
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        trusted = (authority.certificate,)
        self._write(CA_FILE, certificates_pem(trusted))
        self._write(f"{TRUSTSTORE}.p12", truststore_pkcs12(trusted, STORE_PASSWORD))

    @property
    def ca_file(self) -> Path:
        """The CA's certificate."""
        return self.folder / CA_FILE

    def files_of(self, user: str | None) -> LoginFiles:
        """The files of a client: with a user's certificate, which is written if there is none, or
        without a certificate."""
        if user is None:
            return LoginFiles(str(self.ca_file))
        path = self.folder / f"{_file_name(user)}.pem"
        own = str(path if path.exists() else self.add_user(user))
        return LoginFiles(str(self.ca_file), own, own, own)

    @property
    def truststore(self) -> Path:
        """A PKCS12 truststore with the CA's certificate."""
        return self.folder / f"{TRUSTSTORE}.p12"

    def add_user(self, user: str, state: CertificateState = CertificateState.VALID) -> Path:
        """Write the key and the certificate of a user, in place of older ones; returns the PEM
        file."""
        credentials = self._authority.for_client(user, state)
        name = _file_name(user)
        self._write(f"{name}.p12", credentials.pkcs12(user, STORE_PASSWORD))
        return self._write(f"{name}.pem", credentials.pem())

    def write_users(self, topology: Topology) -> Path:
        """Write the certificate of each user of a topology; returns the folder.  Without users, one
        for `client` if a listener asks for certificates."""
        users = [user.name for user in topology.security.users]
        texts = [text for name, text in topology.config.items() if name.endswith("ssl.client.auth")]
        if not users and any(text != "none" for text in texts):
            users = [ANY_CLIENT]
        for user in users:
            self.add_user(user)
        return self.folder

    def add_jks_in_background(self) -> None:
        """Write the JKS stores in a thread of their own."""
        threading.Thread(target=self._add_jks_unless_removed, daemon=True).start()

    def _add_jks_unless_removed(self) -> None:
        with suppress(OSError):  # the cluster was stopped meanwhile
            self.add_jks()

    def add_jks(self) -> tuple[Path, ...]:
        """Write each PKCS12 store as JKS, too; nothing without keytool, which takes half a second
        per store."""
        keytool = find_keytool()
        if keytool is None:
            return ()
        stores = sorted(self.folder.glob("*.p12"))
        made = [convert_store(keytool, each, "pkcs12", "jks", STORE_PASSWORD) for each in stores]
        return tuple(each for each in made if isinstance(each, Path))

    def _write(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        os.replace(_private_file(self.folder, data), path)  # atomic: others may read it meanwhile
        return path


def kept_authority(folder: str | os.PathLike[str], *, fixed_size: bool) -> Authority:
    """The CA of a directory, created on first use, so that clients trust it in later and in
    concurrent runs.  KeystoreError if the directory has files of others, which a topology could
    overwrite."""
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    path = Path(folder, CA_KEY)
    if not path.exists():
        others = [each for each in os.listdir(folder) if not each.startswith(_NEW)]
        if others and not path.exists():
            text = f"has files, but no {CA_KEY} of kcluster; name a directory of its own"
            raise KeystoreError(text)
        made = _private_file(Path(folder), new_kept_ca().pem())
        with suppress(FileExistsError):
            os.link(made, path)
        os.unlink(made)
    return Authority(fixed_size=fixed_size, kept=read_keystore(path.read_bytes(), PEM, None))


def _private_file(folder: Path, data: bytes) -> str:
    """A new file that only its user may read."""
    descriptor, path = tempfile.mkstemp(dir=folder, prefix=_NEW)
    with open(descriptor, "wb") as file:
        file.write(data)
    return path


def _file_name(user: str) -> str:
    """A user's name as the name of a file, which cannot leave the folder."""
    plain = "".join(each if each.isalnum() or each in "-_." else "_" for each in user).lstrip(".")
    return plain if plain == user else f"{plain}-{sha256(user.encode()).hexdigest()[:8]}"
