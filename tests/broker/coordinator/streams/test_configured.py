"""A topology against the topics of a cluster.  Every detail and message is a 4.3.1 broker's."""

from __future__ import annotations

import pytest

from kcluster.broker.coordinator.streams.configured import (
    ConfiguredTopology,
    InvalidTopology,
    StreamsStatus,
    configure,
)
from kcluster.broker.coordinator.streams.topology import StreamsTopology
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.streams.declared import declared, part, topic

EXISTING = {"in": 3, "in2": 2}


def configured(
    *parts: m.StreamsGroupHeartbeatRequest.Subtopology, **more: int
) -> ConfiguredTopology:
    result = configure(StreamsTopology.of(declared(*parts)), EXISTING | more)
    assert isinstance(result, ConfiguredTopology)
    return result


def problem(
    *parts: m.StreamsGroupHeartbeatRequest.Subtopology, **more: int
) -> tuple[StreamsStatus, str]:
    result = configured(*parts, **more)
    assert result.problem is not None
    return result.problem.status, result.problem.detail


def refused(*parts: m.StreamsGroupHeartbeatRequest.Subtopology) -> tuple[ErrorCode, str | None]:
    result = configure(StreamsTopology.of(declared(*parts)), EXISTING)
    assert isinstance(result, InvalidTopology)
    return result.error, result.message


def task_counts(topology: ConfiguredTopology) -> dict[str, int]:
    assert topology.subtopologies is not None
    return {id_: each.task_count for id_, each in topology.subtopologies.items()}


WORD_COUNT = (
    part("0", ["in"], sinks=["words"]),
    part(
        "1",
        repartition=[topic("words", 0, 2, cleanup_policy="delete")],
        changelogs=[topic("counts", cleanup_policy="compact")],
        together=([], [0]),
    ),
)


def test_configured__a_repartition_topic_has_a_partition_per_task_that_writes_to_it() -> None:
    result = configured(*WORD_COUNT)
    assert task_counts(result) == {"0": 3, "1": 3}
    assert {name: made.partitions for name, made in result.missing_topics.items()} == {
        "words": 3,
        "counts": 3,
    }
    assert result.missing_topics["words"].replication_factor == 2
    assert result.missing_topics["counts"].configs == (("cleanup.policy", "compact"),)
    assert problem(*WORD_COUNT) == (
        StreamsStatus.MISSING_INTERNAL_TOPICS,
        "missing internal topics: counts, words",
    )
    assert not result.is_ready


def test_configured__ready_when_the_internal_topics_are_there() -> None:
    assert configured(*WORD_COUNT, words=3, counts=3).is_ready


def test_configured__a_chain_of_repartition_topics_is_as_wide_as_its_start() -> None:
    result = configured(
        part("0", repartition=[topic("b")]),
        part("1", repartition=[topic("a")], sinks=["b"]),
        part("2", ["in"], sinks=["a"]),
    )
    assert task_counts(result) == {"0": 3, "1": 3, "2": 3}


def test_configured__the_application_may_set_the_partitions_of_a_repartition_topic() -> None:
    result = configured(
        part("0", ["in"], sinks=["wide"]), part("1", repartition=[topic("wide", 7)])
    )
    assert task_counts(result) == {"0": 3, "1": 7}


def test_configured__a_join_makes_its_repartition_topic_as_wide_as_its_source() -> None:
    result = configured(
        part("0", ["in"], sinks=["r"]),
        part("1", ["in2"], repartition=[topic("r")], together=([0], [0])),
    )
    assert task_counts(result) == {"0": 3, "1": 2}


def test_configured__names_the_first_three_missing_topics() -> None:
    assert problem(part("0", ["x1", "in", "x5", "x4", "x3", "x2"])) == (
        StreamsStatus.MISSING_SOURCE_TOPICS,
        "missing source topics: x1, x2, x3 and 2 more",
    )
    logs = [topic(f"gx-{index}-changelog") for index in range(5)]
    assert problem(part("0", ["in"], changelogs=logs)) == (
        StreamsStatus.MISSING_INTERNAL_TOPICS,
        "missing internal topics: gx-0-changelog, gx-1-changelog, gx-4-changelog and 2 more",
    )


def test_configured__topics_of_a_join_must_be_equally_wide() -> None:
    assert problem(part("0", ["in", "in2"], together=([0, 1], []))) == (
        StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
        "copartitioned topics differ in partitions: in=3, in2=2",
    )
    fixed = part("0", ["in"], repartition=[topic("r1", 5)], sinks=["r1"], together=([0], [0]))
    assert problem(fixed) == (
        StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
        "repartition topic r1 has 5 partitions, its source topics 3",
    )


def test_configured__an_internal_topic_that_exists_must_have_its_width() -> None:
    assert problem(*WORD_COUNT, words=3, counts=4) == (
        StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
        "topic counts has 4 partitions, the topology needs 3",
    )


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (part("0"), "subtopology 0 reads no topic"),
        (
            part("0", repartition=[topic("r1")], sinks=["r1"]),
            "repartition topics whose number of partitions depends on itself: the topology may "
            "have a loop",
        ),
        (
            part("0", ["in"], repartition=[topic("r1")]),
            "repartition topic r1 has no number of partitions: no subtopology writes to it",
        ),
    ],
)
def test_configured__refuses_what_no_cluster_could_run(
    one: m.StreamsGroupHeartbeatRequest.Subtopology, message: str
) -> None:
    assert refused(one) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def test_configured__what_kafka_does_not_expect_is_a_server_error() -> None:
    assert refused(part("0", ["in"], together=([3], []))) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    twice = part("0", ["in"], changelogs=[topic("log"), topic("log")])
    assert refused(twice) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    negative = part("0", ["in"], repartition=[topic("r1", -1)], sinks=["r1"])
    assert refused(negative) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


def test_topology__the_order_of_subtopologies_does_not_matter() -> None:
    one, other = WORD_COUNT
    first = StreamsTopology.of(declared(one, other))
    assert first.same_as(StreamsTopology.of(declared(other, one)))
    assert not first.same_as(StreamsTopology.of(declared(one)))
    assert not first.same_as(StreamsTopology.of(declared(one, other, epoch=1)))
    assert StreamsTopology.of(first.encoded()) == first
