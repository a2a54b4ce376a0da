"""Valid topologies from files, text and Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology, check_ports
from kcluster.config.topology.specs import (
    BrokerSpec,
    LinkSpec,
    NetworkSpec,
    TopicSpec,
    split_address,
)
from kcluster.principals import BrokerEndpoint

ROOT = Path(__file__).parents[3]


def test_topology__the_example_has_the_values_of_its_file() -> None:
    topology = Topology.load(ROOT / "topology.yaml")
    assert (topology.name, topology.host, topology.profile) == ("teaching", "127.0.0.1", "kafka")
    assert topology.brokers == (
        BrokerSpec(1, 9092, "a"),
        BrokerSpec(2, 9093, "b"),
        BrokerSpec(3, 9094, "c"),
    )
    assert topology.topics == {
        "orders": TopicSpec("orders", 6, 3, None, {"min.insync.replicas": "2"}),
        "audit": TopicSpec("audit", 2, 2, ((1, 2), (2, 3))),
    }
    assert topology.network == NetworkSpec(0)


def test_topology__a_number_of_brokers_is_enough() -> None:
    topology = Topology.parse("brokers: 3")
    assert [(spec.id, spec.port) for spec in topology.brokers] == [(1, 0), (2, 0), (3, 0)]
    assert (topology.host, topology.profile, topology.topics) == ("127.0.0.1", "kafka", {})


def test_topology__base_port_numbers_the_ports() -> None:
    topology = Topology.parse("brokers: 3\nbase_port: 9092")
    assert [spec.port for spec in topology.brokers] == [9092, 9093, 9094]


def test_topology__whole_example_of_every_key() -> None:
    topology = Topology.parse(
        """
        name: 2026
        host: 0.0.0.0
        profile: fast
        features: {transaction.version: 1, share_version: 0}
        config: {num.partitions: 2, default.replication.factor: 2, log.cleanup.policy: [compact]}
        brokers:
          - {id: 0, rack: no, advertised: "localhost:9093", config: {num.partitions: 5}}
          - {id: 7, port: 9094, rack: 1, advertised: "[::1]"}
        topics:
          a:
          b: {replication_factor: 1}
        network:
          default_latency_ms: 1
          links: [{between: [7, 0], latency_ms: 40}]
        """
    )
    assert topology.name == "2026"
    assert topology.features == {"transaction.version": 1, "share.version": 0}
    assert [spec.rack for spec in topology.brokers] == ["no", "1"]
    assert topology.brokers[0].endpoints("0.0.0.0", [50_000]) == (
        BrokerEndpoint("localhost", 9093),
    )
    assert topology.brokers[1].endpoints("0.0.0.0", [50_000]) == (BrokerEndpoint("::1", 50_000),)
    assert topology.topics == {"a": TopicSpec("a", 2, 2), "b": TopicSpec("b", 2, 1)}
    assert topology.network == NetworkSpec(1, (LinkSpec((7, 0), 40),))
    assert topology.broker_config(0).num_partitions == 5
    assert topology.broker_config(7).num_partitions == 2
    assert topology.broker_config(7).log_cleanup_policy == ("compact",)
    assert topology.broker_config(7).broker_session_timeout_ms == 90


def test_topology__the_file_overrides_the_program_s_defaults() -> None:
    follows = {"offsets.topic.replication.factor": 1, "num.partitions": 9}
    config = Topology.parse("{brokers: 1, config: {num.partitions: 2}}").broker_config(1, follows)
    assert (config.offsets_topic_replication_factor, config.num_partitions) == (1, 2)


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_topology__bytes_are_utf8_with_or_without_a_mark(bom: bytes) -> None:
    assert Topology.parse(bom + "name: Übung\nbrokers: 1".encode()).name == "Übung"


def test_topology__overrides_replace_values_of_the_file() -> None:
    text = "profile: kafka\nbrokers: [{id: 4, port: 9092}]\n"
    topology = Topology.parse(text, brokers=2, base_port=5000, profile="fast")
    assert [(spec.id, spec.port) for spec in topology.brokers] == [(1, 5000), (2, 5001)]
    assert topology.profile == "fast"
    assert Topology.parse(text, brokers=None, profile=None).brokers[0].id == 4
    assert len(Topology.parse("brokers: 2\nbase_port: 9092", brokers=4).brokers) == 4


@pytest.mark.parametrize(("base_port", "ports"), [(5000, [5000, 5001]), (0, [0, 0])])
def test_topology__an_overriding_base_port_renumbers_a_list(
    base_port: int, ports: list[int]
) -> None:
    text = "brokers: [{id: 4, port: 9092, rack: a}, {id: 2}]"
    topology = Topology.parse(text, base_port=base_port)
    assert [spec.port for spec in topology.brokers] == ports
    assert [spec.id for spec in topology.brokers] == [4, 2]


def test_topology__python_values_mean_the_same_as_a_file() -> None:
    made = Topology.of(
        brokers=[{"id": 1, "rack": "a"}, BrokerSpec(2, 9093, config={"num.partitions": "3"})],
        topics={
            "orders": {"partitions": 6, "replication_factor": 2, "config": {"retention.ms": 5}},
            "audit": TopicSpec("audit", assignment=((1, 2), (2, 1))),
            "plain": TopicSpec("plain", 4, 2),
        },
        profile="fast",
        config={"auto.create.topics.enable": False},
        network=NetworkSpec(0, (LinkSpec((1, 2), 5),)),
    )
    read = Topology.parse(
        """
        brokers: [{id: 1, rack: a}, {id: 2, port: 9093, config: {num.partitions: 3}}]
        topics:
          orders: {partitions: 6, replication_factor: 2, config: {retention.ms: 5}}
          audit: {assignment: [[1, 2], [2, 1]]}
          plain: {partitions: 4, replication_factor: 2}
        profile: fast
        config: {auto.create.topics.enable: false}
        network: {links: [{between: [1, 2], latency_ms: 5}]}
        """
    )
    for field in ("brokers", "topics", "profile", "config", "network", "host", "name"):
        assert getattr(made, field) == getattr(read, field)


def test_topology__python_values_are_checked_as_a_file_is() -> None:
    with pytest.raises(TopologyError) as caught:
        Topology.of(brokers=2, topics={"orders": {"replication_factor": 3}}, nam="x")
    assert str(caught.value).splitlines() == [
        "nam: no such key of a topology; did you mean name?",
        "topics.orders.replication_factor: 3 is more than the 2 brokers; set at most 2",
    ]


def test_topology__configs_of_a_topic_may_stand_beside_its_keys_in_either_spelling() -> None:
    for name in ("min.insync.replicas", "min_insync_replicas"):
        for entry in (f"{name}: 2", f"config: {{{name}: 2}}"):
            topology = Topology.parse(f"{{brokers: 3, topics: {{a: {{partitions: 4, {entry}}}}}}}")
            assert topology.topics["a"] == TopicSpec("a", 4, 3, None, {"min.insync.replicas": "2"})


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("min.insync.replica: 2", "a.min.insync.replica: no such topic config; did you mean min."),
        ("min.insync.replicas: two", "a.min.insync.replicas: "),
        ("min.insync.replicas: 2, config: {min_insync_replicas: 3}", "replicas is given twice"),
        ("config: {min_insync_replicas: 2, min.insync.replicas: 2}", "replicas is given twice"),
        ("log_retention_ms: 5", "a config of brokers; of a topic it is retention.ms"),
        ("colour: red", "there are partitions, replication_factor, assignment, config"),
        ("replicas: 3", "no such key of a topic; did you mean replication_factor?"),
    ],
)
def test_topology__a_wrong_config_beside_a_topics_keys_is_reported(entry: str, said: str) -> None:
    with pytest.raises(TopologyError) as error:
        Topology.parse(f"{{brokers: 3, topics: {{a: {{{entry}}}}}}}")
    assert said in str(error.value)


def test_topology__min_insync_above_the_replicas_is_accepted_as_in_kafka() -> None:
    text = "{brokers: 1, topics: {a: {config: {min.insync.replicas: 2}}}}"
    assert Topology.parse(text).topics["a"].config == {"min.insync.replicas": "2"}


# ------------------------------------------------------------------------------ ports in use


def test_ports__in_use_are_reported_with_their_place() -> None:
    topology = Topology.parse("brokers:\n  - {id: 1, port: 9092}\n  - {id: 2}\n  - {port: 9094}\n")
    probed = []

    def probe(host: str, port: int) -> str | None:
        probed.append((host, port))
        return "in use by another program" if port == 9094 else None

    problems = check_ports(topology, probe)
    assert probed == [("127.0.0.1", 9092), ("127.0.0.1", 9094)]
    assert [str(problem) for problem in problems] == [
        "topology.yaml:4:12 brokers[2].port: 9094: in use by another program;"
        " set another or leave it out for a free one"
    ]


def test_ports__numbered_ones_are_reported_at_base_port() -> None:
    topology = Topology.parse("brokers: 2\nbase_port: 9092")
    problems = check_ports(topology, lambda _host, port: "in use" if port == 9093 else None)
    assert [str(problem) for problem in problems] == [
        "topology.yaml:2:12 base_port: 9093: in use; set another, or leave it out for free ones"
    ]


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("localhost:9092", ("localhost", 9092)),
        ("localhost", ("localhost", 0)),
        ("[::1]:9092", ("::1", 9092)),
        ("[::1]", ("::1", 0)),
    ],
)
def test_addresses__are_split(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize(
    "address", ["", ":9092", "a:", "a:b", "a:0", "a:65536", "a:1:2", "::1", "[::1", "[]:1", "a:+1"]
)
def test_addresses__bad_ones_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="address"):
        split_address(address)


# ------------------------------------------------------------------ default replication factor


@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_replication_factor__defaults_to_three_or_the_number_of_brokers(
    brokers: int, factor: int
) -> None:
    topology = Topology.of(brokers=brokers, topics={"a": {}, "b": TopicSpec("b")})
    assert [spec.replication_factor for spec in topology.topics.values()] == [factor, factor]
    config = topology.broker_config(1)
    assert config.default_replication_factor == factor
    assert config.offsets_topic_replication_factor == factor


def test_replication_factor__one_setting_brings_kafkas_default_back() -> None:
    topology = Topology.of(topics={"a": {}}, config={"default.replication.factor": 1})
    assert topology.topics["a"].replication_factor == 1
    assert topology.broker_config(1).default_replication_factor == 1
    assert topology.broker_config(1).offsets_topic_replication_factor == 3
