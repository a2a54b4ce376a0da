"""Consumers with group.protocol=consumer (KIP-848) and streams (KIP-1071): the members of groups
that have epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kcluster.clients.consumer.consumer import Consumer
from kcluster.deaths import DeathKind
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from tests.clients.story import Story
from tests.rig.cluster import TOPIC

ALL = {(TOPIC, number) for number in range(4)}


Join = Callable[[Story, str], Consumer]


def story_of(**topology: object) -> Story:
    config = {"offsets.topic.num.partitions": 1}
    return Story(config=config, topology=topology, partitions=4)


@pytest.fixture(params=["consumer", "streams"])
def join(request: pytest.FixtureRequest) -> Join:
    """A consumer of the group protocol joins the group."""
    return lambda story, name: story.consumer(name, group_protocol=request.param)


def test_members__share_the_partitions_and_read_each_record_once(join: Join) -> None:
    story = story_of()
    producer = story.producer(rate_per_s=50.0, keys=20)
    first = join(story, "a")
    assert story.until(lambda: len(first.assignment) == 4)
    second = join(story, "b")
    assert story.until(lambda: len(first.assignment) == len(second.assignment) == 2)
    assert {*first.assignment, *second.assignment} == ALL
    producer.stop(story.driver.now_ms)
    assert story.until(lambda: len(story.reads()) >= producer.acked)
    story.run(1_000)
    reads = [(read.partition, read.offset) for read in story.reads()]
    assert len(reads) == len(set(reads)) == producer.acked


def test_members__leave_and_their_partitions_go_to_the_others(join: Join) -> None:
    story = story_of()
    first, second = join(story, "a"), join(story, "b")
    assert story.until(lambda: len(first.assignment) == len(second.assignment) == 2)
    first.stop(story.driver.now_ms)
    assert story.until(lambda: first.is_done and len(second.assignment) == 4, 20_000)


def test_members__a_silent_one_is_fenced_and_joins_again(join: Join) -> None:
    story = story_of()
    first, second = join(story, "a"), join(story, "b")
    assert story.until(lambda: len(first.assignment) == len(second.assignment) == 2)
    client = story.client_ids["a"]
    for broker in (1, 2, 3):
        story.driver.verbs.links.cut(client, broker)
    assert story.until(lambda: len(second.assignment) == 4, 70_000)
    for broker in (1, 2, 3):
        story.driver.verbs.links.heal(client, broker)
    assert story.until(lambda: len(first.assignment) == len(second.assignment) == 2)
    errors = {error for _, error in story.errors("a")}
    assert errors & {"UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"}


def test_members__survive_their_coordinator(join: Join) -> None:
    story = story_of()
    first, second = join(story, "a"), join(story, "b")
    producer = story.producer(rate_per_s=20.0, keys=20)
    assert story.until(lambda: len(first.assignment) == len(second.assignment) == 2)
    story.run(6_000)
    story.driver.verbs.kill(story.driver.verbs.leader(GROUP_METADATA_TOPIC, 0), DeathKind.KILL)
    story.run(30_000)
    producer.stop(story.driver.now_ms)
    assert story.until(lambda: producer.is_done)
    story.run(2_000)
    assert {*first.assignment, *second.assignment} == ALL
    reads = {(read.partition, read.offset) for read in story.reads()}
    assert len(reads) == producer.acked


def test_members__commit_with_their_epoch_and_the_next_one_goes_on_there(join: Join) -> None:
    story = story_of()
    producer = story.producer(count=40, keys=20)
    first = join(story, "a")
    assert story.until(lambda: len(story.reads("a")) == 40)
    first.stop(story.driver.now_ms)
    assert story.until(lambda: first.is_done and producer.is_done)
    join(story, "b")
    story.run(8_000)
    assert story.reads("b") == []


def test_member__subscribes_by_a_regular_expression() -> None:
    story = story_of()
    plan = {"topics": (TOPIC,), "by_pattern": True}
    member = story.consumer("a", group_protocol="consumer", plan=plan)
    assert story.until(lambda: {*member.assignment} == ALL)


def test_members__take_partitions_that_their_metadata_does_not_have_yet(join: Join) -> None:
    story = story_of()
    member = join(story, "a")
    assert story.until(lambda: len(member.assignment) == 4)
    topic = m.CreatePartitionsRequest.CreatePartitionsTopic(TOPIC, 6, None)
    body = m.CreatePartitionsRequest([topic], 5_000, False)
    answer = story.ask(1, ApiKey.CREATE_PARTITIONS, 3, body)
    assert answer.results[0].error_code == 0
    assert story.until(lambda: len(member.assignment) == 6, 20_000)


@pytest.mark.parametrize("old", [{"kafka_version": "3.6"}, {"kafka_version": "4.0"}])
def test_streams_member__ends_where_brokers_do_not_know_streams_groups(old: Any) -> None:
    story = story_of(**old)
    member = story.consumer("a", group_protocol="streams")
    assert story.until(lambda: member.is_done)
    assert member.failed == "UNSUPPORTED_VERSION"
    assert [error for _, error in story.errors("a")].count("UNSUPPORTED_VERSION") == 1
