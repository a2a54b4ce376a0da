"""How an extra is installed depends on where kcluster came from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kcluster.extras import command

NEED_AN_EXTRA = ("kcluster.cli.mcp.server", "kcluster.cli.work.command_tls")
"""The modules of the command line that are imported only for what the extra is for."""
WITHOUT_EXTRAS = """
import importlib, pkgutil, runpy, sys
for name in ("cryptography", "jwt", "kafka", "confluent_kafka", "pyspark", "pyarrow", "scipy",
             "matplotlib", "mcp", "packaging", "edn_format"):
    sys.modules[name] = None
"""
IMPORT_ALL = """
import kcluster.cli
for module in pkgutil.walk_packages(kcluster.cli.__path__, "kcluster.cli."):
    if module.name not in sys.argv[1:]:
        importlib.import_module(module.name)
"""
RUN = "runpy.run_module('kcluster', run_name='__main__')"


def run_without_extras(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + code, *arguments], capture_output=True, text=True
    )


def test_extras__no_command_needs_one_to_start() -> None:
    run = run_without_extras(IMPORT_ALL, *NEED_AN_EXTRA)
    assert run.returncode == 0, run.stderr


def test_extras__a_command_that_needs_one_says_which(tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\n")
    proxy = ("proxy", "--bootstrap", "127.0.0.1:1", "--command-config", str(properties))
    run = run_without_extras(RUN, *proxy)
    assert run.returncode == 2
    assert f"{properties}:1:1: TLS needs the extra security: pip install" in run.stderr


def test_extras__the_command_names_the_place_of_the_installation(tmp_path: Path) -> None:
    checkout = tmp_path / "my checkout"
    checkout.mkdir()
    assert command("spark", checkout.as_uri()) == f"pip install '{checkout}[spark]'"
    assert command("spark", None) == "pip install 'kcluster-sim[spark]'"


def test_extras__a_place_that_is_gone_is_not_named(tmp_path: Path) -> None:
    anywhere = "pip install '.[spark]' in a checkout of kcluster"
    assert command("spark", (tmp_path / "gone").as_uri()) == anywhere
    assert command("spark", "https://example.org/kcluster.git") == anywhere
