from __future__ import annotations

from random import Random

from kcluster.clients.metadata import NO_BROKER, Metadata, MetadataSettings, backoff_ms
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

ID, OTHER_ID = bytes(15) + b"\1", bytes(15) + b"\2"
Response = m.MetadataResponse


def response(
    leader: int,
    epoch: int,
    *,
    topic_id: bytes = ID,
    error: ErrorCode = ErrorCode.NONE,
    brokers: tuple[int, ...] = (1, 2, 3),
    topic_error: ErrorCode = ErrorCode.NONE,
) -> Response:
    partition = Response.MetadataResponsePartition(
        error_code=error, partition_index=0, leader_id=leader, leader_epoch=epoch
    )
    topic = Response.MetadataResponseTopic(
        error_code=topic_error,
        name="orders",
        topic_id=topic_id,
        partitions=[] if topic_error else [partition],
    )
    return Response(
        brokers=[Response.MetadataResponseBroker(node_id=at) for at in brokers], topics=[topic]
    )


def metadata_after(*responses: Response) -> Metadata:
    """A view after these responses, one second apart."""
    metadata = Metadata(MetadataSettings())
    metadata.start((1, 2, 3), Random(1))
    metadata.add_topic("orders")
    for at, response in enumerate(responses):
        metadata.update(response, metadata.request_version, 1_000 * at)
    return metadata


def test_metadata__an_older_epoch_is_ignored() -> None:
    metadata = metadata_after(response(2, 5), response(1, 4))
    assert metadata.leader("orders", 0) == 2
    assert metadata.leader_epoch("orders", 0) == 5


def test_metadata__the_same_epoch_without_a_leader_is_taken() -> None:
    gone = response(-1, 5, error=ErrorCode.LEADER_NOT_AVAILABLE)
    metadata = metadata_after(response(2, 5), gone)
    assert metadata.leader("orders", 0) == NO_BROKER
    assert metadata.due_ms <= 1_000 + 1_200


def test_metadata__a_recreated_topic_starts_with_its_own_epochs() -> None:
    metadata = metadata_after(response(2, 5), response(1, 0, topic_id=OTHER_ID))
    assert metadata.leader("orders", 0) == 1
    assert metadata.topic_name(OTHER_ID) == "orders"
    assert metadata.topic_name(ID) is None


def test_metadata__a_leader_that_is_not_among_the_brokers_is_none() -> None:
    assert metadata_after(response(2, 5, brokers=(1, 3))).leader("orders", 0) == NO_BROKER


def test_metadata__an_error_may_name_a_newer_leader_and_no_older_one() -> None:
    metadata = metadata_after(response(2, 5))
    assert not metadata.update_leader("orders", 0, 1, 5)
    assert metadata.update_leader("orders", 0, 3, 6)
    assert metadata.leader("orders", 0) == 3
    assert metadata.update(response(2, 5), metadata.request_version, 2_000) == []
    assert metadata.leader("orders", 0) == 3


def test_metadata__is_refreshed_by_age_and_on_request() -> None:
    metadata = metadata_after(response(2, 5))
    assert metadata.due_ms == 300_000
    metadata.request_update()
    assert 80 <= metadata.due_ms <= 120


def test_metadata__an_unknown_topic_is_requested_again_soon() -> None:
    missing = response(0, 0, topic_error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    metadata = metadata_after(missing)
    assert metadata.topic_errors == {"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert metadata.due_ms <= 120


def test_metadata__equivalent_responses_are_requested_less_and_less_often() -> None:
    metadata = metadata_after(response(2, 5), *[response(2, 5)] * 6)
    metadata.request_update()
    assert 800 <= metadata.due_ms - 6_000 <= 1_000


def test_metadata__a_response_without_brokers_is_ignored() -> None:
    metadata = metadata_after(response(2, 5), response(1, 6, brokers=()))
    assert metadata.leader("orders", 0) == 2


def test_metadata__a_topic_added_during_a_request_is_requested_next() -> None:
    metadata = metadata_after(response(2, 5))
    before = metadata.request_version
    metadata.add_topic("more")
    metadata.update(response(2, 5), before, 1_000)
    assert metadata.due_ms < 1_200


def test_backoff__doubles_with_a_fifth_of_jitter_up_to_a_limit() -> None:
    rng = Random(1)
    for attempts in range(8):
        plain_ms = min(100 * 2**attempts, 1_000)
        wait_ms = backoff_ms(attempts, 100, 1_000, rng)
        assert 0.8 * plain_ms - 1 <= wait_ms <= min(1_000, 1.2 * plain_ms)


def test_backoff__at_its_limit_it_is_shorter_every_other_time() -> None:
    rng = Random(1)
    waits_ms = [backoff_ms(40, 100, 1_000, rng) for _ in range(1_000)]
    assert 450 < waits_ms.count(1_000) < 550
    assert 800 <= min(waits_ms) < 810
