"""What strangers have named does not steer the terminal that shows it, by any verb."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kcluster.plain_output import PlainOutput, escaped, styled
from tests.cli.conftest import CODE

EVIL = "\x1b]0;owned\x07\x1b[31m\x7f\x9b2J\u202e\u2066\r"
SHOWN = "\\u001b]0;owned\\u0007\\u001b[31m\\u007f\\u009b2J\\u202e\\u2066\\u000d"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders\t♛ ünïcode 日本\n", "orders\t♛ ünïcode 日本\n"),
        (EVIL, SHOWN),
        ("a\u2028b\u061c", "a\\u2028b\\u061c"),
    ],
)
def test_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_escaped__json_is_the_same_json() -> None:
    values = {"client": EVIL}
    assert json.loads(escaped(json.dumps(values, ensure_ascii=False))) == values


def test_output__own_colours_pass_and_stay_in_order() -> None:
    binary = io.BytesIO()
    output = PlainOutput(binary, "utf-8")
    print("a \x1b[1m", file=output)
    print("\x1b[1mb\x1b[0m", file=styled(output))
    print("c", file=output, flush=True)
    assert binary.getvalue() == b"a \\u001b[1m\n\x1b[1mb\x1b[0m\nc\n"


def run_kcluster(*words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "kcluster", *words],
        env={**os.environ, "PYTHONPATH": CODE},
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        check=False,
        timeout=30,
        **options,
    )


@pytest.fixture(scope="module")
def strangers_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a scenario with evil names of everything that may have one."""
    place = tmp_path_factory.mktemp("runs")
    scenario = place / "s.yaml"
    scenario.write_text(
        f"name: {json.dumps(EVIL)}\n"
        "topology: {brokers: 1, topics: {orders: {}}, profile: fast}\nduration: 2s\n"
        "workload: {producers: {topic: orders, rate: 5/s},"
        f" consumers: {{topics: orders, group: {json.dumps(EVIL)}}}}}\n"
    )
    done = run_kcluster("scenario", "run", str(scenario), "--out", str(place))
    assert done.returncode == 0, done
    assert not dangerous(done.stdout + done.stderr)
    return place / "latest"


def dangerous(shown: bytes) -> set[str]:
    """The characters of EVIL that are shown as they are."""
    return set(EVIL.replace("owned", "")) & set(shown.decode()) - set("]0;[31m2J")


@pytest.mark.parametrize("line", ["explain {}", "status --run {} --at 1s", "explain --html {}"])
def test_verb__shows_a_strangers_run(line: str, strangers_run: Path) -> None:
    done = run_kcluster(*line.format(strangers_run).split())
    assert done.returncode == 0, done
    assert not dangerous(done.stdout + done.stderr)


def test_verb__shows_a_strangers_error(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format": EVIL}))
    done = run_kcluster("explain", f"{tmp_path}")
    assert done.returncode == 2
    assert not dangerous(done.stderr)
