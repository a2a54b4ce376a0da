"""The copiers by TLS, each with another login, under ACLs that let each come to its own topics,
group and transactional id only: exactly once while leaders and coordinators are killed."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from kcluster.handle.cluster import Cluster
from kcluster.security.sasl.mechanisms import OAUTHBEARER
from kcluster.security.sasl.oauthbearer import unsecured_token
from tests.compat.programs.processes import (
    Program,
    break_along,
    check_exactly_once,
    fill,
    wait_committed,
)
from tests.compat.programs.test_copiers import command
from tests.foreign_clients.secured import USERS, listener_of, secured
from tests.rig.patience import PATIENCE_S

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.timeout_s(500),
    pytest.mark.xdist_group("kafka programs"),
]

COUNT = 300
TOKEN_LIFETIME_MS = 3_600_000


def login_of(cluster: Cluster, user: str) -> dict[str, str]:
    """The environment of a copier."""
    login = cluster.access.login(user, listener_of(user))
    assert login.files is not None
    password = login.password
    if login.mechanism == OAUTHBEARER:
        password = unsecured_token(user, round(time.time() * 1000), TOKEN_LIFETIME_MS)
    return {
        **os.environ,
        "KAFKA_CA": login.files.authority,
        "KAFKA_CERTIFICATE": login.files.certificate or "",
        "KAFKA_MECHANISM": login.mechanism or "",
        "KAFKA_USER": user,
        "KAFKA_PASSWORD": password,
    }


@pytest.mark.parametrize("program", ["franz-go classic", "franz-go consumer", "kafkajs"])
def test_copier__of_each_login_copies_exactly_once_while_brokers_die(
    program: str, tmp_path: Path
) -> None:
    words, more = command(program)
    topology = secured(("source", "sink"), {})
    with Cluster(topology) as cluster, ExitStack() as stack:
        copiers: list[Program] = []
        for user in USERS:
            fill(cluster.bootstrap, f"{user}-source", COUNT)
            bootstrap = cluster.bootstrap_of(listener_of(user))
            arguments = (bootstrap, f"{user}-source", f"{user}-sink", user, user, *more)
            one = Program([*words, *arguments], tmp_path, login_of(cluster, user))
            copiers.append(stack.enter_context(one))
        for user in USERS[::2]:
            kills = [(1, f"leader({user}-sink-0)"), (COUNT // 2, f"txn {user}")]
            break_along(cluster, copiers, f"{user}-sink", 1, kills)
        for user, copier in zip(USERS, copiers, strict=True):
            wait_committed(cluster, user, f"{user}-source", 1, COUNT)
            copier.stop()
            copier.wait(PATIENCE_S)
            check_exactly_once(cluster.bootstrap, f"{user}-sink", 1, COUNT)
