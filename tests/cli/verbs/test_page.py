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
