"""Keystores of each type: what goes in comes out, and what is wrong is said without a secret."""

from __future__ import annotations

import ssl
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kcluster.drivers.tls.authority import Authority
from kcluster.drivers.tls.certificate_folder import (
    STORE_PASSWORD,
    CertificateFolder,
    kept_authority,
)
from kcluster.drivers.tls.credentials import (
    JKS,
    PEM,
    PKCS12,
    Credentials,
    KeystoreError,
    certificates_pem,
    pem_credentials,
    read_keystore,
    read_truststore,
    truststore_pkcs12,
)
from kcluster.drivers.tls.keytool import find_keytool

AUTHORITY = Authority()
BOB = AUTHORITY.for_client("bob")
SECRET = "s3cret-word"


def public(credentials: Credentials) -> bytes:
    key = credentials.key.public_key()
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


SOUND = {
    "PEM": (BOB.pem(), PEM, None, None),
    "PEM with a needless password": (BOB.pem(), PEM, None, "needless"),
    "PEM with an encrypted key": (BOB.pem(SECRET.encode()), PEM, None, SECRET),
    "PKCS12": (BOB.pkcs12("bob", SECRET), PKCS12, SECRET, None),
    "PKCS12 as JKS": (BOB.pkcs12("bob", SECRET), JKS, SECRET, None),  # by keytool since Java 9
}


@pytest.mark.parametrize(("data", "kind", "password", "key_password"), SOUND.values(), ids=SOUND)
def test_keystore__gives_its_key_and_chain(
    data: bytes, kind: str, password: str | None, key_password: str | None
) -> None:
    read = read_keystore(data, kind, password, key_password)
    assert public(read) == public(BOB)
    assert [read.certificate, *read.chain] == [BOB.certificate, AUTHORITY.certificate]


_TRUSTED = truststore_pkcs12([AUTHORITY.certificate], SECRET)
WRONG = {
    "password is wrong": (BOB.pkcs12("bob", SECRET), PKCS12, "no", None),
    "needs its password": (BOB.pkcs12("bob", SECRET), PKCS12, None, None),
    "no PKCS12": (b"\x30\x03abc", PKCS12, SECRET, None),
    "is no PKCS12": (b"", PKCS12, SECRET, None),
    "no private key": (_TRUSTED, PKCS12, SECRET, None),
    "is encrypted": (BOB.pem(SECRET.encode()), PEM, None, None),
    "password of the private key is wrong": (BOB.pem(SECRET.encode()), PEM, None, "no"),
    "no PEM private key": (b"nothing", PEM, None, None),
    "no PEM certificate": (BOB.pem().split(b"-----BEGIN CERT")[0], PEM, None, None),
    "there is no PEM private key": (BOB.pem()[:60], PEM, None, None),
}


@pytest.mark.parametrize(
    ("words", "data", "kind", "password", "key_password"),
    [(words, *case) for words, case in WRONG.items()],
    ids=WRONG,
)
def test_keystore__what_is_wrong_is_said(
    words: str, data: bytes, kind: str, password: str | None, key_password: str | None
) -> None:
    with pytest.raises(KeystoreError, match=words) as caught:
        read_keystore(data, kind, password, key_password)
    assert SECRET not in str(caught.value)


def test_keystore__a_key_of_another_certificate_is_refused() -> None:
    with pytest.raises(KeystoreError, match="not that of the private key"):
        pem_credentials(BOB.pem(), AUTHORITY.for_client("eve").pem(), None)


@pytest.mark.parametrize(
    ("data", "kind", "password"),
    [
        (certificates_pem([AUTHORITY.certificate]), PEM, None),
        (_TRUSTED, PKCS12, SECRET),
        (_TRUSTED, JKS, SECRET),
    ],
    ids=["PEM", "PKCS12", "PKCS12 as JKS"],
)
def test_truststore__gives_its_certificates(data: bytes, kind: str, password: str | None) -> None:
    assert read_truststore(data, kind, password) == [AUTHORITY.certificate]


def test_files__only_their_user_may_read_them(tmp_path: Path) -> None:
    files = CertificateFolder(tmp_path / "tls", AUTHORITY)
    pem = files.add_user("alice")
    assert {path.name for path in files.folder.iterdir()} == {
        "ca.pem", "truststore.p12", "alice.pem", "alice.p12",
    }  # fmt: skip
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.folder.iterdir()} == {0o600}
    context = ssl.create_default_context(cafile=files.ca_file)
    context.load_cert_chain(pem)
    assert (
        read_keystore(
            (files.folder / "alice.p12").read_bytes(), PKCS12, STORE_PASSWORD
        ).certificate.subject.rfc4514_string()
        == "CN=alice"
    )


def test_files__a_users_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    files = CertificateFolder(tmp_path / "tls", AUTHORITY)
    made = {files.add_user(name) for name in ("../../etc/x", ".._.._etc_x", "a/b", "a_b")}
    assert len(made) == 4
    assert all(path.parent == files.folder and path.exists() for path in made)


def test_files__a_named_directory_keeps_its_ca_for_later_runs(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    first = kept_authority(folder, fixed_size=True)
    assert kept_authority(folder, fixed_size=False).certificate == first.certificate
    assert {path.name for path in folder.iterdir()} == {"ca-key.pem"}
    assert stat.S_IMODE((folder / "ca-key.pem").stat().st_mode) == 0o600
    sizes = {len(certificates_pem([first.for_broker(["a"]).certificate])) for _ in range(5)}
    assert len(sizes) == 1


def test_files__a_directory_with_files_of_others_is_left_alone(tmp_path: Path) -> None:
    """A topology of a stranger may name any directory."""
    (tmp_path / "alice.pem").write_text("mine")
    with pytest.raises(KeystoreError, match=r"has files, but no ca-key\.pem of kcluster"):
        kept_authority(tmp_path, fixed_size=False)
    assert {path.name for path in tmp_path.iterdir()} == {"alice.pem"}


@pytest.mark.long
@pytest.mark.skipif(find_keytool() is None, reason="needs Java's keytool")
def test_files__java_reads_them_and_a_true_jks_is_read(tmp_path: Path) -> None:
    files = CertificateFolder(tmp_path, AUTHORITY)
    files.add_user("alice")
    made = {path.name: path for path in files.add_jks()}
    assert made.keys() == {"alice.jks", "truststore.jks"}
    data = made["alice.jks"].read_bytes()
    assert data[:4] == b"\xfe\xed\xfe\xed"
    alice = read_keystore(data, JKS, STORE_PASSWORD)
    assert alice.certificate.subject.rfc4514_string() == "CN=alice"
    trusted = read_truststore(made["truststore.jks"].read_bytes(), JKS, STORE_PASSWORD)
    assert trusted == [AUTHORITY.certificate]
    with pytest.raises(KeystoreError, match="password is wrong"):
        read_keystore(data, JKS, "no")
    listed = subprocess.run(
        ["keytool", "-list", "-keystore", files.truststore, "-storepass", STORE_PASSWORD],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "trustedCertEntry" in listed.stdout
