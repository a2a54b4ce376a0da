"""A server per module, and a cluster per test where one is needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.api import Api, serving


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with serving() as (_, api):
        yield api


@pytest.fixture
def cluster(api: Api) -> Iterator[str]:
    """The path of a cluster of this test."""
    path = api.cluster()
    yield path
    api.ask("DELETE", path)
