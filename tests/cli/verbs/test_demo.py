"""The demo from the command line: real clients, every step, the count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import kcluster
from kcluster.extras import how_to_install

CODE = str(Path(kcluster.__file__).parents[1])
"""The build under test: the source, or the modules compiled from it."""
Verb = Callable[..., tuple[int, str, str]]

# kafka-python reads its schemas in a way that Python 3.11 warns about, in importlib's name.
pytestmark = pytest.mark.filterwarnings("ignore:.*Use files:DeprecationWarning")


def demo(directory: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run the demo in a separate process; returns the exit code and everything it printed."""
    ended = subprocess.run(
        [sys.executable, "-m", "kcluster", "demo", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": CODE, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=50,
        check=False,
    )
    return ended.returncode, ended.stdout


class Run(NamedTuple):
    """A demo that ended.  `temporary`: the directory of its temporary files."""

    code: int
    out: str
    temporary: Path


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"line {number} of the text\n" for number in range(3_000)))
    return str(path)


@pytest.fixture(scope="module")
def without_java(tmp_path_factory: pytest.TempPathFactory, text: str) -> Run:
    """The demo with Spark, which is not there."""
    temporary = tmp_path_factory.mktemp("temporary")
    environment = {"PATH": "", "JAVA_HOME": "", "TMPDIR": str(temporary)}
    return Run(*demo(temporary, text, "--spark", **environment), temporary)


@pytest.mark.clients
@pytest.mark.long
@pytest.mark.xdist_group("a demo without java")
def test_demo__loses_no_acked_record_when_the_leader_dies(without_java: Run) -> None:
    out = without_java.out
    assert without_java.code == 0, out
    assert "sent 3,000  acked 3,000  read 3,000  lost 0  duplicated 0" in out
    labels = [line.split()[2] for line in out.splitlines() if line.lstrip().startswith("+")]
    for label in ("killed", "noticed", "elected", "refused", "refreshed", "acked", "restarted"):
        assert label in labels
    assert labels.index("killed") < labels.index("noticed") <= labels.index("elected")
    assert labels.index("restarted") < labels.index("refused")
    assert "NOT_LEADER_OR_FOLLOWER" in out


@pytest.mark.clients
@pytest.mark.slow
def test_demo__json_has_timeline_and_count(tmp_path: Path, text: str) -> None:
    code, out = demo(tmp_path, text, "--json")
    result = json.loads(out)
    assert code == 0, out
    assert result["nothing_acked_was_lost"] is True
    assert result["count"]["acked"] == 3_000
    assert result["timeline"][0]["label"] == "killed"


@pytest.mark.clients
@pytest.mark.slow
def test_demo__quiet_is_the_answer_alone(tmp_path: Path, text: str) -> None:
    assert demo(tmp_path, text, "--quiet") == (0, "nothing acked was lost\n")


@pytest.mark.clients
@pytest.mark.long
@pytest.mark.xdist_group("a demo without java")
def test_demo__without_java_reports_how_to_install_it_and_skips_spark(without_java: Run) -> None:
    out = without_java.out
    assert without_java.code == 0, out
    assert list(without_java.temporary.iterdir()) == []
    assert out.endswith("set JAVA_HOME if it is elsewhere\n")
    assert out.splitlines()[-2] == "nothing acked was lost"
    assert out.splitlines()[-1].startswith("without Spark: no Java found: ")


@pytest.mark.clients
def test_demo__a_text_too_short_or_missing_is_refused(kcluster: Verb, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("one\ntwo\n")
    code, _, err = kcluster("demo", str(tmp_path / "short.txt"))
    assert code == 2
    assert "has 2 lines; the demo needs at least 8" in err
    code, _, err = kcluster("demo", str(tmp_path / "none.txt"))
    assert (code, "No such file" in err) == (2, True)


@pytest.mark.clients
def test_demo__one_broker_is_not_enough(kcluster: Verb, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("brokers: 1\n")
    code, _, err = kcluster("demo", "--topology", str(tmp_path / "one.yaml"))
    assert code == 2
    assert "at least two" in err


def test_demo__without_kafka_python_reports_how_to_install_it(
    kcluster: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kafka", None)
    code, _, err = kcluster("demo")
    assert code == 1
    assert err.count("\n") == 1
    assert how_to_install("clients") in err
