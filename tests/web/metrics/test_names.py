"""Metrics under Kafka's names: what alerts are written on."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from kcluster.security.sasl.plain import PlainClient
from kcluster.web.metrics.names import METRICS
from tests.rig.byte_worlds import LiveSocket
from tests.rig.logins import SaslLine
from tests.rig.patience import PATIENCE_S
from tests.web.api.test_evidence import send
from tests.web.api_client import Api

Values = dict[str, dict[tuple[tuple[str, str], ...], float]]


def metrics(api: Api, path: str) -> Values:
    """Values by name and labels besides cluster."""
    text = api.ask("GET", f"{path}/metrics").body.decode()
    found: Values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {key: value for key, value in sample.labels.items() if key != "cluster"}
            found.setdefault(sample.name, {})[tuple(sorted(labels.items()))] = sample.value
    return found


def total(found: Values, name: str) -> float:
    return sum(found[name].values())


def test_metrics__a_leader_dies(api: Api, cluster: str) -> None:
    send(api, cluster, 10)
    before = metrics(api, cluster)
    assert total(before, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert total(before, "kafka_server_replicamanager_underreplicatedpartitions") == 0
    written = before["kafka_server_brokertopicmetrics_messagesin_total"]
    of_topic = {labels: count for labels, count in written.items() if ("topic", "orders") in labels}
    assert sum(of_topic.values()) == 10
    assert sum(written.values()) == 20  # an empty topic stands for all
    killed = api.ok("POST", f"{cluster}/actions", {"kill": "leader(orders-0)"})["brokers"][0]
    after = metrics(api, cluster)
    assert after["kcluster_broker_up"][("broker", str(killed)),] == 0
    assert after["kafka_controller_kafkacontroller_fencedbrokercount"][("broker", "3000"),] == 1
    assert total(after, "kafka_server_replicamanager_underreplicatedpartitions") == 1
    assert total(after, "kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    assert not any(
        ("broker", str(killed)) in x for x in after["kafka_server_kafkaserver_brokerstate"]
    )


def test_metrics__of_requests(api: Api, cluster: str) -> None:
    send(api, cluster, 3)
    found = metrics(api, cluster)
    requests = found["kafka_network_requestmetrics_requests_total"]
    produced = sum(count for labels, count in requests.items() if ("request", "Produce") in labels)
    assert 1 <= produced <= 3
    times = found["kafka_network_requestmetrics_totaltimems"]
    assert any(("quantile", "0.99") in x and ("request", "Produce") in x for x in times)
    errors = found["kafka_network_requestmetrics_errors_total"]
    assert any(("error", "NONE") in labels for labels in errors)


def test_metrics__of_all_clusters_and_by_their_names(api: Api, cluster: str) -> None:
    text = api.ask("GET", "/metrics").body.decode()
    assert f'cluster="{cluster.rpartition("/")[2]}"' in text
    names = {family.name for family in text_string_to_metric_families(text)}
    assert names <= set(METRICS)
    of_security = ("kafka_server_socket_server_metrics_", "kafka_server_plugins_")
    silent = {name for name in METRICS if not name.startswith(of_security)} - names
    assert silent <= {
        "kafka_network_requestmetrics_errors",
        "kafka_network_requestmetrics_requests",
        "kafka_network_requestmetrics_totaltimems",
        "kafka_server_brokertopicmetrics_totalfetchrequests",
        "kafka_server_brokertopicmetrics_totalproducerequests",
        "kafka_server_replicafetchermanager_maxlag",
        "kcluster_transactional_ids",
    }


def test_metrics__of_logins(api: Api) -> None:
    """Kafka 4.4.0 counts the same: one login of a user, and each attempt that fails."""
    topology = {
        "brokers": 1,
        "profile": "fast",
        "listeners": {"CLIENT": {"protocol": "SASL_PLAINTEXT"}},
        "security": {
            "users": {"alice": {"password": "a", "mechanisms": ["PLAIN"]}},
            "acls": [{"allow": "alice", "to": "read", "topic": "orders"}],
        },
        "topics": {"orders": {}},
    }
    cluster = api.cluster(topology=topology)
    host, _, port = api.ok("GET", cluster)["bootstrap"].partition(":")
    for password in ("a", "wrong", "wrong"):
        with LiveSocket((host, int(port)), PATIENCE_S) as sock:
            SaslLine(sock).login(PlainClient("alice", password))
    found = metrics(api, cluster)
    prefix, at = "kafka_server_socket_server_metrics", (("broker", "1"), ("listener", "CLIENT"))
    assert found[f"{prefix}_successful_authentication_total"] == {at: 1}
    assert found[f"{prefix}_failed_authentication_total"] == {at: 2}
    assert found[f"{prefix}_successful_reauthentication_total"] == {at: 0}
    assert found[f"{prefix}_expired_connections_killed_count"] == {at: 0}
    assert total(found, "kafka_server_plugins_acls_total_count") == 1
    api.ask("DELETE", cluster)


def test_metrics__without_security_there_are_none_of_it(api: Api, cluster: str) -> None:
    found = metrics(api, cluster)
    of_security = ("kafka_server_socket_server_metrics_", "kafka_server_plugins_")
    assert not any(name.startswith(of_security) for name in found)
