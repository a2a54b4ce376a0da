"""Every command that the documents show is run, and prints the output shown.

Owns: running the ```console and ```python blocks of README.md and of the guides.  Never: corrects a
document.

A console block is one session: `$ command` lines in order in a directory with topology.yaml in it,
`&` at the end for the background (ready at its first line). Each must end with exit code 0, and
print the lines shown under it in this order. Numbers may differ, so may who leads what: lines are
compared by their first words with digits left out. Other printed lines are ignored.
A python block with a test in it is given to pytest.  A yaml block that begins with its name in a
comment is there as a file, and so are the scenarios of this repository.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "docs/reference/scenarios.md", "docs/how-to/pytest.md")
COMMAND_TIMEOUT_S = 50
COMPARED_CHARS = 30


class Shown(NamedTuple):
    command: str
    output: list[str]


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def session(block: str) -> list[Shown]:
    shown: list[Shown] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            shown.append(Shown(line[2:], []))
        else:
            shown[-1].output.append(line)
    return shown


def shape(line: str) -> str:
    """What must be the same in every run."""
    return " ".join(re.sub(r"[+-]?\d[\d.,]*", "#", line).split())[:COMPARED_CHARS]


def missing(shown: list[str], printed: list[str]) -> list[str]:
    """Lines of `shown` that `printed` does not have, each after the one before."""
    rest = iter([shape(line) for line in printed])
    return [line for line in shown if line.strip() and shape(line) not in rest]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A directory with the topology on free ports, and an environment with `kcluster` in it."""
    topology = (ROOT / "topology.yaml").read_text(encoding="utf-8")
    (tmp_path / "topology.yaml").write_text(re.sub(r"port: \d+", "port: 0", topology))
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin" / "kcluster"
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kcluster.cli.main "$@"\n')
    shim.chmod(0o755)
    with tempfile.TemporaryDirectory(prefix="kc", dir="/tmp") as runtime:
        environment = {
            **os.environ,
            "PATH": f"{shim.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "cluster"),
            "PYTHONUNBUFFERED": "1",
            "XDG_RUNTIME_DIR": runtime,
        }
        environment.pop("KCLUSTER_NAME", None)
        yield tmp_path, environment


def console_blocks() -> list[tuple[str, str]]:
    return [(document, block) for document in DOCUMENTS for block in blocks(document, "console")]


def python_blocks() -> list[tuple[str, str]]:
    return [(document, block) for document in DOCUMENTS for block in blocks(document, "python")]


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.timeout_s(120)
@pytest.mark.parametrize(("document", "block"), console_blocks())
def test_docs__a_console_session_prints_the_output_shown(
    place: tuple[Path, dict[str, str]], document: str, block: str
) -> None:
    directory, environment = place
    for text in blocks(document, "yaml"):
        if (named := re.match(r"# (\S+\.yaml)\n", text)) is not None:
            (directory / named[1]).write_text(text, encoding="utf-8")
    (directory / "scenarios").symlink_to(ROOT / "scenarios")
    background: list[subprocess.Popen[str]] = []
    try:
        for command, output in session(block):
            if command.endswith("&"):
                process = subprocess.Popen(
                    shlex.split(command.removesuffix("&")),
                    cwd=directory,
                    env=environment,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                background.append(process)
                assert process.stdout is not None
                printed = [process.stdout.readline()]
            else:
                ended = subprocess.run(
                    shlex.split(command),
                    cwd=directory,
                    env=environment,
                    text=True,
                    check=False,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    timeout=COMMAND_TIMEOUT_S,
                )
                printed = ended.stdout.splitlines()
                assert ended.returncode == 0, f"{document}: {command}\n{ended.stdout}"
            lacking = missing(output, printed)
            assert not lacking, f"{document}: {command}\nlacks {lacking[0]!r} in\n" + "\n".join(
                printed
            )
    finally:
        for process in background:
            process.terminate()
            process.communicate(timeout=10)


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.timeout_s(60)
@pytest.mark.parametrize(("document", "block"), python_blocks())
def test_docs__a_python_example_passes(
    place: tuple[Path, dict[str, str]], document: str, block: str
) -> None:
    directory, environment = place
    (directory / "test_example.py").write_text(block, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_example.py"],
        cwd=directory,
        env=environment,
        text=True,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=COMMAND_TIMEOUT_S,
    )
    assert ended.returncode == 0, f"{document}:\n{ended.stdout}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_docs__links_to_files_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    targets = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in targets if not (ROOT / document).parent.joinpath(link).exists()] == []


def test_missing__a_line_that_was_not_printed_is_found() -> None:
    printed = ["ready in 0.1 s", "broker 2 is down"]
    assert missing(["ready in 0.3 s", "broker 1 is down"], printed) == []
    assert missing(["broker 1 is up"], printed) == ["broker 1 is up"]
    assert missing(["broker 1 is down", "ready in 1 s"], printed) == ["ready in 1 s"]


def test_docs__every_path_of_the_architecture_exists() -> None:
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "cluster" / "kcluster"
    paths = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.(?:py|txt)))`", text)
    inside = {path.rstrip("/") for path in paths}
    rooms = {path.name for path in source.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert rooms <= inside, f"not named: {rooms - inside}"
    lost = [p for p in sorted(inside) if "/" in p and not (source / p).exists()]
    assert [p for p in lost if not (ROOT / p).exists()] == []
