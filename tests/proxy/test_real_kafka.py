"""A proxy before a real Kafka.  `make test-slow` runs these tests, where there is Java."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcluster.apache_kafka.installation import find_installation
from kcluster.apache_kafka.processes import KafkaProcesses, wait_until
from kcluster.config.topology.model import Topology
from kcluster.faults.rules import rule
from kcluster.operations.errors import ClusterError
from kcluster.protocol import messages as m
from tests.apache_kafka.test_real_processes import starts
from tests.proxy.test_gate import KEPT, RULES, SILENT, SILENT_AT, TOPIC, story, with_topic
from tests.proxy.test_groups import (
    evicts_and_rebalances_modern_members,
    evicts_classic_members,
    rebalances_a_classic_group,
)
from tests.rig.proxied import PlainClient, Proxied, proxied, proxy_before
from tests.rig.requests import batch, produce_request

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout_s(300),
    pytest.mark.xdist_group("kafka programs"),  # a Kafka at a time
]


def started(brokers: int) -> KafkaProcesses:
    try:
        kafka = find_installation(log=print)
    except ClusterError as error:
        pytest.skip(str(error))
    config = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": 0}
    nodes = KafkaProcesses(kafka, Topology.of(brokers=brokers, config=config), with_network=False)
    nodes.open()
    return nodes


@pytest.fixture(scope="module")
def real() -> Iterator[Proxied]:
    """A proxy before three brokers, of which each serves."""
    nodes = started(3)
    try:
        places = [nodes.addresses[key].listeners[0].told for key in (1, 2, 3)]
        assert wait_until(lambda: all(starts(nodes, key) for key in (1, 2, 3)), 200)
        for place in places:
            wait_for(place)
        with proxy_before(",".join(places), nodes) as found:
            yield found
    finally:
        nodes.close()


def wait_for(place: str) -> None:
    """Return when a broker answers, and knows all three."""
    while True:
        try:
            with PlainClient(place) as client:
                if len(client.ask(m.MetadataRequest(topics=[]), 9).brokers) == 3:
                    return
        except (ConnectionError, AssertionError):
            continue


def create(found: Proxied, name: str, *leaders: int) -> None:
    """A topic with one replica per partition, whose partitions have these leaders."""
    placed = [
        m.CreateTopicsRequest.CreatableReplicaAssignment(at, [x]) for at, x in enumerate(leaders)
    ]
    kind = m.CreateTopicsRequest
    configs = [kind.CreatableTopicConfig(key, value) for key, value in KEPT.items()]
    topic = kind.CreatableTopic(name, -1, -1, assignments=placed, configs=configs)
    request = kind(topics=[topic], timeout_ms=30_000)
    with found.client() as client:
        (answer,) = client.ask(request, 7).topics
    assert answer.error_code == 0, answer
    for broker_id in (1, 2, 3):
        with found.client(broker_id) as client:
            while not is_known(client, name, leaders):
                pass
            led = [at for at, x in enumerate(leaders) if x == broker_id]
            while led and not is_led(client, name, led):
                pass


def is_known(client: PlainClient, name: str, leaders: tuple[int, ...]) -> bool:
    wanted = m.MetadataRequest.MetadataRequestTopic(name=name)
    (topic,) = client.ask(m.MetadataRequest(topics=[wanted]), 9).topics
    return {x.leader_id for x in topic.partitions} == set(leaders)


def is_led(client: PlainClient, name: str, partitions: list[int]) -> bool:
    """Whether a broker serves these partitions: it may lag behind the metadata that it answers."""
    kind = m.ListOffsetsRequest
    wanted = [kind.ListOffsetsPartition(at, timestamp=-1) for at in partitions]
    topics = [kind.ListOffsetsTopic(name, wanted)]
    (topic,) = client.ask(kind(replica_id=-1, topics=topics), 5).topics
    return not any(x.error_code for x in topic.partitions)


def delete(found: Proxied, name: str) -> None:
    with found.client() as client:
        answer = client.ask(m.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)
    assert answer.responses[0].error_code == 0
    with found.client(1) as client:
        while True:
            wanted = m.MetadataRequest.MetadataRequestTopic(name=name)
            (topic,) = client.ask(m.MetadataRequest(topics=[wanted]), 9).topics
            if topic.error_code:
                return


def test_real_kafka__a_librdkafka_client_produces_and_consumes_through_it(real: Proxied) -> None:
    from confluent_kafka import Consumer, Producer

    create(real, "through", 1, 2, 3)
    producer = Producer({"bootstrap.servers": real.bootstrap, "enable.idempotence": True})
    for number in range(300):
        producer.produce("through", b"%d" % number, partition=number % 3)
    assert producer.flush(60) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": real.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["through"])
    values: list[int] = []
    while len(values) < 300:
        values += [int(message.value() or b"") for message in consumer.consume(300, 1)]
    consumer.commit(asynchronous=False)
    listed = consumer.list_topics().brokers
    consumer.close()
    assert sorted(values) == list(range(300))
    assert {key: x.port for key, x in listed.items()} == {
        key: real.broker(key)[1] for key in (1, 2, 3)
    }
    produced = real.rows_of("produced.jsonl")
    assert sum(head.count for row in produced for head in row.batches) == 300
    assert {row.broker for row in produced} == {1, 2, 3}
    fetched = [row for row in real.rows_of("fetched.jsonl") if row.topic == "through"]
    assert sum(head.count for row in fetched for head in row.batches) >= 300
    commits = [row for row in real.rows_of("commits.jsonl") if not row.error]
    assert sum({(row.topic, row.partition): row.offset for row in commits}.values()) == 300


def test_real_kafka__the_new_leader_of_a_refusal_has_the_proxys_address(real: Proxied) -> None:
    create(real, "led", 2)
    with real.client(1) as client:
        (topic,) = client.ask(
            m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="led")])
        ).topics
        answer = client.ask(produce_request("led", 0, batch(b"a"), topic_id=topic.topic_id))
    (place,) = answer.node_endpoints
    assert (place.host, place.port) == real.broker(2)


@pytest.mark.parametrize(
    "played",
    [evicts_classic_members, rebalances_a_classic_group, evicts_and_rebalances_modern_members],
)
def test_real_kafka__members_are_evicted_and_groups_rebalance(
    real: Proxied, played: Callable[[Proxied], None]
) -> None:
    played(real)


@pytest.fixture(scope="module")
def simulated() -> Iterator[Proxied]:
    with proxied(1) as found:
        yield found


@pytest.mark.parametrize("name", RULES)
def test_real_kafka__answers_are_those_of_simulated_brokers(
    real: Proxied, simulated: Proxied, name: str
) -> None:
    """The rule at simulated brokers, and the rule in a proxy before a real broker."""
    made = rule(**RULES[name])
    silent_at = SILENT_AT if name in SILENT else -1
    upstream = simulated.upstream

    def on_brokers() -> list[Any]:
        added = upstream.add_rule(made)
        try:
            return story(lambda: PlainClient(upstream.bootstrap), silent_at)
        finally:
            upstream.remove_rule(added)

    expected = with_topic(simulated, on_brokers)
    create(real, TOPIC, 1, 1)
    added = real.running.call(lambda proxy: proxy.gate.add(made))
    try:
        got = story(lambda: real.client(1), silent_at)
    finally:
        real.running.call(lambda proxy: proxy.gate.remove(added))
        delete(real, TOPIC)
    if name != "error in a commit":
        got[6] = expected[6]  # a broker that coordinates no group refuses a commit
    assert got == expected
