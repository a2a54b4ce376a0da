"""Actions of a security administrator, in virtual time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kcluster.actions.base import made
from kcluster.actions.security import ChangePassword
from kcluster.clients.ledger import Ledger
from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.settings import ProducerPlan
from kcluster.config.topology.client_access import access_of
from kcluster.node_ids import CONTROLLER_ID
from kcluster.operations.errors import ClusterError
from kcluster.scenario.perform import do
from tests.clients.worlds import started
from tests.rig.cluster import VirtualRig

REFUSED = "SASL_AUTHENTICATION_FAILED"


def secured() -> VirtualRig:
    return started(
        listeners={"CLIENT": {"protocol": "SASL_PLAINTEXT"}},
        security={"users": {"alice": {"password": "old", "mechanisms": ["SCRAM-SHA-256"]}}},
    )


def logs_in(driver: VirtualRig, password: str, user: str = "alice") -> bool:
    """Whether a new client is let in with this password."""
    known = access_of(driver.plan.topology)
    ledger = Ledger()
    access = replace(known, user=user, password=password)
    client = Producer(password, ledger, ProducerPlan(rate_per_s=100, count=1))
    driver.add_client(client, access)
    driver.run_for(1_000)
    assert client.is_done
    return not any(error.error == REFUSED for error in ledger.errors)


def test_password__the_new_one_counts_and_the_old_one_until_it_is_undone() -> None:
    driver = secured()
    assert logs_in(driver, "old")
    undo = do(driver, "password", user="alice", to="new")
    driver.run_for(100)
    assert not logs_in(driver, "old")
    assert logs_in(driver, "new")
    undo()
    driver.run_for(100)
    assert logs_in(driver, "old")


def test_password__a_user_is_added_and_removed_again() -> None:
    driver = secured()
    assert not logs_in(driver, "new", "bob")
    undo = do(driver, "password", user="bob", to="new")
    driver.run_for(100)
    assert logs_in(driver, "new", "bob")
    undo()
    driver.run_for(100)
    assert not logs_in(driver, "new", "bob")


def test_password__is_in_no_repr() -> None:
    assert "secret" not in repr(made("password", {"user": "alice", "to": "secret"}))
    assert ChangePassword.EXAMPLE


def test_password__a_broker_that_is_cut_off_knows_the_old_one() -> None:
    driver = secured()
    lagging, current = 1, 2
    driver.cut(lagging, CONTROLLER_ID)
    do(driver, "password", user="alice", to="new")
    driver.run_for(50)
    known = {
        node.node_id: node.image.scram_credentials["alice", 1].salt
        for node in driver.dispatcher.brokers()
    }
    assert known[lagging] != known[current]


ALICE_WRITES = {"allow": ("User:alice",), "to": ("write",), "topic": ("orders",)}


def known_acls(driver: VirtualRig) -> int:
    driver.run_for(100)
    return len(driver.verbs.settled.image.acls.by_id)


def test_acl__is_added_and_removed_again() -> None:
    driver = started(security={"authorizer": True, "super_users": ["ANONYMOUS"]})
    undo = driver.perform("acl", **ALICE_WRITES).undo
    assert known_acls(driver) == 1
    undo()
    assert known_acls(driver) == 0


def test_remove_acl__and_back() -> None:
    acls = [{"allow": "alice", "to": ["write", "read"], "topic": "orders"}]
    driver = started(security={"super_users": ["ANONYMOUS"], "acls": acls})
    assert known_acls(driver) == 2
    undo = driver.perform("remove_acl", **ALICE_WRITES).undo
    assert known_acls(driver) == 1
    undo()
    assert known_acls(driver) == 2
    driver.perform("remove_acl", **ALICE_WRITES)
    with pytest.raises(ClusterError, match="no such ACL"):
        driver.perform("remove_acl", **ALICE_WRITES)


def test_acl__needs_an_authorizer_and_one_permission() -> None:
    with pytest.raises(ClusterError, match="authorizer"):
        started().perform("acl", **ALICE_WRITES)
    with pytest.raises(ClusterError, match="does not apply to a topic"):
        made("acl", ALICE_WRITES | {"to": ("idempotent_write",)})
