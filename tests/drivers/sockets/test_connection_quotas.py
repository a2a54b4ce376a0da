"""Limits on the rate of connections, at a listener on sockets and in memory.

With two windows of a second, as many as the limit may come at once; the next has to wait for a
tenth of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.drivers.sockets.test_dynamic_limits import alter, is_served, receive, send
from tests.rig.byte_worlds import KINDS, ByteWorld
from tests.rig.patience import PATIENCE_S

LIMIT = 10
A = m.AlterClientQuotasRequest


class Guests:
    """Connections that are kept open."""

    def __init__(self, world: ByteWorld, stack: ExitStack) -> None:
        self.cluster: Any = world.cluster
        self.listener = world.listener()
        self._world = world
        self._stack = stack

    def connect(self) -> Any:
        return self._stack.enter_context(self._world.connect())

    def now_s(self) -> float:
        """The cluster's clock."""
        now_s: float = self.cluster.driver.clock_ms() / 1000
        return now_s

    def until(self, condition: Callable[[], bool], what: str) -> None:
        self.cluster.wait_until(condition, PATIENCE_S, what)

    def until_served(self, count: int) -> None:
        self.until(lambda: len(self.listener.connections) == count, "connections")


Opens = Callable[..., AbstractContextManager[Guests]]


@pytest.fixture(params=KINDS)
def guests(request: pytest.FixtureRequest) -> Opens:
    @contextmanager
    def opened(**configs: str) -> Iterator[Guests]:
        config = {"quota.window.num": "2"}
        config |= {name.replace("_", "."): value for name, value in configs.items()}
        world = KINDS[request.param](Topology.of(brokers=1, config=config))
        with ExitStack() as stack:
            yield Guests(world, stack)
            assert not world.cluster.driver.bugs
        world.finish()

    return opened


def set_quota(sock: Any, rate: float) -> None:
    operation = A.OpData("connection_creation_rate", rate)
    entry = A.EntryData([A.EntityData("ip", "localhost")], [operation])
    send(sock, ApiKey.ALTER_CLIENT_QUOTAS, 1, A([entry]))
    (result,) = receive(sock, ApiKey.ALTER_CLIENT_QUOTAS, 1).entries
    assert not result.error_code, result


def test_rate__a_connection_above_the_rate_delays_those_behind_it(guests: Opens) -> None:
    with guests(max_connection_creation_rate=str(LIMIT)) as here:
        began = here.now_s()
        socks = [here.connect() for _ in range(LIMIT + 2)]
        assert all(is_served(sock) for sock in socks)
        # At once, had there been no limit: the clock of the broker counts whole ms.
        assert here.now_s() - began > 0.15


def test_rate__the_broker_may_stop_while_a_connection_waits(guests: Opens) -> None:
    with guests(max_connection_creation_rate="1") as here:
        first, waiting = here.connect(), here.connect()
        assert is_served(first)
        here.until(lambda: here.listener.is_held, "waiting connection")
        here.cluster.kill(1, wait=False)
        assert [sock.recv(1) for sock in (first, waiting)] == [b"", b""]


def test_address__connections_above_the_rate_are_closed_unanswered(guests: Opens) -> None:
    with guests() as here:
        admin = here.connect()
        set_quota(admin, LIMIT)
        served = [here.connect() for _ in range(LIMIT)]
        refused = [here.connect() for _ in range(2)]
        assert all(is_served(sock) for sock in served)
        here.until_served(LIMIT + 1)
        began = here.now_s()
        assert [sock.recv(1) for sock in refused] == [b"", b""]
        assert here.now_s() - began > 0.05
        here.until_served(LIMIT + 1)
        assert is_served(here.connect())


def test_connections__a_lowered_limit_closes_the_idlest(guests: Opens) -> None:
    with guests(connections_max_idle_ms="2000") as here:
        idlest, second, admin = here.connect(), here.connect(), here.connect()
        for sock in (idlest, second, admin):
            assert is_served(sock)
        alter(admin, "max.connections", "2")
        assert idlest.recv(1) == b""
        assert is_served(second)
