"""The options of `kcluster proxy`, checked and read.

Owns: the cluster's addresses, TLS for clients, the limit of open files.
Never: connects.  Kafka: the --bootstrap-server of Kafka's tools.
"""

from __future__ import annotations

import resource
import ssl
from pathlib import Path
from typing import Final

from kcluster.cli.errors import CommandError
from kcluster.config.files.numbers import whole_number
from kcluster.proxy.addresses import Address

FILES_WANTED: Final = 65_536
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_KEY: Final = b"PRIVATE KEY-----"


def bootstrap_of(text: str) -> tuple[Address, ...]:
    """The addresses of --bootstrap: `host:port`, several with commas."""
    found = []
    for part in text.split(","):
        host, _, port = part.strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        number = whole_number(port)
        if not host or number is None or not 0 < number < 65536:
            raise CommandError(
                f"--bootstrap {part.strip()}: not HOST:PORT, such as kafka-1:9092", 2
            )
        found.append((host, number))
    return tuple(found)


def client_tls(files: tuple[Path, Path] | None) -> ssl.SSLContext | None:
    """The context with which clients connect; None without --tls-cert."""
    if files is None:
        return None
    certificate, key = files
    certificates = _read("--tls-cert", certificate)
    keys = certificates if key == certificate else _read("--tls-key", key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if _CERTIFICATE not in certificates:
            problem = f"--tls-cert {certificate}: not a PEM file of certificates"
        elif _KEY not in keys and key == certificate:
            problem = f"--tls-cert {certificate} has no private key: add --tls-key FILE"
        elif _KEY not in keys:
            problem = f"--tls-key {key}: not a PEM file with a private key"
        else:
            reason = (error.reason or "unreadable").replace("_", " ").lower()
            problem = f"--tls-cert {certificate}, --tls-key {key}: {reason}"
        raise CommandError(problem, 2) from None
    return context


def _read(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror}", 2) from None


def allow_many_connections() -> None:
    """Raise the limit of open files as far as this user may: each connection needs two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if wanted > soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
