"""Which methods of a cluster's handle a failed test's report notes: those that do something."""

from __future__ import annotations

import inspect

import pytest

from kcluster.testing import callers
from kcluster.testing.handles import TestedCluster, VirtualCluster
from kcluster.testing.world_handle import TestedWorldCluster

LINKS = {"bridge", "cut", "heal", "isolate", "limit_bandwidth", "lose", "slow_link"}
RULES = {"add_rule", "clear_rules", "remove_rule"}
BROKERS = {"kill", "pause", "restart", "resume", "rolling_restart", "start"}
TOPICS = {"advertise", "create_topic", "delete_topic", "elect", "move"}
BOTH = {"do", "perform", "perform_action", "repair", *LINKS, *RULES, *BROKERS, *TOPICS}
LIVE = {"new_topic", "play"}
VIRTUAL = {"consumer", "producer"}


@pytest.mark.parametrize(
    ("handle", "noted"),
    [
        (TestedCluster, BOTH | LIVE),
        (TestedWorldCluster, BOTH | LIVE | {"calm"}),
        (VirtualCluster, BOTH | VIRTUAL),
    ],
)
def test_callers__methods_that_only_read_or_wait_are_not_noted(
    handle: type, noted: set[str]
) -> None:
    wrapped = {
        name
        for name, method in inspect.getmembers(handle, inspect.isfunction)
        if method.__code__.co_filename == callers.__file__
    }
    assert {name for name in wrapped if not name.startswith("_")} == noted
