"""Wrong topologies: every problem, its place, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcluster.config.files.problems import Problem, TopologyError
from kcluster.config.topology.model import Topology
from tests.config.refused import problems_of


def test_problems__all_come_at_once_in_order_of_place() -> None:
    assert problems_of(
        """\
profile: quick
brokers:
  - {id: 1, port: 9092}
  - {id: 2, port: 9092, rock: a}
  - {id: 2, port: 09094}
topics:
  orders: {partitions: 6, replication_factor: 4, config: {min.insync.replica: 2}}
  audit: {assignment: [[1, 2], [2, 9]]}
"""
    ) == [
        "t.yaml:1:10 profile: quick: no such profile; there are kafka, fast, slow",
        "t.yaml:4:19 brokers[1].port: 9092 is already broker 1's;"
        " set another or leave it out for a free one",
        "t.yaml:4:25 brokers[1].rock: no such key of a broker; did you mean rack?",
        "t.yaml:5:10 brokers[2].id: 2 is already brokers[1]'s",
        "t.yaml:5:19 brokers[2].port: 09094 has leading zeros, octal to some; write 9094",
        "t.yaml:7:47 topics.orders.replication_factor: 4 is more than the 3 brokers; set at most 3",
        "t.yaml:7:59 topics.orders.config.min.insync.replica: no such topic config;"
        " did you mean min.insync.replicas?",
    ]


ELR = "eligible.leader.replicas.version"
LINK = "{between: [1, 2], latency_ms: 1}"
BROKERS = "brokers: [{id: 1, port: 9092}, {id: 2, port: 9093}, {id: 3}]\n"


@pytest.mark.parametrize(
    ("line", "path", "text"),
    [
        # the whole
        ("nmae: x", "nmae", "no such key of a topology; did you mean name?"),
        ("name: [x]", "name", "this is a list; it must be text"),
        ('name: ""', "name", "'' is not usable: empty"),
        ("host: http://x", "host", "http://x: the name or address alone, without a protocol"),
        ("host: localhost:9092", "host", "the name or address alone; ports are the brokers'"),
        ("host: a b", "host", "a b is neither a host name nor an IP address"),
        ("host: 1.2.3.400", "host", "1.2.3.400 is neither a host name nor an IP address"),
        ("host: 0.0.0.0", "host", "cannot connect to 0.0.0.0: give brokers 1, 2, 3 an `adv"),
        ("base_port: 9092", "base_port", "works with a number of brokers; in a list, each has its"),
        ("topics: [a]", "topics", "this is a list; it must be a mapping"),
        # configs
        ("config: {retention.ms: 1}", "config.retention.ms", "for all topics it is log.retention"),
        ("config: {broker.rack: a}", "config.broker.rack", "set with `rack` of the broker"),
        ("config: {qqq: a}", "config.qqq", "no such broker config"),
        ("config: {num.partitions: many}", "config.num.partitions", "Not a number of type INT"),
        ("config: {num.partitions: }", "config.num.partitions", "this is empty; it must be a INT"),
        ("config: {num.partitions: [1]}", "config.num.partitions", "this is a list; it must be"),
        ("config: {auto.create.topics.enable: yes}", "config.auto.create.topics.enable", "either"),
        ("config: {replica.lag.time.max.ms: 1}", "config.replica.fetch.wait.max.ms", "leave the"),
        (
            "config: {group.streams.session.timeout.ms: 44999}",
            "config.group.streams.session.timeout.ms",
            "44999 is below group.streams.min.session.timeout.ms (45000)",
        ),
        (
            "config: {group.streams.num.standby.replicas: 3}",
            "config.group.streams.num.standby.replicas",
            "must be at most group.streams.max.standby.replicas (2)",
        ),
        # features
        ("features: [a]", "features", "this is a list; it must be a mapping with keys like group."),
        (
            "features: {transactions.version: 1}",
            "features.transactions.version",
            "no such feature; did you mean transaction.version?",
        ),
        (
            "features: {transaction.version: 3}",
            "features.transaction.version",
            "3 is out of range; it must be at most 2: transaction.version has levels 0 to 2",
        ),
        ("features: {metadata.version: 6}", "features.metadata.version", "must be at least 7"),
        ("features: {group.version: on}", "features.group.version", "on is not a whole number"),
        (
            "features: {group.version: 1, group_version: 0}",
            "features.group_version",
            "group.version is given twice",
        ),
        (
            "features: {eligible.leader.replicas.version: 1, metadata.version: 22}",
            "features.eligible.leader.replicas.version",
            "level 1 needs metadata.version 23 or above",
        ),
        (
            f"features: {{{ELR}: 1}}\nconfig: {{{ELR}: 1}}",
            "features.eligible.leader.replicas.version",
            "given in `config` too; leave it out there",
        ),
        # topics
        ("topics: {a b: }", "topics['a b']", "a b is not a topic name: only letters, digits"),
        ("topics: {..: }", "topics...", "a topic's name cannot be .."),
        (f"topics: {{{'x' * 250}: }}", "topics['xxx", "the name has 250 characters; at most 249"),
        ("topics: {__cluster_metadata: }", "topics.__cluster_metadata", "the controller's own log"),
        ("topics: {a.b: , a_b: }", "topics.a_b", "collides with a.b: `.` and `_` are the same"),
        ("topics: {a: 3}", "topics.a", "this is 3; it must be a mapping with keys like partitions"),
        ("topics: {a: {partitions: 0}}", "topics.a.partitions", "0 is out of range; it must be at"),
        ("topics: {a: {partitions: 2.0}}", "topics.a.partitions", "2.0 is not a plain decimal"),
        ("topics: {a: {partitions: 1_0}}", "topics.a.partitions", "1_0 is not a plain decimal"),
        ("topics: {a: {partitions: '2'}}", "topics.a.partitions", "'2' is text; it must be a who"),
        ("topics: {a: {partitions: yes}}", "topics.a.partitions", "yes is not a whole number"),
        ("topics: {a: {config: {log.retention.ms: 1}}}", "topics.a.config.log.retention.ms", "ret"),
        (
            "topics: {a: {config: {min.compaction.lag.ms: 9, max.compaction.lag.ms: 8}}}",
            "topics.a.config",
            "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)",
        ),
        ("topics: {a: {assignment: []}}", "topics.a.assignment", "0 partitions; at least 1"),
        (
            "topics: {a: {assignment: [1]}}",
            "topics.a.assignment[0]",
            "this is 1; it must be a list",
        ),
        ("topics: {a: {assignment: [[]]}}", "topics.a.assignment[0]", "needs at least one replica"),
        (
            "topics: {a: {assignment: [[1, 9]]}}",
            "topics.a.assignment[0][1]",
            "there is no broker 9",
        ),
        ("topics: {a: {assignment: [[1, 1]]}}", "topics.a.assignment[0]", "is named 2 times"),
        ("topics: {a: {assignment: [[1], [1, 2]]}}", "topics.a.assignment[1]", "2 replicas, but"),
        ("topics: {a: {assignment: [[1]], partitions: 2}}", "topics.a.partitions", "leave it out"),
        # network
        ("network: {latency: 1}", "network.latency", "no such key of the network; there are def"),
        ("network: {default_latency_ms: -1}", "network.default_latency_ms", "must be at least 0"),
        ("network: {links: [{}]}", "network.links[0].between", "missing"),
        ("network: {links: [3]}", "network.links[0]", "this is 3; a link is a mapping like"),
        (
            "network: {links: [{between: [1, 8], latency_ms: 1}]}",
            "network.links[0].between[1]",
            "there is no broker 8; there are 1, 2, 3",
        ),
        (
            "network: {links: [{between: [1, 1], latency_ms: 1}]}",
            "network.links[0].between",
            "broker 1 needs no link to itself",
        ),
        (
            "network: {links: [{between: [1], latency_ms: 1}]}",
            "network.links[0].between",
            "1 ids; a link has two ends",
        ),
        (
            f"network: {{links: [{LINK}, {LINK}]}}",
            "network.links[1]",
            "the link of 1 and 2 is given twice",
        ),
    ],
)
def test_problems__each_is_reported_with_its_path(line: str, path: str, text: str) -> None:
    found = problems_of(BROKERS + line)
    assert any(f" {path}" in problem and text in problem for problem in found), found
    assert all(problem.startswith("t.yaml:2:") for problem in found), found


@pytest.mark.parametrize(
    ("brokers", "path", "text"),
    [
        ("", "brokers", "empty; a number (`brokers: 3`) or a list of brokers"),
        ("0", "brokers", "0 is out of range; it must be at least 1, the number of brokers"),
        ("1001", "brokers", "1001 is out of range; it must be at most 1000"),
        ("three", "brokers", "three is not a whole number, the number of brokers"),
        ("{a: 1}", "brokers", "this is a mapping; it must be a list of brokers, or their number"),
        ("[]", "brokers", "0 brokers; there must be 1 to 1000"),
        ("[7]", "brokers[0]", "this is 7; a broker is a mapping like {id: 1, port: 9092}"),
        ("[{id: -1}]", "brokers[0].id", "-1 is out of range; it must be at least 0"),
        ("[{id: 3000}]", "brokers[0].id", "3000 is the controller's"),
        ("[{port: 65536}]", "brokers[0].port", "65536 is out of range; it must be at most 65535"),
        ("[{port: '1'}]", "brokers[0].port", "'1' is text; it must be a whole number"),
        ("[{rack: {}}]", "brokers[0].rack", "this is a mapping; it must be text"),
        ("[{advertised: 'a:b'}]", "brokers[0].advertised", 'a:b is not an address like "localh'),
        ("[{advertised: '0.0.0.0:1'}]", "brokers[0].advertised", "clients cannot connect to it"),
        ("[{advertised: 'a:99999'}]", "brokers[0].advertised", "is from 1 to 65535"),
        ("[{advertised: 'PLAINTEXT://a'}]", "brokers[0].advertised", "is not an address like"),
        (
            "[{advertised: 'a:1'}, {advertised: 'a:1'}]",
            "brokers[1].advertised",
            "a:1 is already broker 1's; clients need two",
        ),
        ("[{config: {num.partitions: x}}]", "brokers[0].config.num.partitions", "Not a number"),
        ("[{config: {node.id: 3}}]", "brokers[0].config.node.id", "set with `id` of the broker"),
        ("3\nbase_port: 65534", "base_port", "at most 65533, so that all 3 ports are below 65536"),
        ("3\nbase_port: 0x10", "base_port", "0x10 is not a plain decimal number"),
    ],
)
def test_problems__of_brokers(brokers: str, path: str, text: str) -> None:
    found = problems_of(f"brokers: {brokers}")
    assert len(found) == 1
    assert f" {path}: " in found[0]
    assert text in found[0]


def test_problems__a_wrong_broker_causes_no_problems_in_others() -> None:
    text = "{brokers: [{id: 1}, {id: x}], topics: {a: {assignment: [[1, 2]]}}}"
    assert problems_of(text) == ["t.yaml:1:26 brokers[1].id: x is not a whole number"]


KEYS = ["brokers", "topics", "config", "network", "links", "between", "assignment", "partitions"]
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda node: (
        st.lists(node, max_size=3) | st.dictionaries(st.sampled_from(KEYS), node, max_size=4)
    ),
    max_leaves=12,
)


def outcome(make: Callable[[], Topology]) -> Topology | tuple[Problem, ...]:
    """A topology, or its problems and no other exception."""
    try:
        return make()
    except TopologyError as error:
        problems = error.problems
    assert problems
    return problems


@given(st.dictionaries(st.sampled_from(KEYS), TREES, max_size=5))
def test_topology__any_values_are_a_topology_or_problems(values: dict[str, object]) -> None:
    outcome(lambda: Topology.of(**{"brokers": 1, **values}))  # type: ignore[arg-type]  # the test


@given(st.text(alphabet="ab01[]{}:,-#&*!?|>'\"% \n\t\\", max_size=60) | st.binary(max_size=40))
def test_yaml__any_text_is_a_topology_or_problems(text: str | bytes) -> None:
    outcome(lambda: Topology.parse(text))
