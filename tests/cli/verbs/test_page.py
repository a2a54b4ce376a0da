"""The page of a cluster that was started from the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli.conftest import Up


def test_page__by_up_and_by_its_verb(
    start_up: Callable[..., Up], kcluster: Callable[..., tuple[int, str, str]]
) -> None:
    started = start_up("--page", "--json", "--name", "shown", "--base-port", "0")
    page = ""
    while not page:
        page = json.loads(started.line()).get("page", "")
    assert kcluster("page", "--name", "shown") == (0, f"{page}\n", "")
    with urlopen(page) as answer:
        assert b"<html" in answer.read()
    base, _, token = page.replace("/page/", "/v1/clusters/").partition("?token=")
    with urlopen(Request(base, headers={"Authorization": f"Bearer {token}"})) as answer:
        assert json.loads(answer.read())["name"] == "shown"
    with pytest.raises(HTTPError, match="401"):
        urlopen(base)


def test_up__demo_starts_a_producer_and_a_consumer(
    start_up: Callable[..., Up], kcluster: Callable[..., tuple[int, str, str]]
) -> None:
    start_up("--demo", "--brokers", "1", "--name", "demo", "--base-port", "0").line()
    wanted = "high_watermark(orders-0) >= 2"
    assert kcluster("wait", wanted, "--name", "demo")[0] == 0


def test_up__open_shows_the_page_in_a_browser_that_stays(
    start_up: Callable[..., Up],
    kcluster: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A browser that runs until it is closed holds up neither the cluster nor its events."""
    shown, closed, browser = tmp_path / "shown", tmp_path / "closed", tmp_path / "browser"
    os.mkfifo(shown)
    os.mkfifo(closed)
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {shown}\nread line < {closed}\n')
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(browser))
    started = start_up("--open", "--json", "--name", "opened", "--base-port", "0")
    page = json.loads(started.line())["page"]
    assert shown.read_text() == page
    assert kcluster("topic", "create", "orders", "--name", "opened")[0] == 0
    while "topic_created" not in started.line():
        pass
    closed.write_text("\n")
    code, _, err = started.stop()
    assert (code, err) == (0, "")


def test_up__open_says_that_there_is_no_browser(
    start_up: Callable[..., Up], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", "false")
    monkeypatch.setenv("PATH", "/nowhere")
    started = start_up("--open", "--json", "--name", "blind", "--base-port", "0")
    assert "page" in json.loads(started.line())
    assert started.process.stderr is not None
    problem = "no browser was found; open the page's address yourself"
    assert started.process.stderr.readline() == f"kcluster: {problem}\n"


def test_up__open_needs_a_record(kcluster: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = kcluster("up", "--open", "--no-record")
    assert (code, err) == (2, "kcluster: --open shows the record; leave out --no-record\n")
