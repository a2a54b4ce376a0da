"""`kcluster learn --page` from start to end: answers by pipe, terminal and page."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from click.testing import CliRunner

from kcluster.cli.click_tools import kcluster
from kcluster.cli.work.lesson_page import Inputs

SCENARIO = """\
# Broker 1 leads.
topology: {brokers: 1, profile: fast, topics: {orders: {}}}
duration: 200ms
"""
LESSON = """\
title: Who leads
intro: Who leads?
scenario: scenario.yaml
parts:
  - title: First
    until: 50ms
    ask:
      question: Who?
      choices:
        - {text: B, when: leader(orders-0) = 1}
        - {text: C, when: leader(orders-0) = 2}
  - {title: Last, until: 100ms}
"""


@pytest.fixture(autouse=True)
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scenario.yaml").write_text(SCENARIO, "utf-8")
    Path("lesson.yaml").write_text(LESSON, "utf-8")


@pytest.mark.parametrize("typed", ["1\n", "1", ""], ids=["line", "end of line missing", "nothing"])
def test_page__answers_of_a_pipe(typed: str) -> None:
    result = CliRunner().invoke(kcluster, ["learn", "lesson.yaml", "--page"], input=typed)
    assert result.exit_code == 0, result.output
    assert "/page/lesson?token=" in result.output
    assert ("You answered" in result.output) == bool(typed)
    assert "## 2. Last" in result.output


class Class:
    """A class before the page of a lesson, with a terminal of its own."""

    def __init__(self) -> None:
        self.terminal, other = pty.openpty()
        command = [sys.executable, "-m", "kcluster", "learn", "lesson.yaml", "--page"]
        self.process = subprocess.Popen(
            command, stdin=other, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        os.close(other)
        assert self.process.stdout is not None
        self.stdout = self.process.stdout
        found = re.search(r"(http://\S+)/page/(\S+)\?token=(\S+)", self.stdout.readline())
        assert found is not None
        self._url = f"{found[1]}/v1/clusters/{found[2]}"
        self._headers = {"Authorization": f"Bearer {found[3]}", "Content-Type": "application/json"}

    def ask(self, path: str, body: object = None) -> HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}/{path}", data, self._headers)
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=30)
        return answer

    def waits(self) -> Iterator[str]:
        """What the lesson waits for, from the page's stream, until the stream ends."""
        is_card = False
        for line in self.ask("stream"):
            if line.startswith(b"event:"):
                is_card = line.split() == [b"event:", b"lesson"]
            elif line.startswith(b"data:") and is_card:
                card: dict[str, Any] = json.loads(line.removeprefix(b"data:"))
                if card["awaits"]:
                    yield card["awaits"]

    def hang_up(self) -> None:
        if self.terminal >= 0:
            os.close(self.terminal)
        self.terminal = -1

    def rest(self) -> str:
        return self.process.communicate(timeout=30)[0]


@pytest.fixture
def watching() -> Iterator[Class]:
    watching = Class()
    yield watching
    watching.process.kill()
    watching.process.communicate()
    watching.hang_up()


def test_page__the_class_answers_on_the_page(watching: Class) -> None:
    waits = watching.waits()
    assert next(waits) == "answer"
    watching.ask("lesson", {"choice": 0})
    with pytest.raises(HTTPError, match="409"):
        watching.ask("lesson", {"choice": 1})
    for wait in waits:
        assert wait == "go_on"
        watching.ask("lesson", {"choice": None})
    output = watching.rest()
    assert watching.process.returncode == 0, output
    assert "You answered" in output


def test_page__the_terminal_answers_and_is_interrupted(watching: Class) -> None:
    waits = watching.waits()
    assert next(waits) == "answer"
    os.write(watching.terminal, b"1\n")
    assert next(waits) == "go_on"
    watching.process.send_signal(signal.SIGINT)
    output = watching.rest()
    assert watching.process.returncode == 130, output
    assert "Traceback" not in output


def test_page__the_terminal_is_closed(watching: Class) -> None:
    next(watching.waits())
    watching.hang_up()
    output = watching.rest()
    assert watching.process.returncode == 0, output
    assert "## 2. Last" in output


def test_inputs__the_first_answer_to_a_question_counts() -> None:
    inputs = Inputs()
    inputs.ask()
    inputs.put("1")
    inputs.put("2")
    assert inputs.next() == "1"
    inputs.ask()
    inputs.put("3")
    assert inputs.next() == "3", "not the second answer to the first question"


@pytest.mark.parametrize("host", ["10.0.0.7:80", "http://here", "two words", "::1"])
def test_page__a_host_for_phones_is_a_name_or_an_address(host: str) -> None:
    result = CliRunner().invoke(kcluster, ["learn", "1", "--page", "--vote-host", host])
    assert result.exit_code == 2
    assert "a name or an IPv4 address, without a port, is needed" in result.output
