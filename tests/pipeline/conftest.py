"""The cluster of a module of Spark's tests.

Owns: repairing it after each test.  Never: opens a Spark session (tests/conftest.py does).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kcluster.pipeline.source.loading import close_clients

if TYPE_CHECKING:
    from kcluster.testing.handles import TestedCluster


@pytest.fixture
def cluster(kafka_cluster_module: TestedCluster) -> Iterator[TestedCluster]:
    """The cluster of the test's module; it is repaired after each test."""
    yield kafka_cluster_module
    close_clients()  # of tests that do here what a worker of Spark does
    kafka_cluster_module.repair()
