"""The record of who is logged in where, and of what expires."""

from __future__ import annotations

from kcluster.runs.moment import moment_of
from tests.runs.page.stage import failover_run, secured_result


def test_logins__a_broker_without_the_new_password_refuses_whom_others_serve() -> None:
    record = secured_result().record()
    logins = moment_of(record, record.info.began_ms + 1_100).logins
    of_reader = {row.broker: (row.connections > 0, row.problem) for row in logins}
    assert of_reader[1] == (False, "wrong password")
    assert of_reader[2] == (True, "")
    assert {(row.client, row.principal) for row in logins} == {
        ("shop", "User:shop"),
        ("reader", "User:billing"),
    }
    row = next(row for row in logins if row.client == "shop")
    assert (row.listener, row.mechanism) == ("CLIENT", "SCRAM-SHA-512")
    assert row.ends_ms == row.at_ms + 5_000


def test_logins__end_with_their_connections() -> None:
    """The consumer ends with the error, and closes what it has elsewhere."""
    record = secured_result().record()
    newest = {row.broker: row.connections for row in record.logins if row.client == "reader"}
    assert newest == {1: 0, 2: 0, 3: 0}


def test_credentials__a_certificate_that_is_replaced() -> None:
    record = secured_result().record()
    began_ms = record.info.began_ms
    states = [
        (row.at_ms - began_ms, row.state) for row in record.credentials if row.owner == "broker 2"
    ]
    assert states[:2] == [(0, "valid"), (1_200, "expired")]
    assert all(row.kind == "certificate" for row in record.credentials)


def test_states__without_security_there_are_none() -> None:
    record = failover_run()
    assert not record.logins
    assert not record.credentials
