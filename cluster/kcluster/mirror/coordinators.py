"""Waiting until the coordinators of a real Kafka serve.

Owns: the questions by which a coordinator shows that it does.  Never: joins a group, begins a
transaction.  Kafka: FindCoordinator, which creates the coordinators' topics.

A simulated cluster creates these topics in no time.  A real one takes seconds, in which a scenario
would already play its steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import gevent
from msgspec import Struct

from kcluster.mirror.connection import NoAnswer
from kcluster.mirror.driver import KafkaDriver
from kcluster.mirror.requests import NodeRequests
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

LIMIT_S: Final = 60.0
RETRY_S: Final = 0.2
_GROUP: Final = 0
_TRANSACTION: Final = 1
"""Kafka: FindCoordinatorRequest.CoordinatorType."""
_NOT_YET: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


class Coordinated(Struct, frozen=True):
    """What clients will ask coordinators about."""

    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()


def await_coordinators(driver: KafkaDriver, wanted: Coordinated) -> None:
    """Wait until the coordinators of all of these have loaded, at most LIMIT_S.  Called in a
    greenlet of the driver."""
    nodes = {broker: driver.requests(broker) for broker in driver.real.broker_ids}
    try:
        with gevent.Timeout(LIMIT_S, exception=False):
            _await(nodes, _GROUP, wanted.groups)
            _await(nodes, _TRANSACTION, wanted.transactional_ids)
    finally:
        for node in nodes.values():
            node.close()


def _await(nodes: dict[int, NodeRequests], kind: int, keys: Iterable[str]) -> None:
    for key in keys:
        while not _serves(nodes, kind, key):
            gevent.sleep(RETRY_S)


def _serves(nodes: dict[int, NodeRequests], kind: int, key: str) -> bool:
    """Whether the coordinator of a key has loaded."""
    first = next(iter(nodes.values()))
    ask = m.FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
    try:
        found = first.ask(ask, m.FindCoordinatorResponse).coordinators[0]
        if found.error_code:
            return False
        return _error(nodes[found.node_id], kind, key) not in _NOT_YET
    except NoAnswer:
        return False


def _error(node: NodeRequests, kind: int, key: str) -> int:
    """The error with which a coordinator answers; one of _NOT_YET while it loads."""
    if kind == _GROUP:
        groups = node.ask(m.DescribeGroupsRequest(groups=[key]), m.DescribeGroupsResponse).groups
        return int(groups[0].error_code)
    asked = m.DescribeTransactionsRequest(transactional_ids=[key])
    states = node.ask(asked, m.DescribeTransactionsResponse).transaction_states
    return int(states[0].error_code)
