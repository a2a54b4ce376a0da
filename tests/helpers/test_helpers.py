"""The helpers for Java, Go and Node: their examples survive a leader's death, and explain a loss.

`make helpers` builds them; each is skipped where its toolchain is missing.  An example prints how
long its leader's death took.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.docs_pages import ROOT, fenced
from tests.web.api_client import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout_s(180)]

BUILT = ROOT / "build" / "helpers"
EXAMPLES = {
    "java": "java/example/src/test/java/example/FirstTest.java",
    "xml": "java/example/pom.xml",
    "go": "go/example/first_test.go",
    "text": "go/example/go.mod",
    "js": "node/example/first.test.js",
    "json": "node/example/package.json",
}
"""Where the first blocks of docs/how-to/other-languages.md come from, by their language."""
PROGRAM = Path(sys.executable).parent / "kcluster"
LIMIT_S = 150
WORDS = "leader's death"
"""What an example prints at the end of its first test."""


def run(command: Sequence[str | Path], cwd: Path, server: Mapping[str, str] = {}) -> None:
    """Run an example, with the environment that names a server, or it starts one itself."""
    own = {"KCLUSTER_COMMAND": str(PROGRAM)}
    clean = {name: text for name, text in os.environ.items() if not name.startswith("KCLUSTER_")}
    environment = clean | (dict(server) or own)
    ended = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    assert ended.returncode == 0, ended.stdout
    print(*(line for line in ended.stdout.splitlines() if WORDS in line), sep="\n")
    assert WORDS in ended.stdout, ended.stdout


def program(name: str, built: str) -> str:
    """The path of a program; skips if it, or what `make helpers` builds, is not there."""
    found = shutil.which(name)
    if found is None or not (BUILT / built).exists():
        pytest.skip(f"no {name}, or its helper is not built (make helpers builds it)")
    return found


def test_helpers__java_with_junit_and_javas_client() -> None:
    java = program("java", "java/.done")
    classes = BUILT / "java" / "example" / "target" / "test-classes"
    path = os.pathsep.join([f"{BUILT}/java/libs/*", str(classes)])
    launcher = "org.junit.platform.console.ConsoleLauncher"
    run(
        [java, "-XX:TieredStopAtLevel=1", "-cp", path, launcher, "execute",
         f"--scan-class-path={classes}", "--details=tree", "--disable-banner"],
        BUILT,
    )  # fmt: skip


def test_helpers__go_with_franz_go() -> None:
    if not (BUILT / "example.test").exists():
        pytest.skip("the Go helper is not built (make helpers builds it, with Go)")
    run([BUILT / "example.test", "-test.v"], BUILT)


def test_helpers__node_with_kafkajs() -> None:
    run([program("node", "node/.done"), "--test"], BUILT / "node" / "example")


def test_helpers__use_a_running_server_and_leave_nothing() -> None:
    node = program("node", "node/.done")
    with serving() as (server, api):
        named = {"KCLUSTER_URL": server.url, "KCLUSTER_TOKEN": server.token}
        run([node, "--test"], BUILT / "node" / "example", named)
        assert api.ok("GET", "/v1/clusters") == {"clusters": []}


@pytest.mark.parametrize("language", EXAMPLES)
def test_helpers__what_the_guide_shows_first_is_the_example_that_runs(language: str) -> None:
    shown = next(b for b in fenced("docs/how-to/other-languages.md") if b.language == language)
    assert shown.text in ROOT.joinpath("helpers", EXAMPLES[language]).read_text("utf-8")


def test_helpers__the_java_extension_can_be_installed_alone() -> None:
    project = ROOT.joinpath("helpers/java/junit5/pom.xml").read_text("utf-8")
    assert "<parent>" not in project
