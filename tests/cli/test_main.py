"""The quick parser of `kcluster up` agrees with click on every line that it accepts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
import pytest

from kcluster import __version__, build
from kcluster.cli.up_options import UpOptions, quick_up_options
from kcluster.cli.verbs.up import command

Verb = Callable[..., tuple[int, str, str]]


def click_up_options(words: list[str]) -> dict[str, Any] | None:
    """The options that click parses; None if it refuses them or does something else (--help)."""
    try:
        return command.make_context("up", list(words)).params
    except (click.ClickException, click.exceptions.Exit):
        return None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "topology.yaml",
        "--brokers 5",
        "--brokers=5 --base-port 19092",
        "--base-port 0 --json --trace-requests",
        "my.yaml --profile fast --name lab",
        "--name=lab my.yaml",
        "-q my.yaml",
        "--quiet --profile slow",
        "--brokers 0",
        "--brokers many",
        "--base-port 65536",
        "--base-port -1",
        "--profile slow",
        "--profile",
        "--brokers",
        "one.yaml two.yaml",
        "--help",
        "-h",
        "--nope",
        "--json=yes",
        "--brok 3",
        "-- --odd-name.yaml",
        "--brokers ٣",
        "--brokers 007",
        "--brokers +3",
    ],
)
def test_quick_up_options__equal_clicks_or_are_none(line: str) -> None:
    words = line.split()
    quick = quick_up_options(words)
    if quick is not None:
        assert quick._asdict() == click_up_options(words)


def test_quick_up_options__plain_lines_do_not_need_click() -> None:
    words = ["my.yaml", "--profile", "fast"]
    assert quick_up_options(words) == UpOptions(file="my.yaml", profile="fast")


def test_kcluster__suggests_the_nearest_verb(kcluster: Verb) -> None:
    code, _, err = kcluster("stauts")
    assert code == 2
    assert "No verb 'stauts'. Did you mean status?" in err


@pytest.mark.parametrize("word", ["version", "--version", "-V"])
def test_kcluster__reports_its_version_and_build(kcluster: Verb, word: str) -> None:
    assert kcluster(word) == (0, f"kcluster {__version__} ({build()})\n", "")


def test_kcluster__runs_as_a_module() -> None:
    command = [sys.executable, "-m", "kcluster", "kill", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: kcluster kill ")


def test_kcluster__help_names_every_verb(kcluster: Verb) -> None:
    code, out, _ = kcluster("--help")
    assert code == 0
    for verb in ("up", "status", "kill", "start", "resume", "elect", "events", "down", "demo"):
        assert f"\n  {verb} " in out


def test_kcluster__help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from kcluster.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print({'gevent', 'msgspec', 'yaml', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("words", [(), ("pipeline",), ("scenario",)])
def test_kcluster__every_verb_of_an_overview_has_help(kcluster: Verb, words: Sequence[str]) -> None:
    code, out, _ = kcluster(*words, "--help")
    assert code == 0
    verbs = [line.split()[0] for line in out.splitlines() if re.match(r"  [a-z]+  +\S", line)]
    assert len(verbs) >= 2
    for verb in verbs:
        assert kcluster(*words, verb, "--help")[0] == 0


@pytest.mark.parametrize(
    "verb", ["up", "status", "kill", "start", "resume", "elect", "events", "down", "demo"]
)
def test_kcluster__every_verb_has_help(kcluster: Verb, verb: str) -> None:
    code, out, _ = kcluster(verb, "--help")
    assert code == 0
    assert f"Usage: kcluster {verb}" in out


@pytest.mark.parametrize(
    "words", [("status",), ("kill", "1"), ("start", "1"), ("elect", "orders-0"), ("down",)]
)
def test_kcluster__without_a_cluster_reports_how_to_start_one(
    kcluster: Verb, base: object, words: tuple[str, ...]
) -> None:
    code, out, err = kcluster(*words)
    assert (code, out) == (1, "")
    assert err == "kcluster: no cluster is running; start one: kcluster up\n"


def test_kcluster__json_refusals_are_json(kcluster: Verb, base: object) -> None:
    code, _, err = kcluster("status", "--json")
    assert code == 1
    assert err == '{"error": "no cluster is running; start one: kcluster up"}\n'
