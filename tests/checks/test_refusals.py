"""Clients that security refused, in a verdict: failed, not lost, and by whose right."""

from __future__ import annotations

from kcluster.checks.refusals import find_refused, refused_line
from kcluster.checks.verdict_facts import VALID
from kcluster.clients.ledger import ClientError, Ledger, Outcome, SentRecord
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

SECURED = """\
topology:
  brokers: 3
  profile: fast
  listeners: {CLIENT: {protocol: SASL_PLAINTEXT}}
  security: {users: {alice: {password: a, mechanisms: [SCRAM-SHA-256]}, bob: b}}
  topics: {orders: {replication_factor: 3}}
workload:
  producers: {topic: orders, name: shop, rate: 100/s, user: bob}
  consumers: {topics: orders, name: late, group: g, user: alice, start: 500ms}
duration: 1s
steps:
  - {at: 100ms, password: {user: alice, to: changed}}
"""


def test_refused__a_login_with_an_old_password_is_a_line_and_no_loss() -> None:
    result = run_scenario(Scenario.parse(SECURED), "virtual", 1)
    verdict = result.verdict
    assert verdict.outcome == VALID, verdict.lines()
    (refused,) = verdict.refused
    assert (refused.client, refused.principal, refused.is_login) == ("late", "User:alice", True)
    line = refused_line(refused)
    assert line in verdict.lines()
    assert line == (
        "refused by security: late, User:alice could not log in (SASL_AUTHENTICATION_FAILED)"
    )
    assert not verdict.windows


def denied(error: str, api: str, partition: tuple[str, int] | None) -> Ledger:
    ledger = Ledger()
    ledger.principals["shop"] = "User:alice"
    ledger.errors += [ClientError(at_ms, "shop", api, error, partition) for at_ms in (5, 9)]
    return ledger


def test_refused__a_right_is_named_by_its_operation_and_resource() -> None:
    ledger = denied("TOPIC_AUTHORIZATION_FAILED", "Produce", ("orders", 1))
    for topic in ("orders", "orders", "other"):
        send = SentRecord("shop", (topic, 0), b"", -1, True, Outcome.FAILED)
        send.error = "TOPIC_AUTHORIZATION_FAILED"
        ledger.sends.append(send)
    (refused,) = find_refused(ledger)
    assert (refused.count, refused.first_ms) == (2, 5)
    assert refused_line(refused) == (
        "refused by security: shop, User:alice may not WRITE topic orders, 2 records"
    )


def test_refused__groups_transactional_ids_and_the_cluster() -> None:
    lines = []
    for error, api in (
        ("GROUP_AUTHORIZATION_FAILED", "JoinGroup"),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "InitProducerId"),
        ("CLUSTER_AUTHORIZATION_FAILED", "InitProducerId"),
        ("TOPIC_AUTHORIZATION_FAILED", "Fetch"),
    ):
        (refused,) = find_refused(denied(error, api, None))
        lines.append(refused_line(refused).removeprefix("refused by security: shop, User:alice "))
    assert lines == [
        "may not READ group",
        "may not WRITE transactional id",
        "may not IDEMPOTENT_WRITE cluster",
        "may not READ topic",
    ]
