"""Real clients by TLS, with a password, a token or a certificate, while a leader dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

pytest.importorskip("aiokafka")

from kcluster.handle.cluster import Cluster
from tests.foreign_clients.aiokafka_clients import AiokafkaLoad, aiokafka_read
from tests.foreign_clients.conftest import SESSIONS
from tests.foreign_clients.real_clients import (
    ConfluentLoad,
    Load,
    PythonLoad,
    Read,
    check,
    confluent_read,
    python_read,
)
from tests.foreign_clients.secured import USERS, secured, settings

Reader = Callable[[str, dict[str, Any]], list[Read]]
LIBRARIES: dict[str, tuple[type[Load], Reader]] = {
    "librdkafka": (ConfluentLoad, lambda topic, more: confluent_read("", topic, **more)),
    "kafka-python": (PythonLoad, lambda topic, more: python_read("", topic, **more)),
    "aiokafka": (AiokafkaLoad, lambda topic, more: aiokafka_read(topic, **more)),
}


@pytest.fixture
def own() -> Iterator[Cluster]:
    with Cluster(secured(("orders",), SESSIONS)) as running:
        yield running


@pytest.mark.parametrize("library", LIBRARIES)
def test_secured__a_leader_dies_and_no_user_loses_anything(own: Cluster, library: str) -> None:
    make, read = LIBRARIES[library]
    logins = {f"{user}-orders": settings(own, library, user) for user in USERS}
    with ExitStack() as stack:
        loads = [
            stack.enter_context(make("", topic, acks="all", enable_idempotence=True, **login))
            for topic, login in logins.items()
        ]
        for load in loads:
            load.wait_acked(50)
        own.kill(1)
        for load in loads:
            load.wait_acked(50)
    for load in loads:
        assert not load.failed
        check(load, read(load.topic, logins[load.topic]))
