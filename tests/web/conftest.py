"""A server per module, and a cluster per test where one is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.api_client import Api, serving


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Below this directory the server may write."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def api(runs: Path) -> Iterator[Api]:
    with serving(runs=runs) as (_, api):
        yield api


@pytest.fixture
def cluster(api: Api) -> Iterator[str]:
    """The path of a cluster of this test."""
    path = api.cluster()
    yield path
    api.ask("DELETE", path)
