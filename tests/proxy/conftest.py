"""A proxy before three simulated brokers, which the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rig.proxied import Proxied, proxied


@pytest.fixture(scope="module")
def three() -> Iterator[Proxied]:
    with proxied(3) as found:
        found.upstream.create_topic("orders", partitions=3, replication_factor=3)
        yield found
