"""Java's keytool, which alone reads and writes stores of type JKS.

Owns: the conversion of a store to another type.  Never: shows a password to other users of the
machine: keytool takes it from its environment.  Kafka: no counterpart.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

_LIMIT_S: Final = 60


def find_keytool() -> str | None:
    """The path of keytool; None where Java is not installed."""
    return shutil.which("keytool")


def convert_store(
    keytool: str, source: Path, source_type: str, target_type: str, password: str
) -> Path | str:
    """Convert a store to a file beside it, named after its type and readable only by its user.
    Returns the file, or keytool's error message.  It takes half a second."""
    target = source.with_suffix(f".{target_type}")
    target.unlink(missing_ok=True)
    command = [keytool, "-importkeystore", "-noprompt"]
    command += ["-srckeystore", str(source), "-srcstoretype", source_type]
    command += ["-srcstorepass:env", "STORE_PASSWORD"]
    command += ["-destkeystore", str(target), "-deststoretype", target_type]
    command += ["-deststorepass:env", "STORE_PASSWORD"]
    environment = os.environ | {"STORE_PASSWORD": password, "LC_ALL": "C"}
    done = subprocess.run(
        command, env=environment, capture_output=True, timeout=_LIMIT_S, check=False
    )
    if done.returncode:
        return (done.stdout + done.stderr).decode(errors="replace").strip()
    target.chmod(0o600)
    return target
