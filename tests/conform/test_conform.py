"""A conformance run against a live cluster of ours: what it reports, what it leaves behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kcluster import rule
from kcluster.config.topology.model import Topology
from kcluster.conform.cluster import NotConformable, facts_of, mechanisms_of
from kcluster.conform.findings import Result, grouped, untried_by_reason
from kcluster.conform.references import NEWEST
from kcluster.conform.session import PREFIX, ConformSession, ConformTask, tasks_of
from kcluster.conform.users import NO_USERS, users_of
from kcluster.handle.cluster import Cluster
from kcluster.principals import SecurityProtocol
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.proxy.upstream import Upstream, UpstreamSecurity
from kcluster.security.authorizer import STANDARD_AUTHORIZER
from kcluster.security.client_access import ClientAccess

SCRAM = "SCRAM-SHA-256"
CONFIG = {"num.partitions": 4, "group.initial.rebalance.delay.ms": 0}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=3, profile="kafka", config=CONFIG)) as running:
        yield running


@pytest.fixture(scope="module")
def single() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=1, profile="kafka", config=CONFIG)) as running:
        yield running


def asked(cluster: Cluster, *apis: ApiKey, cases: str = "") -> list[Result]:
    """The results of the cases of these APIs whose names contain `cases`."""
    tasks = tasks_of(NEWEST, frozenset(apis))
    found = [one for one in tasks if cases in one.name and "conversation" not in one.name]
    return run_of(cluster, found)


def run_of(cluster: Cluster, tasks: list[ConformTask]) -> list[Result]:
    host, _, port = cluster.bootstrap.split(",")[0].rpartition(":")
    upstream = Upstream(((host, int(port)),), UpstreamSecurity())
    results: list[Result] = []
    session = ConformSession(upstream, facts_of(upstream), NEWEST, "test", results.append)
    session.run(tasks)
    assert session.clean_up() == []
    return results


def names_of_the_run(cluster: Cluster) -> list[str]:
    return [name for name in cluster.topics() if name.startswith(PREFIX)]


def test_conform__a_cluster_that_answers_as_kafka_has_no_difference(cluster: Cluster) -> None:
    results = asked(cluster, ApiKey.LIST_OFFSETS, cases="list_offsets: e")
    assert sum(one.same for one in results) > 10
    assert [one for one in results if one.different] == []
    assert names_of_the_run(cluster) == []


def test_conform__a_lie_is_reported_by_api_and_field(cluster: Cluster) -> None:
    lie = rule(api="DescribeProducers", answer="POLICY_VIOLATION")
    name = cluster.add_rule(lie)
    try:
        results = asked(cluster, ApiKey.DESCRIBE_PRODUCERS, cases="producers: no producers")
    finally:
        cluster.remove_rule(name)
    found = {one.path: one for one in grouped(results)}["answer.topics[].partitions[].error_code"]
    assert (found.api, found.cluster) == ("DescribeProducers", "POLICY_VIOLATION")
    assert found.cases == ("producers: no producers",)
    assert not found.has_kafka, "Kafka has no error there"


def test_conform__what_would_change_the_cluster_is_not_tried(cluster: Cluster) -> None:
    results = asked(cluster, ApiKey.UNREGISTER_BROKER)
    assert results
    assert sum(one.same + one.different for one in results if "defaults" in one.case) == 0
    reasons = [one.reason for one in untried_by_reason(results)]
    assert "UnregisterBroker: it would change the cluster itself" in reasons


def test_conform__one_broker_is_enough_and_what_needs_three_is_not_tried(single: Cluster) -> None:
    results = asked(single, ApiKey.METADATA, cases="metadata: a")
    assert [one for one in results if one.different] == []
    assert sum(one.same for one in results) > 10
    results = asked(single, ApiKey.LIST_OFFSETS, cases="list_offsets: ")
    assert [one for one in results if one.different] == []
    reasons = [one.reason for one in untried_by_reason(results)]
    assert "it needs a cluster with three brokers" in reasons


def test_conform__after_an_interruption_nothing_is_left(cluster: Cluster) -> None:
    host, _, port = cluster.bootstrap.split(",")[0].rpartition(":")
    upstream = Upstream(((host, int(port)),), UpstreamSecurity())
    results: list[Result] = []

    def done(result: Result) -> None:
        results.append(result)
        if len(results) > 2:
            raise KeyboardInterrupt

    session = ConformSession(upstream, facts_of(upstream), NEWEST, "stopped", done)
    members = [one for one in tasks_of(NEWEST) if one.name.startswith("groups: heartbeat")]
    with pytest.raises(KeyboardInterrupt):
        session.run(members)
    assert len(results) == 3
    assert names_of_the_run(cluster), "there is something to delete"
    assert session.clean_up() == []
    assert names_of_the_run(cluster) == []


@pytest.fixture(scope="module")
def secured() -> Iterator[Upstream]:
    """The way to a cluster with logins and an authorizer, as its administrator."""
    topology = Topology.of(
        brokers=3,
        profile="kafka",
        listeners={"LOGIN": {"protocol": "SASL_PLAINTEXT"}},
        security={"users": {"root": {"password": "secret", "mechanisms": [SCRAM]}}},
        config={
            **CONFIG,
            "sasl.enabled.mechanisms": SCRAM,
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:root",
        },
    )
    login = ClientAccess("LOGIN", SecurityProtocol.SASL_PLAINTEXT, SCRAM, "root", "secret")
    with Cluster(topology) as running:
        host, _, port = running.bootstrap.split(",")[0].rpartition(":")
        yield Upstream(((host, int(port)),), UpstreamSecurity(login=login))


def asked_of_users(upstream: Upstream, *cases: str) -> list[Result]:
    """The results of these cases, for which the run makes users."""
    facts = facts_of(upstream)
    found = mechanisms_of(upstream)
    users = users_of(found, facts.versions, "pw", has_authorizer=facts.has_authorizer)
    results: list[Result] = []
    session = ConformSession(upstream, facts, NEWEST, "test", results.append, users)
    session.run([one for one in tasks_of(NEWEST) if one.name in cases])
    made = [one for one in users_at(upstream) if one.startswith(PREFIX)]
    assert made, "there is something to delete"
    assert session.clean_up() == []
    assert users_at(upstream) == ["root"]
    assert principals_at(upstream) == []
    return results


def users_at(upstream: Upstream) -> list[str]:
    with upstream.open() as administrator:
        answer = administrator.ask(m.DescribeUserScramCredentialsRequest(users=None))
    assert isinstance(answer, m.DescribeUserScramCredentialsResponse)
    return [one.user for one in answer.results]


def principals_at(upstream: Upstream) -> list[str]:
    """The principals that have ACLs."""
    with upstream.open() as administrator:
        answer = administrator.ask(m.DescribeAclsRequest(1, None, 1, None, None, 1, 1))
    assert isinstance(answer, m.DescribeAclsResponse)
    return [acl.principal for resource in answer.resources for acl in resource.acls]


def test_conform__users_with_rights_are_made_and_deleted(secured: Upstream) -> None:
    results = asked_of_users(
        secured,
        "some_rights: decided: all denied",
        "some_rights: decided: everyone",
        "some_rights: delete offsets",
        "rights: create topics",  # one of its names is not of the run
        "rights: list offsets",  # asked by each role, in its first and last version
        "rights: the cluster",  # names the ports of the listener
        "rights: tokens of nobody",
        "wire: describe_user_scram_credentials: defaults",  # lists all users
    )
    assert [one for one in results if one.different] == []
    assert sum(one.same for one in results) == 9
    assert {one.reason for one in untried_by_reason(results)} == {
        "CreateAcls: it would change the rights of others",
        "CreateTopics: it names what is not of this run",
        "it needs a cluster with delegation tokens",
    }


def test_conform__a_cluster_without_logins_is_not_asked_about_users(single: Cluster) -> None:
    tasks = [one for one in tasks_of(NEWEST) if "rights" in one.name]
    (reason,) = untried_by_reason(run_of(single, tasks))
    assert reason.reason == NO_USERS.reason


def test_conform__a_cluster_that_dies_is_reported() -> None:
    with Cluster(Topology.of(brokers=1, profile="kafka", config=CONFIG)) as running:
        host, _, port = running.bootstrap.rpartition(":")
        upstream = Upstream(((host, int(port)),), UpstreamSecurity())
        results: list[Result] = []

        def done(result: Result) -> None:
            if not results:
                killer = threading.Thread(target=running.close)
                killer.start()
                killer.join()
            results.append(result)

        session = ConformSession(upstream, facts_of(upstream), NEWEST, "dies", done)
        asked_of = [one for one in tasks_of(NEWEST) if one.name.startswith("groups: heartbeat")]
        with pytest.raises(NotConformable, match="does not answer any more, after groups:"):
            session.run(asked_of)
        assert session.clean_up()[0].endswith("closed")
