"""Every command and every test that the documents show is run, and prints the output shown.

Owns: running the ```console and ```python blocks of README.md and of docs/.  Never: corrects a
document; checks links (test_docs_pages.py does).

A console block is one session: `$ command` lines in order in a directory with topology.yaml in it,
`&` at the end for the background (ready at its first line). All blocks of a tutorial are one
session. Each command must end with exit code 0, or with what `echo $?` under it shows, and print
the lines shown under it in this order. Numbers may differ, so may who leads what: lines are
compared by their first words with digits left out. Other printed lines are ignored.
A python block with a test in it is given to pytest.  A yaml or python block that begins with its
name in a comment is there as a file, and so are the scenarios and examples of this repository.
`<!-- not run: reason -->` before a block leaves it out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from _pytest.mark import ParameterSet

from tests.docs_pages import ROOT, documents, fenced
from tests.warm_pytest import WarmPytest

EXTRAS = ("aiokafka",)
"""Libraries that an example may show although not every machine has them."""
PYTEST = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
"""Options without which a start takes longer."""
WARM = pytest.mark.xdist_group("warm pytest")
"""Of tests that start pytest, so that they share a process that has imported it."""
EXAMPLES = ROOT / "examples"
NAMED = re.compile(r"# (\S+\.(?:yaml|py|ini))\n")
TEST = re.compile(r"^def test_", re.M)
COMMAND_TIMEOUT_S = 160
COMPARED_CHARS = 30


class Shown(NamedTuple):
    command: str
    output: list[str]


def session(block: str) -> list[Shown]:
    shown: list[Shown] = []
    for line in block.replace("\\\n", " ").splitlines():
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
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kcluster "$@"\n')
    shim.chmod(0o755)
    with tempfile.TemporaryDirectory(prefix="kc", dir="/tmp") as runtime:
        environment = {
            **os.environ,
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "cluster"),
            "PYTHONHASHSEED": "0",  # or pytest starts again
            "PYTHONUNBUFFERED": "1",
            "XDG_RUNTIME_DIR": runtime,
        }
        environment.pop("KCLUSTER_NAME", None)
        yield tmp_path, environment


@pytest.fixture(scope="module")
def warm_pytest() -> Iterator[WarmPytest]:
    with closing(WarmPytest()) as warm:
        yield warm


def console_sessions() -> Iterator[ParameterSet]:
    for document in documents():
        shown = [one for one in fenced(document) if one.language == "console" and not one.not_run]
        if document.startswith("docs/tutorials/"):
            texts = {shown[0].line: "".join(one.text for one in shown)} if shown else {}
        else:
            texts = {one.line: one.text for one in shown}
        for line, text in texts.items():
            # One after the other, those that show a cluster on Kafka's own port.
            marks = [pytest.mark.xdist_group("port 9092")] if "127.0.0.1:9092" in text else []
            if "$ pytest " in text:
                marks.append(WARM)
            yield pytest.param(document, text, id=f"{document}:{line}", marks=marks)


def python_tests() -> Iterator[ParameterSet]:
    for document in documents():
        for block in fenced(document):
            if block.language == "python" and TEST.search(block.text) and not block.not_run:
                identity = f"{document}:{block.line}"
                yield pytest.param(document, block.text, id=identity, marks=WARM)


def test_docs__each_console_and_python_block_is_run_or_says_why_not() -> None:
    idle = [
        f"{document}:{block.line}"
        for document in documents()
        for block in fenced(document)
        if block.language == "python" and not TEST.search(block.text) and not block.not_run
        if not NAMED.match(block.text)  # a file of the console blocks
    ]
    assert idle == []
    assert list(console_sessions())
    assert list(python_tests())


def write_named_files(document: str, directory: Path) -> None:
    for block in fenced(document):
        named = NAMED.match(block.text)
        if named is not None and not named[1].startswith("examples/"):
            (directory / named[1]).write_text(block.text, encoding="utf-8")


@pytest.mark.long
@pytest.mark.clients
@pytest.mark.timeout_s(400)
@pytest.mark.parametrize(("document", "text"), list(console_sessions()))
def test_docs__a_console_session_prints_the_output_shown(
    place: tuple[Path, dict[str, str]], warm_pytest: WarmPytest, document: str, text: str
) -> None:
    directory, environment = place
    write_named_files(document, directory)
    (directory / "scenarios").symlink_to(ROOT / "scenarios")
    shutil.copytree(EXAMPLES, directory / "examples", ignore=shutil.ignore_patterns(".*", "__*"))
    background: list[subprocess.Popen[str]] = []
    shown = session(text)
    code = 0
    try:
        for (command, output), following in zip(shown, [*shown[1:], None], strict=True):
            if command == "echo $?":
                assert output == [str(code)], f"{document}: exit code {code}"
                continue
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
                printed, code = [process.stdout.readline()], 0
            elif command.startswith("pytest "):
                code, whole = warm_pytest.run(
                    [*PYTEST, *shlex.split(command)[1:]], directory, environment
                )
                printed = whole.splitlines()
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
                code = ended.returncode
            story = "\n".join((f"{document}: {command}", *printed))
            if following is None or following.command != "echo $?":
                assert code == 0, story
            lacking = missing(output, printed)
            assert not lacking, f"lacks {lacking[0]!r}\n{story}"
    finally:
        for process in background:
            process.terminate()
            process.communicate(timeout=10)


@pytest.mark.long
@pytest.mark.clients
@pytest.mark.timeout_s(200)
@pytest.mark.parametrize(("document", "block"), list(python_tests()))
def test_docs__a_python_example_passes(
    place: tuple[Path, dict[str, str]], warm_pytest: WarmPytest, document: str, block: str
) -> None:
    directory, environment = place
    for extra in EXTRAS:
        if f"from {extra} " in block:
            pytest.importorskip(extra)
    (directory / "test_example.py").write_text(block, encoding="utf-8")
    code, printed = warm_pytest.run([*PYTEST, "-q", "test_example.py"], directory, environment)
    assert code == 0, f"{document}:\n{printed}"


def test_docs__a_block_of_an_example_is_a_part_of_it() -> None:
    for document in documents():
        for block in fenced(document):
            head, _, shown = block.text.partition("\n")
            if head.startswith("# examples/"):
                whole = (ROOT / head.removeprefix("# ")).read_text(encoding="utf-8")
                assert shown in whole, f"{document}:{block.line}"


def test_missing__a_line_that_was_not_printed_is_found() -> None:
    printed = ["ready in 0.1 s", "broker 2 is down"]
    assert missing(["ready in 0.3 s", "broker 1 is down"], printed) == []
    assert missing(["broker 1 is up"], printed) == ["broker 1 is up"]
    assert missing(["broker 1 is down", "ready in 1 s"], printed) == ["ready in 1 s"]
