"""Authorization in topology files: ACLs, super users, and every problem with its place."""

from __future__ import annotations

import pytest

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.scenario.recorded import topology_values
from kcluster.security.acls import Acl
from kcluster.security.authorizer import STANDARD_AUTHORIZER
from tests.rig.secured import acl, deny

NAME = "authorizer.class.name"


def acls_of(text: str) -> tuple[Acl, ...]:
    topology = Topology.parse(f"brokers: 1\nsecurity: {{acls: [{text}]}}")
    assert topology.config == {NAME: STANDARD_AUTHORIZER}
    return topology.security.authorization.acls


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("{allow: alice, to: read, topic: orders}", [acl("alice", "read", topic="orders")]),
        ("{allow: User:alice, to: all, topic: '*'}", [acl("alice", "all", topic="*")]),
        ("{deny: '*', to: read, topic: 'pay-*'}", [deny("*", "read", topic="pay-*")]),
        (
            "{allow: alice, to: read, group: g, from: 10.0.0.5}",
            [acl("alice", "read", group="g", host="10.0.0.5")],
        ),
        ("{allow: 'CN=a,O=b', to: describe, cluster: true}", [
            acl("CN=a,O=b", "describe", cluster=True),
        ]),
        (
            "{allow: [a, b], to: [read, describe], topic: [x, 'y*']}",
            [
                acl(user, operation, topic=topic)
                for user in "ab"
                for operation in ("read", "describe")
                for topic in ("x", "y*")
            ],
        ),
        (
            "{allow: a, to: read, topic: t, group: g}",
            [acl("a", "read", topic="t"), acl("a", "read", group="g")],
        ),
        (
            "{allow: a, to: write, transactional_id: 'tx-*'}",
            [acl("a", "write", transactional_id="tx-*")],
        ),
        (
            "{allow: a, to: read, topic: t}, {allow: a, to: [read, read], topic: t}",
            [acl("a", "read", topic="t")],
        ),
    ],
)  # fmt: skip
def test_acls__are_kafkas_in_few_words(written: str, read: list[Acl]) -> None:
    assert list(acls_of(written)) == read


@pytest.mark.parametrize(
    ("security", "config"),
    [
        ("{}", {}),
        ("{authorizer: true}", {NAME: STANDARD_AUTHORIZER}),
        ("{authorizer: false}", {}),
        ("{super_users: [admin, User:b]}", {
            NAME: STANDARD_AUTHORIZER, "super.users": "User:admin;User:b",
        }),
        ("{super_users: admin, authorizer: false}", {"super.users": "User:admin"}),
    ],
)  # fmt: skip
def test_authorizer__is_implied_and_stands_for_kafkas_configs(
    security: str, config: dict[str, str]
) -> None:
    assert Topology.parse(f"brokers: 1\nsecurity: {security}").config == config


def test_authorizer__by_kafkas_names() -> None:
    config = {
        NAME: STANDARD_AUTHORIZER,
        "super.users": "User:admin",
        "allow.everyone.if.no.acl.found": "true",
    }
    settings = Topology.of(brokers=1, config=config).broker_config(1)
    assert settings.authorizer_class_name == STANDARD_AUTHORIZER
    assert (settings.super_users, settings.allow_everyone_if_no_acl_found) == ("User:admin", True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("acls: [{allow: a, to: raed, topic: t}]", "did you mean read?"),
        ("acls: [{allow: a, deny: b, to: read, topic: t}]", "says both allow and deny"),
        ("acls: [{to: read, topic: t}]", "it needs allow, or deny"),
        ("acls: [{allow: a, topic: t}]", "to: missing"),
        ("acls: [{allow: a, to: read}]", "names no resource: topic, group, transactional_id"),
        ("acls: [{allow: a, to: read, cluster: false}]", "names no resource"),
        ("acls: [{allow: a, to: read, topics: t}]", "did you mean topic?"),
        ("acls: [{allow: a, to: write, group: g}]", "write does not apply to a group"),
        ("acls: [{allow: a, to: read, topic: t, from: localhost}]", "localhost is no IP address"),
        ("acls: [alice]", "it must be a mapping"),
        ("acls: alice", "it must be a list"),
        ("{acls: [{allow: a, to: read, topic: t}], authorizer: false}", "needs an authorizer"),
        ("authoriser: true", "did you mean authorizer?"),
        ("super_users: {a: b}", "super_users"),
    ],
)
def test_a_wrong_topology__says_what_was_meant(text: str, problem: str) -> None:
    inner = text if text.startswith("{") else f"{{{text}}}"
    with pytest.raises(TopologyError) as raised:
        Topology.parse(f"brokers: 1\nsecurity: {inner}")
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({NAME: "com.example.Mine"}, "the one authorizer here is org.apache.kafka"),
        ({"super.users": "User:a;bob"}, "principals are written as User:bob"),
    ],
)
def test_a_wrong_config__is_refused(config: dict[str, str], problem: str) -> None:
    with pytest.raises(TopologyError, match=problem):
        Topology.of(brokers=1, config=config)


def test_acls__are_in_a_recorded_scenario() -> None:
    text = """
    brokers: 1
    security:
      acls:
        - {allow: alice, to: [read, write], topic: [orders, 'pay*', '*']}
        - {deny: '*', to: all, group: g, from: 10.0.0.5}
        - {allow: alice, to: describe, cluster: true}
    """
    topology = Topology.parse(text)
    again = Topology.of(**topology_values(topology))
    assert again.security.authorization.acls == topology.security.authorization.acls
    assert again.config == topology.config
