"""The certificate of the web server.

Owns: its files, and the message if they are wrong.  Never: makes a certificate.
Kafka: no counterpart.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NoReturn

import gevent.ssl
from msgspec import Struct

from kcluster.operations.errors import ClusterError


class CertificateFiles(Struct, frozen=True):
    """PEM files: the chain of certificates, and the key; None: the key is with the chain."""

    certificate: Path
    key: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Gevent's SSLContext with this certificate, for TLS 1.2 and 1.3; ClusterError if a file
        cannot be used."""
        context: ssl.SSLContext = gevent.ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        key = self.key or self.certificate
        for file in (self.certificate, key):
            try:
                file.open("rb").close()
            except OSError as error:
                raise ClusterError(f"{file}: {error.strerror}") from error
        try:
            context.load_cert_chain(self.certificate, key, _no_password)
        except ssl.SSLError as error:
            reason = (error.reason or "no PEM file of certificates").replace("_", " ").lower()
            raise ClusterError(f"{self.certificate} with the key in {key}: {reason}") from error
        return context


def _no_password() -> NoReturn:
    raise ClusterError("the key of the certificate is encrypted; give one without a password")
