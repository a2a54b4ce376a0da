"""The page of a cluster that was started from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
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


def test_up__open_needs_a_record(kcluster: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = kcluster("up", "--open", "--no-record")
    assert (code, err) == (2, "kcluster: --open shows the record; leave out --no-record\n")
