"""Kafka's own tools and Java clients by TLS, with a password, a token or a certificate: users and
ACLs are administered by tools, and a leader dies under producers of each login.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kcluster import Cluster
from kcluster.config.topology.model import Topology
from tests.compat.kafka_tools.conftest import CONFIGS, TOOLS, TOPICS, ToolHost, java, missing
from tests.compat.kafka_tools.test_programs import events
from tests.compat.programs.processes import Program, committed_values, ends, has_reached, wait_until
from tests.foreign_clients.secured import USERS, listener_of, secured, settings

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.timeout_s(180),
    pytest.mark.xdist_group("kafka programs"),  # a JVM or more at a time
]

ACLS = f"{TOOLS}.AclCommand"
TOKENS = f"{TOOLS}.DelegationTokenCommand"
PRODUCE = f"{TOOLS}.ConsoleProducer"
CONSUME = f"{TOOLS}.consumer.ConsoleConsumer"
SENT = 50
LIMIT_S = 60

RunAs = Callable[..., str]


def properties(cluster: Cluster, user: str, path: Path, **more: object) -> Path:
    """A file for `--command-config`."""
    lines = {**settings(cluster, "java", user), **more}
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return path


@pytest.fixture
def administered() -> Iterator[Cluster]:
    if reason := missing():
        pytest.skip(reason)
    topology = Topology.of(
        brokers=3,
        profile="fast",
        listeners={"PASSWORD": {"protocol": "SASL_SSL"}},
        security={"tls": "auto", "users": {"admin": "admin-secret"}, "super_users": ["admin"]},
        config={
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "delegation.token.secret.key": "of-the-test",
        },
    )
    with Cluster(topology) as cluster:
        yield cluster


@pytest.fixture
def run_as(administered: Cluster, tmp_path: Path) -> Iterator[RunAs]:
    """Run a tool with the settings in a file; returns its output if it ended with this code."""
    host = ToolHost(tmp_path)

    def run(config: Path, tool: str, *arguments: str, text: str = "", code: int = 0) -> str:
        words = ("--bootstrap-server", administered.bootstrap, "--command-config", str(config))
        ended, printed = host.run(tool, (*words, *arguments), text)
        assert ended == code, printed
        return printed

    yield run
    host.close()


def test_tools__make_a_user_give_it_rights_and_take_them(
    administered: Cluster, run_as: RunAs, tmp_path: Path
) -> None:
    path = tmp_path / "admin.properties"
    admin = properties(administered, "admin", path)
    text = path.read_text().replace("admin-secret", "bob-secret").replace("admin", "bob")
    bob = tmp_path / "bob.properties"
    bob.write_text(text)
    user = ("--entity-type", "users", "--entity-name", "bob")
    password = "SCRAM-SHA-512=[iterations=4096,password=bob-secret]"
    run_as(admin, CONFIGS, *user, "--alter", "--add-config", password)
    assert "SCRAM-SHA-512=iterations=4096" in run_as(admin, CONFIGS, *user, "--describe")
    run_as(admin, TOPICS, "--create", "--topic", "orders", "--partitions", "1")
    assert "orders" not in run_as(bob, TOPICS, "--list")
    refused = run_as(bob, PRODUCE, "--topic", "orders", "--sync", text="one\n", code=1)
    assert "TopicAuthorizationException" in refused
    to_bob = ("--allow-principal", "User:bob", "--topic", "orders")
    run_as(admin, ACLS, "--add", "--force", *to_bob, "--producer")
    run_as(admin, ACLS, "--add", "--force", *to_bob, "--consumer", "--group", "bobs")
    listed = run_as(admin, ACLS, "--list", "--topic", "orders")
    assert "principal=User:bob, host=*, operation=WRITE, permissionType=ALLOW" in listed
    run_as(bob, PRODUCE, "--topic", "orders", "--sync", text="one\ntwo\n")
    group = ("--group", "bobs", "--from-beginning", "--max-messages", "2")
    read = run_as(bob, CONSUME, "--topic", "orders", *group)
    assert [line for line in read.splitlines() if line in ("one", "two")] == ["one", "two"]
    run_as(admin, ACLS, "--remove", "--force", *to_bob, "--producer")
    assert "operation=WRITE" not in run_as(admin, ACLS, "--list", "--topic", "orders")
    refused = run_as(bob, PRODUCE, "--topic", "orders", "--sync", text="three\n", code=1)
    # With no topic left to write to, a producer gets no id.
    assert "ClusterAuthorizationException" in refused
    run_as(admin, CONFIGS, *user, "--alter", "--delete-config", "SCRAM-SHA-512")
    gone = run_as(bob, TOPICS, "--list", code=1)
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in gone


def test_tools__a_delegation_token_logs_in_until_it_expires(
    administered: Cluster, run_as: RunAs, tmp_path: Path
) -> None:
    path = tmp_path / "admin.properties"
    admin = properties(administered, "admin", path)
    made = run_as(admin, TOKENS, "--create", "--max-life-time-period", "-1")
    row = made.splitlines()[-1].split()
    key, secret = row[0], row[1]
    mine = ("--describe", "--owner-principal", "User:admin")  # without an owner it names none
    assert key in run_as(admin, TOKENS, *mine)
    by_token = tmp_path / "token.properties"
    login = f'username="{key}" password="{secret}" tokenauth="true"'
    text = path.read_text().replace('username="admin" password="admin-secret"', login)
    by_token.write_text(text)
    run_as(by_token, TOPICS, "--create", "--topic", "by-token", "--partitions", "1")
    run_as(admin, TOKENS, "--renew", "--hmac", secret, "--renew-time-period", "-1")
    run_as(admin, TOKENS, "--expire", "--hmac", secret, "--expiry-time-period", "-1")
    assert key not in run_as(admin, TOKENS, *mine)
    gone = run_as(by_token, TOPICS, "--list", code=1)
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in gone


def test_java__a_leader_dies_under_a_producer_of_each_login(tmp_path: Path) -> None:
    """The producers send until they are stopped, so that each of them has its part of the story."""
    if reason := missing():
        pytest.skip(reason)
    with Cluster(secured(("orders",), {})) as cluster, ExitStack() as stack:
        producers = []
        for user in USERS:
            path = tmp_path / f"{user}.properties"
            patient = {"retries": 2**31 - 1, "retry.backoff.ms": 20}
            command = java(
                f"{TOOLS}.VerifiableProducer",
                *("--topic", f"{user}-orders", "--acks", -1, "--throughput", 100),
                *("--command-config", properties(cluster, user, path, **patient)),
                *("--bootstrap-server", cluster.bootstrap_of(listener_of(user))),
            )
            producers.append(stack.enter_context(Program(command, tmp_path)))

        def all_reach(count: int) -> None:
            topics = [f"{user}-orders" for user in USERS]
            wait_until(
                lambda: all(has_reached(cluster, topic, 1, count) for topic in topics),
                f"{count} of each topic",
                producers,
            )

        all_reach(SENT)
        cluster.start(cluster.kill(1))
        all_reach(max(ends(cluster, f"{user}-orders", 1) for user in USERS) + SENT)
        for user, producer in zip(USERS, producers, strict=True):
            producer.stop()
            producer.wait(LIMIT_S, codes=(143,))
            acked = {int(event["value"]) for event in events(producer, "producer_send_success")}
            read = [
                int(value) for value in committed_values(cluster.bootstrap, f"{user}-orders", 1)
            ]
            assert len(read) == len(set(read)) >= 2 * SENT
            assert acked <= set(read)
            assert len(acked) >= 2 * SENT
